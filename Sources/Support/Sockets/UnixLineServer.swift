internal import Glibc

/// A Unix stream socket on which the owner of a process may ask and order: a line comes in, a line goes
/// out.
///
/// Its file is for nobody else (mode 0600). A stale one in its place is replaced, anything else stays
/// untouched, and in the end only its own is removed.
package final class UnixLineServer {
    /// What is taken of one client.
    package struct Limits {
        /// The longest line.
        var lineBytes: Int
        /// Requests of one connection that are answered in one look.
        var requestsAtOnce: Int
        /// How long a client may leave its responses unread, milliseconds.
        var replyMilliseconds: Int32

        package init(lineBytes: Int, requestsAtOnce: Int = .max, replyMilliseconds: Int32 = 0) {
            precondition(lineBytes > 0 && requestsAtOnce > 0 && replyMilliseconds >= 0)
            self.lineBytes = lineBytes
            self.requestsAtOnce = requestsAtOnce
            self.replyMilliseconds = replyMilliseconds
        }
    }

    private struct Client {
        var descriptor: Int32
        var received: [UInt8] = []
        /// The look at which it connected, or said something last.
        var lastActive: UInt64
    }

    private let path: String
    private let limits: Limits
    /// Keeps what the path leads through.
    private let kept: AnyObject?
    private let descriptor: Int32
    /// The socket's file, so that only our own is removed.
    private let file: FileIdentity?
    private var hasEnded = false
    private var clients: [Client] = []
    private var rounds: UInt64 = 0

    /// Connections that are served at the same time; a further one takes the place of the one that has
    /// been silent for longest.
    static let clientsLimit = 8
    /// Connections that are taken in one look.
    static let connectionsAtOnce = 16

    /// Makes the socket; a stale one is replaced, anything else stays untouched.
    ///
    /// - Parameters:
    ///   - option: The option that asks for it, for errors.
    ///   - kept: What has to stay for the path to lead to its place.
    package init(
        _ path: String, option: String, limits: Limits, keeping kept: AnyObject? = nil
    ) throws(BroadsideError) {
        self.path = path
        self.limits = limits
        self.kept = kept
        guard let address = unixAddress(path) else {
            throw .usage(
                option,
                "\(path): longer than the \(unixPathLimit) bytes of a socket's path: name a shorter one"
            )
        }
        try Self.removeStaleSocket(path, option)
        let descriptor = unixSocket()
        guard descriptor >= 0 else { throw Self.failure(path, option) }
        // No other thread makes files yet: the mask is ours alone, and the file is never open to others.
        let mask = umask(0o177)
        let isBound = SystemCall.bind(descriptor, address) == 0
        let bindError = errno
        umask(mask)
        guard isBound, listen(descriptor, 16) == 0 else {
            if !isBound { errno = bindError }
            let failure = Self.failure(path, option)
            close(descriptor)
            throw failure
        }
        self.descriptor = descriptor
        file = FileIdentity(link: path)
    }

    deinit { end() }

    /// Ends all connections and removes the socket's file. Nothing is served any more.
    package func end() {
        guard !hasEnded else { return }
        hasEnded = true
        // As long as it listens, nobody puts another one in its place.
        if let file, FileIdentity(link: path) == file { SystemCall.unlink(path) }
        for client in clients { close(client.descriptor) }
        clients = []
        close(descriptor)
    }

    /// Removes a socket that nothing listens on any more.
    private static func removeStaleSocket(_ path: String, _ option: String) throws(BroadsideError) {
        guard let information = SystemCall.linkStatus(path) else { return }
        guard information.st_mode & S_IFMT == S_IFSOCK else {
            throw .usage(option, "\(path) exists and is not a socket: name another place")
        }
        let probe = UnixConnection(path)
        // A full queue is that of a process which takes no connections at the moment.
        guard probe == nil, errno != EAGAIN else {
            throw .usage(
                option,
                "\(path) is in use by a running process: name another place, or end that "
                    + "one")
        }
        guard errno == ECONNREFUSED, information.st_uid == geteuid() else {
            throw failure(path, option)
        }
        guard SystemCall.unlink(path) == 0 else { throw failure(path, option) }
    }

    private static func failure(_ path: String, _ option: String) -> BroadsideError {
        .file(option: option, path, errno: errno, "name a place for the socket")
    }

    /// Waits until there is something to serve.
    ///
    /// - Returns: false once something can be read from the other descriptor.
    package func wait(orFor other: Int32) -> Bool {
        var waited = ([other, descriptor] + clients.map(\.descriptor)).map {
            pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
        }
        while SystemCall.poll(&waited, -1) < 0 {
            guard errno == EINTR else { return false }
        }
        return waited[0].revents == 0
    }

    /// Answers what has come in, without waiting for more.
    ///
    /// - Parameter answer: Makes one line of another.
    package func serve(_ respond: (String) -> String) {
        precondition(!hasEnded)
        rounds += 1
        for index in clients.indices.reversed() { serve(index, respond) }
        for _ in 0..<Self.connectionsAtOnce {
            let client = accept(descriptor, nil, nil)
            guard client >= 0 else { break }
            _ = fcntl(client, F_SETFD, FD_CLOEXEC)
            _ = fcntl(client, F_SETFL, O_NONBLOCK)
            if clients.count == Self.clientsLimit { dropQuietest() }
            clients.append(Client(descriptor: client, lastActive: rounds))
            // What it has said already is answered before another one may take its place.
            serve(clients.count - 1, respond)
        }
    }

    private func serve(_ index: Int, _ respond: (String) -> String) {
        let (isOpen, hasReceived) = respondToLines(of: &clients[index], respond)
        if hasReceived { clients[index].lastActive = rounds }
        if !isOpen { drop(index) }
    }

    private func drop(_ index: Int) { close(clients.remove(at: index).descriptor) }

    private func dropQuietest() {
        let quietest = clients.indices.min { clients[$0].lastActive < clients[$1].lastActive }
        if let quietest { drop(quietest) }
    }

    /// Reads and answers whole lines.
    ///
    /// - Returns: Whether the connection is of further use, and whether anything came.
    private func respondToLines(
        of client: inout Client, _ respond: (String) -> String
    ) -> (isOpen: Bool, hasReceived: Bool) {
        var room = [UInt8](repeating: 0, count: limits.lineBytes)
        let count = SystemCall.receive(client.descriptor, &room, 0)
        if count < 0 { return (errno == EAGAIN || errno == EINTR, false) }
        client.received += room[..<count]
        var answered = 0
        while let end = client.received.firstIndex(of: 0x0a) {
            var line = client.received[..<end]
            if line.last == 0x0d { line.removeLast() }
            answered += 1
            guard line.count <= limits.lineBytes, answered <= limits.requestsAtOnce else {
                _ = reply(
                    "{\"ok\":false,\"error\":\"too much at once: send one line per request\"}",
                    to: client)
                return (false, true)
            }
            let text = respond(String(decoding: line, as: UTF8.self))
            client.received.removeSubrange(...end)
            guard reply(text, to: client) else { return (false, true) }
        }
        guard client.received.count <= limits.lineBytes else {
            _ = reply("{\"ok\":false,\"error\":\"the line is too long\"}", to: client)
            return (false, true)
        }
        return (count > 0, count > 0)
    }

    /// Whether the client took it: one that does not read its responses is given up.
    private func reply(_ text: String, to client: Client) -> Bool {
        let bytes = Array(text.utf8) + [0x0a]
        var sent = 0
        while sent < bytes.count {
            let count = SystemCall.send(client.descriptor, bytes.rawSpan.extracting(sent...))
            if count > 0 {
                sent += count
            } else if errno == EAGAIN {
                let ready = SystemCall.poll(client.descriptor, POLLOUT, limits.replyMilliseconds)
                guard ready > 0 || ready < 0 && errno == EINTR else { return false }
            } else if errno != EINTR {
                return false
            }
        }
        return true
    }
}
