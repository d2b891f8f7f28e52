package import BroadsideSupport
internal import CBroadsideMicrohttpd
internal import Glibc
internal import Synchronization

/// A request to an endpoint of this process, without its body.
package struct HTTPRequest: Sendable {
    package var method: String
    /// The path without the query, percent-decoded.
    package var path: String
    /// The parameters of the query in their order, decoded.
    package var query: [(name: String, value: String)]
    /// Value of the `Host` header. Every browser sends one.
    package var host: String?
    /// Value of the `Origin` header. A browser adds it to a web page's requests to another site.
    package var origin: String?
    /// Value of the `Sec-Fetch-Site` header: how the site of the web page relates to this endpoint.
    package var fetchSite: String?

    /// Whether the request may come from a web page of another site.
    package var isCrossSite: Bool {
        if let fetchSite, fetchSite != "same-origin", fetchSite != "none" { return true }
        guard let origin else { return false }
        return host.map { origin != "http://\($0)" } ?? true
    }
}

/// The response to a request.
package struct HTTPReply: Sendable {
    package var status: UInt32
    package var contentType: String
    package var body: [UInt8]

    package init(status: UInt32, contentType: String, body: [UInt8]) {
        assert((200...599).contains(status), "a reply has a final status")
        self.status = status
        self.contentType = contentType
        self.body = body
    }
}

/// An HTTP endpoint of this process, served by libmicrohttpd on its own threads.
@safe package final class HTTPDaemon: @unchecked Sendable {
    /// The limits on a daemon's connections, and whether each connection has its own thread.
    package struct Settings: Sendable {
        /// Maximum number of simultaneous connections.
        package var connectionsLimit: Int
        /// Seconds after which a silent connection is closed.
        package var timeoutSeconds: UInt32
        /// Whether each connection has a thread of its own. If so, the handler may block, but for
        /// less than `timeoutSeconds`.
        package var isThreaded: Bool

        /// Limit on connections that includes those that are about to be closed. New connections
        /// are accepted while the oldest ones close.
        var acceptedLimit: Int { 2 * connectionsLimit }

        /// Maximum number of open files: connections, the socket, and those with which the daemon
        /// waits.
        package var descriptorsLimit: Int { acceptedLimit + 4 }

        package init(connectionsLimit: Int, timeoutSeconds: UInt32, isThreaded: Bool) {
            self.connectionsLimit = connectionsLimit
            self.timeoutSeconds = timeoutSeconds
            self.isThreaded = isThreaded
        }
    }

    /// The state that the daemon's threads use. Outlives the daemon, which is stopped first.
    private final class Service: Sendable {
        let library: HTTPLibrary
        let respond: @Sendable (HTTPRequest) -> HTTPReply
        let connectionsLimit: Int
        /// Sockets of open connections, the oldest first.
        private let sockets = Mutex<[Int32]>([])

        init(
            _ library: HTTPLibrary, connectionsLimit: Int,
            _ respond: @escaping @Sendable (HTTPRequest) -> HTTPReply
        ) {
            self.library = library
            self.connectionsLimit = connectionsLimit
            self.respond = respond
        }

        /// Records a new connection. If there are more connections than the limit, the oldest one
        /// is shut down, so that slow or silent clients do not block other clients.
        func began(_ socket: Int32) {
            sockets.withLock { sockets in
                sockets.append(socket)
                // The daemon still owns the socket, and closes it once it sees the end of the
                // stream.
                if sockets.count > connectionsLimit { shutdown(sockets[0], Int32(SHUT_RDWR)) }
            }
        }

        /// Removes a connection that is about to be closed.
        func ended(_ socket: Int32) {
            sockets.withLock { sockets in
                if let index = sockets.firstIndex(of: socket) { sockets.remove(at: index) }
            }
        }
    }

    private let service: Service
    // SAFETY: owned by libmicrohttpd, started in `init` and stopped in `deinit`, and accessed only
    // here.
    private var daemon: OpaquePointer?
    /// The address and port, as in a URL.
    package let address: String

    /// Maximum number of parameters of a query; further ones are ignored.
    private static let queryLimit = 64

    /// - Parameters:
    ///   - option: The option with the address, for messages.
    ///   - host: A numeric address.
    ///   - port: 0 picks a free one.
    ///   - instead: Advice for a user without libmicrohttpd, for messages.
    ///   - respond: Maps a request to its response, on one of the daemon's threads.
    package init(
        option: String, host: String, port: UInt16, instead: String, _ settings: Settings,
        _ respond: @escaping @Sendable (HTTPRequest) -> HTTPReply
    ) throws(BroadsideError) {
        let shownHost = host.contains(":") ? "[\(host)]" : host
        guard let library = HTTPLibrary.shared else {
            throw .usage(
                option,
                "an endpoint needs libmicrohttpd: install it (Debian: libmicrohttpd12), or "
                    + instead)
        }
        service = Service(library, connectionsLimit: settings.connectionsLimit, respond)
        // SAFETY: the daemon copies the address and the options. The service that it gets as
        // context lives as long as this object, whose `deinit` stops the daemon first.
        let context = unsafe Unmanaged.passUnretained(service).toOpaque()
        let daemon = unsafe microhttpd_start(
            library.functions, host, port, Self.handler, context, Self.notify,
            UInt32(settings.acceptedLimit), settings.timeoutSeconds,
            settings.isThreaded ? 1 : 0)
        guard let daemon = unsafe daemon else {
            throw .file(
                option: option, "\(shownHost):\(port)", errno: errno, "name a free port, or :0")
        }
        unsafe self.daemon = daemon
        address = "\(shownHost):\(unsafe microhttpd_port(library.functions, daemon))"
    }

    // SAFETY: stopped once; the call returns when the daemon's threads have ended.
    deinit {
        if let daemon = unsafe daemon {
            unsafe microhttpd_stop(service.library.functions, daemon)
        }
    }

    private static let notify: MHD_NotifyConnectionCallback = { context, connection, _, code in
        // SAFETY: the context is the service from `init`. It lives until the daemon is stopped,
        // which ends all connections.
        guard let context = unsafe context, let connection = unsafe connection else { return }
        let service = unsafe Unmanaged<Service>.fromOpaque(context).takeUnretainedValue()
        let socket = unsafe microhttpd_socket(service.library.functions, connection)
        // MHD_CONNECTION_NOTIFY_STARTED
        if code.rawValue == 0 { service.began(socket) } else { service.ended(socket) }
    }

    private static let handler: MHD_AccessHandlerCallback = {
        context, connection, url, method, _, _, bodyCount, state in
        // SAFETY: the context is the service from `init`, which lives until the daemon is stopped.
        // libmicrohttpd keeps the texts, which end with a zero byte, until the handler returns. It
        // copies the reply. The state is a mark that is never dereferenced.
        guard let context = unsafe context, let connection = unsafe connection,
            let url = unsafe url, let method = unsafe method, let state = unsafe state
        else { return MHD_Result(rawValue: 0)! }
        let service = unsafe Unmanaged<Service>.fromOpaque(context).takeUnretainedValue()
        // The first call announces a request. Further calls bring its body, which is ignored. The
        // last call expects the response.
        if unsafe state.pointee == nil {
            unsafe state.pointee = UnsafeMutableRawPointer(bitPattern: 1)
            return MHD_Result(rawValue: 1)!
        }
        if let bodyCount = unsafe bodyCount, unsafe bodyCount.pointee > 0 {
            unsafe bodyCount.pointee = 0
            return MHD_Result(rawValue: 1)!
        }
        let functions = unsafe service.library.functions
        func header(_ name: String) -> String? {
            // SAFETY: as above; the text is copied.
            unsafe microhttpd_header(functions, connection, name).map {
                unsafe String(cString: $0)
            }
        }
        let query = Query()
        unsafe microhttpd_query(
            functions, connection, takeParameter, Unmanaged.passUnretained(query).toOpaque())
        let request = unsafe HTTPRequest(
            method: String(cString: method), path: String(cString: url), query: query.parameters,
            host: header("Host"), origin: header("Origin"), fetchSite: header("Sec-Fetch-Site"))
        let reply = service.respond(request)
        return unsafe reply.body.withUnsafeBytes { bytes in
            unsafe microhttpd_reply(
                functions, connection, reply.status, reply.contentType, bytes.baseAddress,
                bytes.count)
        }
    }

    /// Collects the parameters of a query while libmicrohttpd reports them one by one.
    private final class Query {
        var parameters: [(name: String, value: String)] = []
    }

    private static let takeParameter: MHD_KeyValueIterator = { context, _, name, value in
        // SAFETY: the context is the handler's `Query`, alive during the call; the texts are copied.
        guard let context = unsafe context, let name = unsafe name else {
            return MHD_Result(rawValue: 0)!
        }
        let query = unsafe Unmanaged<Query>.fromOpaque(context).takeUnretainedValue()
        guard query.parameters.count < queryLimit else { return MHD_Result(rawValue: 0)! }
        query.parameters.append(
            unsafe (String(cString: name), value.map { unsafe String(cString: $0) } ?? ""))
        return MHD_Result(rawValue: 1)!
    }
}
