import BroadsideTestSupport
import Foundation
import Testing

@testable import BroadsideSupport

/// What a process with a control socket takes from its clients, and what it leaves alone.
@Suite(.timeLimit(.minutes(60))) struct UnixLineServerTests {
    private let directory: TemporaryDirectory
    private let path: String

    init() throws {
        directory = try TemporaryDirectory()
        path = "\(directory.path)/socket"
    }

    private func make(
        _ limits: UnixLineServer.Limits = .init(lineBytes: 100)
    ) throws -> UnixLineServer {
        try UnixLineServer(path, option: "control", limits: limits)
    }

    private func send(_ text: String, to client: UnixConnection) {
        let bytes = Array(text.utf8)
        #expect(SystemCall.send(client.descriptor, bytes.rawSpan) == bytes.count)
    }

    /// What has come, and whether the server has ended the connection.
    private func received(_ client: UnixConnection) -> (text: String, isAtEnd: Bool) {
        var text = ""
        var room = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = SystemCall.receive(client.descriptor, &room, 0)
            if count <= 0 { return (text, count == 0 || errno != EAGAIN) }
            text += String(decoding: room[..<count], as: UTF8.self)
        }
    }

    private func message(_ work: () throws -> UnixLineServer) -> String? {
        do {
            _ = try work()
            return nil
        } catch {
            let error = error as? BroadsideError
            #expect(error?.exitCode == ExitCode.badRequest)
            return error?.message
        }
    }

    @Test func `Requests are answered whole and in order`() throws {
        let server = try make()
        defer { server.end() }
        let client = try #require(UnixConnection(path))
        send("one\ntwo\r\nthr", to: client)
        server.serve { "<\($0)>" }
        #expect(received(client) == ("<one>\n<two>\n", false))
        send("ee\n", to: client)
        server.serve { "<\($0)>" }
        #expect(received(client) == ("<three>\n", false))
    }

    @Test func `A line that is too long ends its connection`() throws {
        let server = try make()
        defer { server.end() }
        for (line, words) in [
            (String(repeating: "x", count: 101), "the line is too long"),
            (String(repeating: "x", count: 101) + "\n", "too much at once"),
        ] {
            let client = try #require(UnixConnection(path))
            send(line, to: client)
            for _ in 0..<3 { server.serve { $0 } }
            let (text, isAtEnd) = received(client)
            #expect(text.contains(words) && isAtEnd, "\(text)")
        }
        let client = try #require(UnixConnection(path))
        send(String(repeating: "x", count: 100) + "\n", to: client)
        for _ in 0..<3 { server.serve { $0 } }
        #expect(received(client) == (String(repeating: "x", count: 100) + "\n", false))
    }

    @Test func `While a client waits for its response, others are served`() throws {
        let server = try make()
        defer { server.end() }
        let (waiting, other) = (
            try #require(UnixConnection(path)), try #require(UnixConnection(path))
        )
        var isThere = false
        func serve() {
            server.serve(deferring: { line in
                line == "later" ? .later { isThere ? "<later>" : nil } : .now("<\(line)>")
            })
        }
        send("one\nlater\ntwo\n", to: waiting)
        serve()
        send("three\n", to: other)
        send("four\n", to: waiting)
        serve()
        #expect(received(waiting) == ("<one>\n", false))
        #expect(received(other) == ("<three>\n", false))
        isThere = true
        serve()
        #expect(received(waiting) == ("<later>\n<two>\n<four>\n", false))
        send("later\n", to: waiting)
        serve()
        #expect(received(waiting) == ("<later>\n", false))
    }

    /// A shell closes its side for writing after the last command, and still reads.
    @Test func `A client that waits may end its requests, and leaves when it closes`() throws {
        let server = try make()
        defer { server.end() }
        var checks = 0
        var isThere = false
        func serve() {
            server.serve(deferring: { _ in
                .later {
                    checks += 1
                    return isThere ? "<later>" : nil
                }
            })
        }
        let reading = try #require(UnixConnection(path))
        var leaving = UnixConnection(path)
        for client in [reading, try #require(leaving)] { send("later\n", to: client) }
        #expect(shutdown(reading.descriptor, Int32(SHUT_WR)) == 0)
        serve()
        leaving = nil
        for _ in 0..<2 { serve() }
        checks = 0
        serve()
        #expect(checks == 1 && leaving == nil)
        isThere = true
        serve()
        #expect(received(reading) == ("<later>\n", true))
    }

    @Test func `Only an idle client makes room, and without one a new client is refused`() throws {
        let server = try make()
        defer { server.end() }
        func serve() {
            server.serve(deferring: { $0 == "later" ? .later { nil } : .now("<\($0)>") })
        }
        let clients = try (0..<UnixLineServer.clientsLimit).map { _ in
            try #require(UnixConnection(path))
        }
        for client in clients.dropLast() { send("later\n", to: client) }
        serve()
        // The idle client is the newest.
        send("last\n", to: clients[clients.count - 1])
        serve()
        let next = try #require(UnixConnection(path))
        send("later\n", to: next)
        serve()
        #expect(clients.map { received($0).isAtEnd } == clients.indices.map { $0 == 7 })
        let refused = try #require(UnixConnection(path))
        serve()
        let (text, isAtEnd) = received(refused)
        #expect(text.contains("8 clients wait for responses") && isAtEnd, "\(text)")
    }

    @Test func `The number of requests at once is limited`() throws {
        let lines = String(repeating: "a\n", count: 40)
        for (limit, count) in [(16, 16), (Int.max, 40)] {
            let server = try make(.init(lineBytes: 100, requestsAtOnce: limit))
            defer { server.end() }
            let client = try #require(UnixConnection(path))
            send(lines, to: client)
            server.serve { $0 }
            let (text, isAtEnd) = received(client)
            #expect(text.split(separator: "\n").filter { $0 == "a" }.count == count)
            #expect(isAtEnd == (limit == 16))
        }
    }

    @Test func `The client that was silent for longest makes room`() throws {
        let server = try make()
        defer { server.end() }
        let clients = try (0..<UnixLineServer.clientsLimit).map { _ in
            try #require(UnixConnection(path))
        }
        server.serve { $0 }
        for client in clients where client !== clients[3] { send("a\n", to: client) }
        server.serve { $0 }
        let last = try #require(UnixConnection(path))
        server.serve { $0 }
        for client in clients { #expect(received(client).isAtEnd == (client === clients[3])) }
        #expect(!received(last).isAtEnd)
    }

    /// 2 MB of responses fit into no socket's buffer.
    @Test(arguments: [0, 10_000] as [Int32])
    func `A slow reader gets everything within its time`(milliseconds: Int32) throws {
        let server = try make(.init(lineBytes: 4096, replyMilliseconds: milliseconds))
        let client = try #require(UnixConnection(path))
        send(String(repeating: "a\n", count: 2000), to: client)
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        let (stop, stopping) = (ends[0], ends[1])
        let response = String(repeating: "x", count: 999)
        nonisolated(unsafe) let handed = server
        let thread = try WorkerThread {
            while handed.wait(orFor: stop) { handed.serve { _ in response } }
            handed.end()
        }
        // Nothing is read until the buffer is full. Without time for the rest, the server has left then.
        if milliseconds == 0 {
            #expect(SystemCall.poll(client.descriptor, 0, 60_000) == 1)
        } else {
            usleep(100_000)
        }
        var count = 0
        var room = [UInt8](repeating: 0, count: 65_536)
        while count < 2_000_000, SystemCall.poll(client.descriptor, POLLIN, 30_000) == 1 {
            let read = SystemCall.receive(client.descriptor, &room, 0)
            guard read > 0 else { break }
            count += read
        }
        #expect((count == 2_000_000) == (milliseconds > 0), "\(count) bytes")
        #expect(SystemCall.write(stopping, [1 as UInt8].rawSpan) == 1)
        thread.join()
        for end in ends { close(end) }
        #expect(access(path, F_OK) != 0, "the socket's file was left behind")
    }

    @Test func `Only a socket without listener is replaced`() throws {
        var first: UnixLineServer? = try make()
        var information = stat()
        #expect(stat(path, &information) == 0 && information.st_mode & 0o777 == 0o600)
        #expect(message { try make() }?.contains("in use by a running process") == true)
        let client = try #require(UnixConnection(path), "the first one still listens")
        withExtendedLifetime(client) {}
        first = nil
        #expect(access(path, F_OK) != 0 && first == nil)

        // As a process leaves it that was killed.
        let left = unixSocket()
        #expect(SystemCall.bind(left, try #require(unixAddress(path))) == 0)
        close(left)
        _ = try make()

        try Data("precious".utf8).write(to: URL(filePath: path))
        #expect(message { try make() }?.contains("is not a socket") == true)
        #expect(try String(contentsOfFile: path, encoding: .utf8) == "precious")
        let long = String(repeating: "x", count: unixPathLimit + 1)
        let limits = UnixLineServer.Limits(lineBytes: 100)
        let words = message { try UnixLineServer(long, option: "control", limits: limits) }
        #expect(words?.contains("is longer than 107 bytes") == true)
    }

    @Test(.enabled(if: geteuid() == 0, "a file is given to another user by root"))
    func `Another user's socket is left alone`() throws {
        let left = unixSocket()
        #expect(SystemCall.bind(left, try #require(unixAddress(path))) == 0)
        close(left)
        #expect(chown(path, 61_234, 61_234) == 0)
        #expect(message { try make() } != nil)
        #expect(access(path, F_OK) == 0)
    }

    @Test func `At its end a server removes only its own socket`() throws {
        let server = try make()
        try FileManager.default.removeItem(atPath: path)
        try Data("precious".utf8).write(to: URL(filePath: path))
        server.end()
        #expect(try String(contentsOfFile: path, encoding: .utf8) == "precious")
    }
}
