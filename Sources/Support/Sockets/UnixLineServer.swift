internal import Glibc

/// A Unix stream socket for status and control requests from the owner of the process. Each request
/// and each response is one line.
///
/// The socket file is accessible only to its owner (mode 0600). A stale socket at the path is
/// replaced, and any other file is left unchanged. At the end, only the server's own file is
/// removed.
package final class UnixLineServer {
    /// The limits for one client.
    package struct Limits {
        /// Maximum byte count of a line.
        var lineBytes: Int
        /// Maximum number of requests that one call of `serve` handles for one connection.
        var requestsAtOnce: Int
        /// Time in milliseconds for which a client may leave its responses unread.
        var replyMilliseconds: Int32

        package init(lineBytes: Int, requestsAtOnce: Int = .max, replyMilliseconds: Int32 = 0) {
            precondition(lineBytes > 0 && requestsAtOnce > 0 && replyMilliseconds >= 0)
            self.lineBytes = lineBytes
            self.requestsAtOnce = requestsAtOnce
            self.replyMilliseconds = replyMilliseconds
        }
    }

    /// The response to a request.
    package enum Response {
        case now(String)
        /// The closure returns the response, or nil as long as there is none. Until then, further
        /// requests of the same client wait, and other clients are served.
        case later(() -> String?)
    }

    private struct Client {
        var descriptor: Int32
        var received: [UInt8] = []
        /// Returns the response that the client waits for, or nil as long as there is none.
        var awaited: (() -> String?)?
        /// Number of the call of `serve` in which the client connected or last sent data.
        var lastActive: UInt64
    }

    private let path: String
    private let limits: Limits
    /// An object that must live as long as the path is used.
    private let kept: AnyObject?
    private let descriptor: Int32
    /// The identity of the socket file, so that the server removes only its own file.
    private let file: FileIdentity?
    private var hasEnded = false
    private var clients: [Client] = []
    private var rounds: UInt64 = 0
    /// Whether the latest connection could not be accepted because no more files can be opened.
    private var isOutOfFiles = false

    /// Maximum number of simultaneous connections; a further one replaces the connection that has
    /// been idle longest.
    static let clientsLimit = 8
    /// Maximum number of open files: the socket, its clients, and one that replaces a client.
    package static var descriptorsLimit: Int { clientsLimit + 2 }
    /// Maximum number of connections that one call of `serve` accepts.
    static let connectionsAtOnce = 16

    /// Time for which `wait` ignores new connections if no more files can be opened.
    private static let acceptPauseMilliseconds: Int32 = 100
    /// Time between two checks of whether a response that a client waits for exists.
    private static let responsePauseMilliseconds: Int32 = 2

    /// Creates the socket; a stale one is replaced, any other file is left unchanged.
    ///
    /// - Parameters:
    ///   - option: The option that requests the socket, for errors.
    ///   - kept: An object that must live as long as the path is used.
    package init(
        _ path: String, option: String, limits: Limits, keeping kept: AnyObject? = nil
    ) throws(BroadsideError) {
        self.path = path
        self.limits = limits
        self.kept = kept
        try Self.check(path, option: option)
        let address = try Self.address(path, option)
        try Self.removeStaleSocket(path, option)
        let descriptor = unixSocket()
        guard descriptor >= 0 else { throw Self.failure(path, option) }
        // No other thread creates files yet, so the umask can be changed, and the file is never
        // accessible to others.
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

    /// Checks that a socket can be created at a path. Creates and removes nothing.
    package static func check(_ path: String, option: String) throws(BroadsideError) {
        _ = try address(path, option)
        if let information = SystemCall.linkStatus(path),
            information.st_mode & S_IFMT != S_IFSOCK
        {
            throw .usage(option, "\(path) exists and is not a socket: choose another place")
        }
        try checkFolder(of: path, option: option, advice)
    }

    private static func address(
        _ path: String, _ option: String
    ) throws(BroadsideError) -> sockaddr_un {
        if let address = unixAddress(path) { return address }
        throw .usage(
            option,
            "\(path) is longer than \(unixPathLimit) bytes, the limit of a socket's path: name a shorter path"
        )
    }

    /// Closes all connections and removes the socket file. After that, no request is served.
    package func end() {
        guard !hasEnded else { return }
        hasEnded = true
        // While this process listens, no other process can replace the socket file.
        if let file, FileIdentity(link: path) == file { SystemCall.unlink(path) }
        for client in clients { close(client.descriptor) }
        clients = []
        close(descriptor)
    }

    /// Removes a socket on which no process listens.
    private static func removeStaleSocket(_ path: String, _ option: String) throws(BroadsideError) {
        guard let information = SystemCall.linkStatus(path) else { return }
        let probe = UnixConnection(path)
        // A full queue belongs to a process that is not accepting connections at the moment.
        guard probe == nil, errno != EAGAIN else {
            throw .usage(
                option,
                "\(path) is in use by a running process: choose another place, "
                    + "or end that process")
        }
        guard errno == ECONNREFUSED, information.st_uid == geteuid() else {
            throw failure(path, option)
        }
        guard SystemCall.unlink(path) == 0 else { throw failure(path, option) }
    }

    private static let advice = "name a place for the socket"

    private static func failure(_ path: String, _ option: String) -> BroadsideError {
        .file(option: option, path, errno: errno, advice)
    }

    /// Waits until there is a request to serve, or a response that a client waits for may exist.
    ///
    /// - Returns: False if `other` has become readable instead.
    package func wait(orFor other: Int32) -> Bool {
        // A connection that can't be accepted would end the wait at once.
        let listener = isOutOfFiles ? -1 : descriptor
        var waited = [other, listener].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        // The further requests of a client that waits are not read yet.
        waited += clients.map {
            pollfd(
                fd: $0.descriptor, events: $0.awaited == nil ? Int16(POLLIN) : 0, revents: 0)
        }
        var pause = isOutOfFiles ? Self.acceptPauseMilliseconds : -1
        if clients.contains(where: { $0.awaited != nil }) { pause = Self.responsePauseMilliseconds }
        while SystemCall.poll(&waited, pause) < 0 {
            guard errno == EINTR else { return false }
        }
        return waited[0].revents == 0
    }

    /// Responds to all requests received so far, without waiting for more.
    ///
    /// - Parameter respond: Maps a request line to a response line.
    package func serve(_ respond: (String) -> String) {
        serve(deferring: { .now(respond($0)) })
    }

    /// Responds to all requests received so far whose responses exist, without waiting for more.
    ///
    /// - Parameter respond: Maps a request line to a response line, or to one that follows later.
    package func serve(deferring respond: (String) -> Response) {
        precondition(!hasEnded)
        rounds += 1
        for index in clients.indices.reversed() { serve(index, respond) }
        for _ in 0..<Self.connectionsAtOnce {
            let client = accept(descriptor, nil, nil)
            isOutOfFiles = client < 0 && (errno == EMFILE || errno == ENFILE)
            guard client >= 0 else { break }
            _ = fcntl(client, F_SETFD, FD_CLOEXEC)
            _ = fcntl(client, F_SETFL, O_NONBLOCK)
            guard clients.count < Self.clientsLimit || dropQuietest() else {
                refuse(client)
                continue
            }
            clients.append(Client(descriptor: client, lastActive: rounds))
            // Requests already received are handled before another connection may replace this one.
            serve(clients.count - 1, respond)
        }
        assert(clients.count <= Self.clientsLimit, "the quietest client makes room for a new one")
    }

    private func serve(_ index: Int, _ respond: (String) -> Response) {
        let (isOpen, hasReceived) = respondToLines(of: &clients[index], respond)
        if hasReceived { clients[index].lastActive = rounds }
        if !isOpen { drop(index) }
    }

    private func drop(_ index: Int) { close(clients.remove(at: index).descriptor) }

    /// Ends the connection that has been idle longest.
    ///
    /// - Returns: False if all clients wait for responses.
    private func dropQuietest() -> Bool {
        let idle = clients.indices.filter { clients[$0].awaited == nil }
        let quietest = idle.min { clients[$0].lastActive < clients[$1].lastActive }
        guard let quietest else { return false }
        drop(quietest)
        return true
    }

    private func refuse(_ descriptor: Int32) {
        _ = reply(
            "{\"ok\":false,\"error\":\"\(Self.clientsLimit) clients wait for responses: try again "
                + "when one has its response\"}",
            to: Client(descriptor: descriptor, lastActive: rounds))
        close(descriptor)
    }

    /// Sends the response that a client waits for, then reads and handles whole lines.
    ///
    /// - Returns: Whether the connection remains usable, and whether the client is active: data
    ///   arrived, or the client waits for a response.
    private func respondToLines(
        of client: inout Client, _ respond: (String) -> Response
    ) -> (isOpen: Bool, hasReceived: Bool) {
        if let awaited = client.awaited {
            guard let text = awaited() else { return (!hasHungUp(client), true) }
            client.awaited = nil
            guard reply(text, to: client), handleLines(of: &client, respond) else {
                return (false, true)
            }
            if client.awaited != nil { return (true, true) }
        }
        var room = [UInt8](repeating: 0, count: limits.lineBytes)
        let count = SystemCall.receive(client.descriptor, &room, 0)
        if count < 0 { return (errno == EAGAIN || errno == EINTR, false) }
        client.received += room[..<count]
        guard handleLines(of: &client, respond) else { return (false, true) }
        if client.awaited != nil { return (true, true) }
        guard client.received.count <= limits.lineBytes else {
            _ = reply("{\"ok\":false,\"error\":\"the line is too long\"}", to: client)
            return (false, true)
        }
        return (count > 0, count > 0)
    }

    /// Handles the whole lines received so far, up to the first whose response follows later.
    ///
    /// - Returns: Whether the connection remains usable.
    private func handleLines(of client: inout Client, _ respond: (String) -> Response) -> Bool {
        var handled = 0
        while client.awaited == nil, let end = client.received.firstIndex(of: 0x0a) {
            var line = client.received[..<end]
            if line.last == 0x0d { line.removeLast() }
            handled += 1
            guard line.count <= limits.lineBytes, handled <= limits.requestsAtOnce else {
                _ = reply(
                    "{\"ok\":false,\"error\":\"too much at once: send one line per request\"}",
                    to: client)
                return false
            }
            let response = respond(String(decoding: line, as: UTF8.self))
            client.received.removeSubrange(...end)
            let text: String? =
                switch response {
                case .now(let text): text
                case .later(let awaited): awaited()
                }
            if let text {
                guard reply(text, to: client) else { return false }
            } else if case .later(let awaited) = response {
                client.awaited = awaited
            }
        }
        return true
    }

    /// Returns whether the client has closed its connection. A client that only sends no more
    /// requests still reads its responses.
    private func hasHungUp(_ client: Client) -> Bool {
        SystemCall.poll(client.descriptor, 0, 0) > 0
    }

    /// Returns whether the client accepted the response; a client that does not read its responses
    /// is disconnected.
    private func reply(_ text: String, to client: Client) -> Bool {
        assert(!text.utf8.contains(0x0a), "a response is one line")
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
