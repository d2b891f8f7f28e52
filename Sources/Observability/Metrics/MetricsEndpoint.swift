import BroadsideSupport
internal import CBroadsideMicrohttpd
internal import Glibc
internal import Synchronization

/// `GET /metrics`, served by libmicrohttpd on its own thread. It responds with the most recently
/// published text and never accesses the run.
@safe package final class MetricsEndpoint: @unchecked Sendable {
    /// Content for the daemon's thread; outlives the daemon, which is stopped first.
    private final class Page: Sendable {
        let library: HTTPLibrary
        let text = Mutex<[UInt8]>([])
        /// Whether the endpoint is reachable only from this machine.
        let isLocal: Bool
        /// Sockets of open connections, the oldest first.
        private let sockets = Mutex<[Int32]>([])

        init(_ library: HTTPLibrary, isLocal: Bool) {
            self.library = library
            self.isLocal = isLocal
        }

        /// Records a new connection. Beyond the limit, the oldest one is shut down, so that slow or
        /// silent clients do not block others.
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

    private let page: Page
    // SAFETY: owned by libmicrohttpd, started in `init` and stopped in `deinit`, and accessed only
    // here.
    private var daemon: OpaquePointer?
    /// URL of the endpoint, for people.
    package let url: String

    /// Maximum number of simultaneous connections.
    private static let connectionsLimit = 16
    /// Seconds after which a silent connection is closed.
    private static let timeoutSeconds: UInt32 = 10

    /// - Parameters:
    ///   - host: A numeric address.
    ///   - port: 0 picks a free one.
    init(host: String, port: UInt16) throws(BroadsideError) {
        let shownHost = host.contains(":") ? "[\(host)]" : host
        guard let library = HTTPLibrary.shared else {
            throw .usage(
                "metrics",
                "an endpoint needs libmicrohttpd: install it (Debian: libmicrohttpd12), or name a file"
            )
        }
        page = Page(library, isLocal: MetricsHost.isLoopback(host))
        // SAFETY: the daemon copies the address and the options; the page that it gets as context
        // lives as long as this object, whose `deinit` stops it before.
        let context = unsafe Unmanaged.passUnretained(page).toOpaque()
        let daemon = unsafe microhttpd_start(
            library.functions, host, port, Self.handler, context, Self.notify,
            // Twice the limit, so that new connections are accepted while the oldest ones close.
            UInt32(2 * Self.connectionsLimit), Self.timeoutSeconds)
        guard let daemon = unsafe daemon else {
            throw .file(
                option: "metrics", "\(shownHost):\(port)", errno: errno, "name a free port, or :0")
        }
        unsafe self.daemon = daemon
        url = "http://\(shownHost):\(unsafe microhttpd_port(library.functions, daemon))/metrics"
    }

    // SAFETY: stopped once; the call returns when the daemon's thread has ended.
    deinit {
        if let daemon = unsafe daemon {
            unsafe microhttpd_stop(page.library.functions, daemon)
        }
    }

    func publish(_ text: String) {
        page.text.withLock { $0 = Array(text.utf8) }
    }

    private static let notify: MHD_NotifyConnectionCallback = { context, connection, _, code in
        // SAFETY: the context is `init`'s page, which lives until the daemon is stopped, and with
        // it the last connection.
        guard let context = unsafe context, let connection = unsafe connection else { return }
        let page = unsafe Unmanaged<Page>.fromOpaque(context).takeUnretainedValue()
        let socket = unsafe microhttpd_socket(page.library.functions, connection)
        // MHD_CONNECTION_NOTIFY_STARTED
        if code.rawValue == 0 { page.began(socket) } else { page.ended(socket) }
    }

    private static let handler: MHD_AccessHandlerCallback = {
        context, connection, url, method, _, _, _, _ in
        // SAFETY: the context is `init`'s page, which lives until the daemon is stopped;
        // libmicrohttpd keeps the texts, which end with a zero byte, until the handler returns. It
        // copies the reply.
        guard let context = unsafe context, let connection = unsafe connection,
            let url = unsafe url, let method = unsafe method
        else { return MHD_Result(rawValue: 0)! }
        let page = unsafe Unmanaged<Page>.fromOpaque(context).takeUnretainedValue()
        // Every browser sends a Host header; a request without one does not come from a browser.
        let host = unsafe microhttpd_host(page.library.functions, connection)
            .map { unsafe String(cString: $0) }
        let (status, text) = unsafe reply(
            to: String(cString: method), String(cString: url), host: host, page)
        return unsafe text.withUnsafeBytes { bytes in
            unsafe microhttpd_reply(
                page.library.functions, connection, status, bytes.baseAddress, bytes.count)
        }
    }

    private static func reply(
        to method: String, _ path: String, host: String?, _ page: Page
    ) -> (status: UInt32, text: [UInt8]) {
        if page.isLocal, let host, !MetricsHost.isAllowed(host) {
            return (403, Array("use localhost or an IP address as the host's name\n".utf8))
        }
        guard method == "GET" || method == "HEAD" else { return (405, Array("only GET\n".utf8)) }
        guard path == "/metrics" else { return (404, Array("see /metrics\n".utf8)) }
        return (200, page.text.withLock { $0 })
    }
}
