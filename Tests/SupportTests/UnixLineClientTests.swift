import BroadsideTestSupport
import Foundation
import Synchronization
import Testing

@testable import BroadsideSupport

/// Many processes are asked at the same time, and none keeps the others from being asked.
@Suite struct UnixLineClientTests {
    /// A socket that somebody listens on; -1 as the descriptor on failure.
    private static func listen(_ path: String, queue: Int32) throws -> Int32 {
        let address = try #require(unixAddress(path))
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        try #require(SystemCall.bind(descriptor, address) == 0)
        try #require(Glibc.listen(descriptor, queue) == 0)
        return descriptor
    }

    @Test func `All sockets get the request before the first responds`() throws {
        let directory = try TemporaryDirectory()
        let count = 20
        let paths = (0..<count).map { "\(directory.path)/socket-\($0)" }
        let sockets = try paths.map { try Self.listen($0, queue: 1) }
        // Nobody gets a response until everybody has asked.
        let server = try WorkerThread {
            let clients = sockets.map { accept($0, nil, nil) }
            for (number, client) in clients.enumerated() {
                var room = [UInt8](repeating: 0, count: 100)
                let read = SystemCall.receive(client, &room, 0)
                let request = String(decoding: room.prefix(max(0, read)), as: UTF8.self)
                for part in ["\(number) got ", request] {
                    let bytes = Array(part.utf8)
                    _ = SystemCall.send(client, bytes.rawSpan)
                }
                close(client)
            }
        }
        var responses: [Int: String] = [:]
        UnixLineClient.ask(count) { index in
            UnixLineClient(paths[index], request: "status")
        } _: { index, outcome in
            responses[index] = try? outcome.get()
        }
        #expect(
            responses
                == Dictionary(uniqueKeysWithValues: (0..<count).map { ($0, "\($0) got status") }))
        // Whoever was not asked is asked now, so that the thread ends.
        for path in paths { _ = UnixConnection(path) }
        server.join()
        for socket in sockets { close(socket) }
    }

    @Test
    func `A socket that is not read, one that closes and one without listener are distinguished`()
        throws
    {
        let directory = try TemporaryDirectory()
        func path(_ name: String) -> String { "\(directory.path)/\(name)" }
        let silent = try Self.listen(path("silent"), queue: 16)
        let full = try Self.listen(path("full"), queue: 0)
        // A queue of 0 takes one.
        let first = try #require(UnixConnection(path("full")))
        #expect(UnixConnection(path("full")) == nil && errno == EAGAIN)
        let gone = try Self.listen(path("gone"), queue: 1)
        close(gone)
        let ending = try Self.listen(path("ending"), queue: 1)
        let server = try WorkerThread { close(accept(ending, nil, nil)) }
        let names = [
            "silent", "full", "gone", "ending", "nowhere", String(repeating: "x", count: 200),
        ]
        var failures: [String: UnixLineClient.Failure] = [:]
        UnixLineClient.ask(names.count) { index in
            UnixLineClient(path(names[index]), request: "status")
        } _: { index, outcome in
            if case .failure(let failure) = outcome { failures[names[index]] = failure }
        }
        #expect(
            failures == [
                "silent": .silent, "full": .silent, "gone": .unreachable(ECONNREFUSED),
                "ending": .ended, "nowhere": .unreachable(ENOENT),
                names[5]: .unreachable(ENAMETOOLONG),
            ])
        server.join()
        withExtendedLifetime(first) {}
        for socket in [silent, full, ending] { close(socket) }
    }

    @Test func `A response above the request's limit has a failure of its own`() throws {
        let directory = try TemporaryDirectory()
        let path = "\(directory.path)/socket"
        let socket = try Self.listen(path, queue: 2)
        let server = try WorkerThread {
            for count in [100, 99] {
                let client = accept(socket, nil, nil)
                var request = [UInt8](repeating: 0, count: 64)
                _ = SystemCall.receive(client, &request, 0)
                let bytes = [UInt8](repeating: 0x78, count: count) + (count < 100 ? [0x0a] : [])
                _ = SystemCall.send(client, bytes.rawSpan)
                close(client)
            }
        }
        var outcomes: [Result<String, UnixLineClient.Failure>] = []
        for _ in 0..<2 {
            UnixLineClient.ask(1) { _ in
                UnixLineClient(path, request: "received", responseLimit: 100)
            } _: {
                outcomes.append($1)
            }
        }
        #expect(
            outcomes == [.failure(.tooLong), .success(String(repeating: "x", count: 99))])
        server.join()
        close(socket)
    }

    @Test(arguments: [
        ("wait 5", 10), ("wait 5 timeout=20s token=aa", 20), ("wait timeout=1500ms 5", 2),
        ("wait 5 timeout=0s", 0), ("wait 5 timeout=61s", 0), ("wait 5 timeout=", 0),
        ("status", 0), ("received timeout=20s", 0),
    ])
    func `A client waits for a response to wait as long as the wait may last`(
        line: String, seconds: Int
    ) {
        #expect(WaitTimeout.seconds(ofRequest: line) == seconds)
    }
}
