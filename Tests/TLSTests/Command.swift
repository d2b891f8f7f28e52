@testable import BroadsideTLS
import Foundation
import Glibc

/// The `openssl` command: another user of the library than ours.
final class Command {
    private var identifier: pid_t = 0
    private var input: Int32
    private let output: Int32
    private var pending: [UInt8] = []
    private var status: Int32?

    init(_ arguments: [String], input text: [UInt8]? = nil) throws {
        var toCommand: [Int32] = [0, 0]
        var fromCommand: [Int32] = [0, 0]
        // Closed on exec from the start: a command that runs beside must not keep them open.
        let kind = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        precondition(socketpair(AF_UNIX, kind, 0, &toCommand) == 0)
        precondition(socketpair(AF_UNIX, kind, 0, &fromCommand) == 0)
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, toCommand[0], 0)
        posix_spawn_file_actions_adddup2(&actions, fromCommand[1], 1)
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
        var words: [UnsafeMutablePointer<CChar>?] = (["openssl"] + arguments).map { strdup($0) }
        words.append(nil)
        defer { for word in words { free(word) } }
        let result = posix_spawnp(&identifier, "openssl", &actions, nil, words, environ)
        close(toCommand[0])
        close(fromCommand[1])
        input = toCommand[1]
        output = fromCommand[0]
        guard result == 0 else { throw TLSError(.library, "openssl did not start: \(result)") }
        if let text {
            write(text)
            close(input)
            input = -1
        }
    }

    deinit {
        stop()
        if input >= 0 { close(input) }
        close(output)
    }

    func write(_ bytes: [UInt8]) {
        _ = send(input, bytes, bytes.count, 0x4000)  // MSG_NOSIGNAL
    }

    func write(_ text: String) { write(Array(text.utf8)) }

    /// The next line of output without its end; nil at the end of all output.
    func line() -> String? {
        while true {
            if let end = pending.firstIndex(of: 10) {
                defer { pending.removeSubrange(...end) }
                return String(decoding: pending[..<end], as: UTF8.self)
            }
            if !readMore() { return nil }
        }
    }

    private func readMore() -> Bool {
        var bytes = [UInt8](repeating: 0, count: 65_536)
        var count = -1
        repeat { count = read(output, &bytes, bytes.count) } while count < 0 && errno == EINTR
        pending += bytes.prefix(max(0, count))
        return count > 0
    }

    /// All output and the status, once the command ended.
    func finish() -> (status: Int32, output: [UInt8]) {
        while readMore() {}
        return (wait(), pending)
    }

    /// Ends the process by its id.
    func stop() {
        guard status == nil else { return }
        // The test runner's threads block SIGTERM, and commands inherit that.
        kill(identifier, SIGKILL)
        _ = wait()
    }

    private func wait() -> Int32 {
        if let status { return status }
        var raw: Int32 = 0
        while waitpid(identifier, &raw, 0) < 0 && errno == EINTR {}
        status = raw
        return raw
    }

    static func run(_ arguments: [String], input: [UInt8] = []) throws -> (Int32, [UInt8]) {
        let command = try Command(arguments, input: input)
        let result = command.finish()
        return (result.status, result.output)
    }
}

/// A folder of files that is gone after the test.
final class Folder {
    let path: String

    init() {
        var template = Array("/tmp/tls-XXXXXX".utf8CString)
        precondition(mkdtemp(&template) != nil)
        path = String(decoding: template.prefix { $0 != 0 }.map(UInt8.init), as: UTF8.self)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// Writes a file and returns its path.
    func file(_ name: String, _ bytes: [UInt8]) throws -> String {
        let file = "\(path)/\(name)"
        try Data(bytes).write(to: URL(fileURLWithPath: file))
        return file
    }
}

/// A blocking TCP socket on the loopback address that gives up after five seconds.
final class LoopbackSocket {
    let descriptor: Int32

    private init(_ descriptor: Int32) {
        self.descriptor = descriptor
        var limit = timeval(tv_sec: 5, tv_usec: 0)
        setsockopt(
            descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    }

    deinit { close(descriptor) }

    convenience init(connectingTo port: UInt16) {
        self.init(socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0))
        precondition(Self.withAddress(port) { connect(descriptor, $0, $1) } == 0)
    }

    convenience init(listening: Void) {
        self.init(socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0))
        precondition(Self.withAddress(0) { bind(descriptor, $0, $1) } == 0)
        precondition(listen(descriptor, 8) == 0)
    }

    func accept() -> LoopbackSocket {
        let accepted = Glibc.accept(descriptor, nil, nil)
        _ = fcntl(accepted, F_SETFD, FD_CLOEXEC)
        return LoopbackSocket(accepted)
    }

    var port: UInt16 {
        var address = sockaddr_in()
        var count = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                _ = getsockname(descriptor, $0, &count)
            }
        }
        return UInt16(bigEndian: address.sin_port)
    }

    func write(_ bytes: [UInt8]) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, 0x4000) }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }

    /// What arrived; empty at the end, or when five seconds passed.
    func read() -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 16_384)
        let count = recv(descriptor, &bytes, bytes.count, 0)
        return Array(bytes.prefix(max(0, count)))
    }

    private static func withAddress(
        _ port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) -> Int32 {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }
}

extension Endpoint {
    /// Talks over a socket until a condition holds, or nothing comes any more.
    func run(over socket: LoopbackSocket, until done: () -> Bool) {
        while true {
            socket.write(takeOutgoing())
            if done() || isClosed || error != nil { return }
            let bytes = socket.read()
            guard !bytes.isEmpty else { return }
            receive(bytes)
        }
    }
}
