import Foundation
import Synchronization

/// A directory that is gone with its last user.
package final class TemporaryDirectory: Sendable {
    package let path: String
    private let names = Atomic<Int>(0)

    package init() throws {
        var template = Array("\(NSTemporaryDirectory())/broadside-test-XXXXXX".utf8CString)
        guard let made = mkdtemp(&template) else {
            throw TestFailure("no temporary directory: \(String(cString: strerror(errno)))")
        }
        path = String(cString: made)
    }

    deinit {
        // Set where the files of a failed test are wanted.
        if ProcessInfo.processInfo.environment["BROADSIDE_KEEP_FILES"] == nil {
            try? FileManager.default.removeItem(atPath: path)
        }
    }

    /// A path inside that nothing has used yet.
    package func fresh(_ name: String) -> String {
        let number = names.add(1, ordering: .relaxed).newValue
        return "\(path)/\(number)-\(name)"
    }

    /// Writes a file; returns its path.
    @discardableResult
    package func write(_ text: String, to name: String) throws -> String {
        try write(Array(text.utf8), to: name)
    }

    /// Writes a file; returns its path.
    @discardableResult
    package func write(_ bytes: [UInt8], to name: String) throws -> String {
        let file = "\(path)/\(name)"
        try Data(bytes).write(to: URL(filePath: file))
        return file
    }

    /// The names inside, of hidden files too.
    package func names(in directory: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: directory).sorted()
    }
}

/// Ports for servers that can't choose one themselves.
package enum Ports {
    private static let next = Atomic<Int>(Int(getpid()) * 37 % 9000)

    /// A file whose byte N is locked by the test process that has port N, until it ends. Several
    /// processes would otherwise find the same port free at the same time.
    private static let claims = open(
        FileManager.default.temporaryDirectory.path + "/broadside-test-ports",
        O_RDWR | O_CREAT | O_CLOEXEC, 0o666)

    private static func claim(_ port: Int) -> Bool {
        var lock = flock()
        lock.l_type = Int16(F_WRLCK)
        lock.l_whence = Int16(SEEK_SET)
        lock.l_start = off_t(port)
        lock.l_len = 1
        return claims < 0 || fcntl(claims, F_SETLK, &lock) == 0
    }

    /// A port that nobody listens on, below those that the kernel gives to clients.
    package static func free() throws -> Int {
        for _ in 0..<500 {
            let port = 20_000 + next.add(1, ordering: .relaxed).newValue % 9000
            if claim(port), isFree(port) { return port }
        }
        throw TestFailure("no free port from 20000 to 29000")
    }

    private static func isFree(_ port: Int) -> Bool {
        let socket = socket(AF_INET6, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        defer { close(socket) }
        var address = sockaddr_in6()
        address.sin6_family = sa_family_t(AF_INET6)
        address.sin6_port = in_port_t(port).bigEndian
        address.sin6_addr = in6addr_any
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(socket, address, socklen_t(MemoryLayout<sockaddr_in6>.size)) == 0
            }
        }
    }

    /// Waits until somebody listens there.
    package static func wait(for port: Int, at host: String, of process: Subprocess) throws {
        for _ in 0..<6000 {
            guard process.isRunning else {
                let log = FileManager.default.contents(atPath: process.errorsPath) ?? Data()
                throw TestFailure("a server did not start: \(String(decoding: log, as: UTF8.self))")
            }
            if canConnect(port, host) { return }
            usleep(10_000)
        }
        throw TestFailure("a server did not listen on \(host):\(port) within 60 s")
    }

    private static func canConnect(_ port: Int, _ host: String) -> Bool {
        var hints = addrinfo()
        hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, "\(port)", &hints, &list) == 0, let list else { return false }
        defer { freeaddrinfo(list) }
        let socket = socket(
            list.pointee.ai_family, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        defer { close(socket) }
        return connect(socket, list.pointee.ai_addr, list.pointee.ai_addrlen) == 0
    }
}
