internal import Glibc
internal import Ring
internal import Support

/// A Unix socket that takes commands, a line each, and answers each with a line.
///
/// Its file belongs to the owner alone (mode 0600). A connection may send any number of lines. A
/// thread of its own serves all, one after the other: commands are rare and short.
final class ControlSocket: Sendable {
    /// Connections at a time; a further one takes the place of the one that was silent for longest.
    private static let maximumConnections = 8
    /// Bytes of a line; a longer one ends its connection.
    private static let maximumLine = 4096

    private let thread: EndpointThread
    private let path: String

    /// Starts listening.
    ///
    /// - Parameter answer: Gets a line without its end, returns one likewise.
    init(
        path: String, answer: @escaping @Sendable (String) -> String
    ) throws(SimulatorError) {
        self.path = path
        let listener = try Self.listen(path)
        do throws(RingError) {
            thread = try EndpointThread { (stopDescriptor, isReady) throws(RingError) in
                isReady()
                Self.serve(listener, stopDescriptor: stopDescriptor, answer)
                return SimulatorTotals()
            }
        } catch {
            _ = close(listener)
            throw SimulatorError(error.description, exitCode: 1)
        }
    }

    /// Ends all connections and removes the socket's file. Called once.
    func stop() {
        thread.wake()
        _ = thread.join()
        SystemCall.unlink(path)
    }

    private static func listen(_ path: String) throws(SimulatorError) -> Int32 {
        func failure(_ text: String) -> SimulatorError {
            SimulatorError("--control \(path): \(text)", exitCode: 2)
        }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let name = Array(path.utf8)
        let room = MemoryLayout.size(ofValue: address.sun_path)
        guard !name.isEmpty, name.count < room else {
            throw failure("the path is longer than \(room - 1) bytes: name a shorter one")
        }
        // SAFETY: the name is shorter than `sun_path`, which is zero behind it.
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: name) }
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw failure(describe(errno: errno)) }
        // What a simulator that was killed left behind answers nobody; anything else stays.
        if SystemCall.connect(descriptor, address) == 0 {
            _ = close(descriptor)
            throw failure("another process listens there already: name another path")
        }
        if errno == ECONNREFUSED {
            // Linux says the same of a file that is not a socket.
            guard let information = SystemCall.linkStatus(path),
                information.st_mode & S_IFMT == S_IFSOCK
            else {
                _ = close(descriptor)
                throw failure("is there already and is not a socket: name another path")
            }
            SystemCall.unlink(path)
        }
        // Nobody else may connect, not even for the moment before a chmod.
        let mask = umask(0o177)
        let isBound = SystemCall.bind(descriptor, address) == 0
        let code = errno
        _ = umask(mask)
        guard isBound, Glibc.listen(descriptor, 8) == 0 else {
            _ = close(descriptor)
            throw failure("\(describe(errno: code)): name a path that can be made")
        }
        return descriptor
    }

    private struct Connection {
        let descriptor: Int32
        var line: [UInt8] = []
    }

    private static func serve(
        _ listener: Int32, stopDescriptor: Int32, _ answer: (String) -> String
    ) {
        // The client that was silent for longest comes first.
        var connections: [Connection] = []
        defer {
            for connection in connections { _ = close(connection.descriptor) }
            _ = close(listener)
        }
        while true {
            var waited = [
                pollfd(fd: stopDescriptor, events: Int16(POLLIN), revents: 0),
                pollfd(fd: listener, events: Int16(POLLIN), revents: 0),
            ]
            waited += connections.map {
                pollfd(fd: $0.descriptor, events: Int16(POLLIN), revents: 0)
            }
            guard SystemCall.poll(&waited, -1) >= 0 || errno == EINTR else {
                return
            }
            if waited[0].revents != 0 { return }
            for index in connections.indices.reversed() where waited[2 + index].revents != 0 {
                var connection = connections.remove(at: index)
                if take(&connection, answer) {
                    connections.append(connection)
                } else {
                    _ = close(connection.descriptor)
                }
            }
            if waited[1].revents != 0 {
                let descriptor = accept(listener, nil, nil)
                guard descriptor >= 0 else { continue }
                // Nobody holds the thread up by not reading its answer.
                SystemCall.setOption(
                    descriptor, SO_SNDTIMEO, timeval(tv_sec: 1, tv_usec: 0))
                if connections.count == maximumConnections {
                    _ = close(connections.removeFirst().descriptor)
                }
                connections.append(Connection(descriptor: descriptor))
            }
        }
    }

    /// Reads what has come and answers whole lines; false where the connection is at its end.
    private static func take(
        _ connection: inout Connection, _ answer: (String) -> String
    ) -> Bool {
        var bytes = [UInt8](repeating: 0, count: maximumLine)
        let count = SystemCall.receive(connection.descriptor, &bytes, Int(MSG_DONTWAIT))
        guard count > 0 else { return false }
        connection.line += bytes[..<count]
        while let end = connection.line.firstIndex(of: 0x0a) {
            let line = String(decoding: connection.line[..<end], as: UTF8.self)
            connection.line.removeSubrange(...end)
            guard send(Array((answer(line) + "\n").utf8), to: connection.descriptor) else {
                return false
            }
        }
        return connection.line.count < maximumLine
    }

    private static func send(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
        var offset = 0
        while offset < bytes.count {
            let count = SystemCall.send(
                descriptor, bytes.span.rawBytes.extracting(offset...))
            guard count > 0 else { return false }
            offset += count
        }
        return true
    }
}
