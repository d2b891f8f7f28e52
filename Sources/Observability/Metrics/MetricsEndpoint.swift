internal import BroadsideLocalHTTP
import BroadsideSupport
internal import Synchronization

/// HTTP endpoint for `GET /metrics`. It responds with the text that was published last, and never
/// accesses the run itself.
package final class MetricsEndpoint: Sendable {
    /// Published text, which the thread of the HTTP daemon reads.
    private final class Page: Sendable {
        let text = Mutex<[UInt8]>([])
        /// Whether the endpoint is reachable only from this machine.
        let isLocal: Bool

        init(isLocal: Bool) { self.isLocal = isLocal }
    }

    private let page: Page
    private let daemon: HTTPDaemon
    /// URL of the endpoint, for messages.
    package let url: String

    /// Settings for the connections of scrapers, which last only a short time.
    private static let settings = HTTPDaemon.Settings(
        connectionsLimit: 16, timeoutSeconds: 10, isThreaded: false)

    /// Maximum number of open files of the endpoint and its clients.
    package static var descriptorsLimit: Int { settings.descriptorsLimit }

    /// - Parameters:
    ///   - host: A numeric address.
    ///   - port: Port to listen on; 0 picks a free one.
    init(host: String, port: UInt16) throws(BroadsideError) {
        let page = Page(isLocal: HTTPHost.isLoopback(host))
        daemon = try HTTPDaemon(
            option: "metrics", host: host, port: port, instead: "name a file", Self.settings
        ) { request in
            let (status, text) = Self.reply(to: request, page)
            return HTTPReply(
                status: status, contentType: "text/plain; version=0.0.4; charset=utf-8", body: text)
        }
        self.page = page
        url = "http://\(daemon.address)/metrics"
    }

    func publish(_ text: String) {
        page.text.withLock { $0 = Array(text.utf8) }
    }

    private static func reply(
        to request: HTTPRequest, _ page: Page
    ) -> (status: UInt32, text: [UInt8]) {
        // Every browser sends a Host header, so a request without one is not from a browser.
        if page.isLocal, let host = request.host, !HTTPHost.isAllowed(host) {
            return (403, Array("use localhost or an IP address as the host's name\n".utf8))
        }
        guard request.method == "GET" || request.method == "HEAD" else {
            return (405, Array("only GET\n".utf8))
        }
        guard request.path == "/metrics" else { return (404, Array("see /metrics\n".utf8)) }
        let text = page.text.withLock { $0 }
        guard !text.isEmpty else { return (503, Array("no metrics yet: the run starts\n".utf8)) }
        return (200, text)
    }
}
