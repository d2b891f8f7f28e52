internal import BroadsideLocalHTTP
internal import BroadsideRing
internal import BroadsideSupport

/// The commands of the control socket, over HTTP. The words of a command are the path, and its
/// named arguments are the query. `GET /` lists the commands.
final class ControlEndpoint: Sendable {
    /// Settings of the HTTP server. Each `wait` has a thread of its own, and the timeout is longer
    /// than the longest `wait`.
    private static let settings = HTTPDaemon.Settings(
        connectionsLimit: 32, timeoutSeconds: UInt32(2 * WaitTimeout.limitSeconds),
        isThreaded: true)

    private let daemon: HTTPDaemon

    /// Starts listening.
    init(
        listen: String, commands: ControlCommands
    ) throws(SimulatorError) {
        let address = try SimulatorOptions.address(listen, option: "control-listen")
        let host = Self.host(of: listen)
        let isLocal = HTTPHost.isLoopback(host)
        daemon = try SimulatorError.converted { () throws(BroadsideError) in
            try HTTPDaemon(
                option: "control-listen", host: host, port: address.port,
                instead: "use --control PATH", Self.settings
            ) { Self.reply(to: $0, isLocal: isLocal, commands) }
        }
    }

    /// The address and port, as in a URL.
    var address: String { daemon.address }

    /// The numeric address in an option's value. The value has already been checked.
    private static func host(of listen: String) -> String {
        let host = listen[..<(listen.lastIndex(of: ":") ?? listen.endIndex)]
        if host == "localhost" { return "127.0.0.1" }
        return String(host.drop { $0 == "[" }.prefix { $0 != "]" })
    }

    private static func reply(
        to request: HTTPRequest, isLocal: Bool, _ commands: ControlCommands
    ) -> HTTPReply {
        func json(_ status: UInt32, _ text: String) -> HTTPReply {
            HTTPReply(
                status: status, contentType: "application/json", body: Array((text + "\n").utf8))
        }
        func failure(_ status: UInt32, _ message: String) -> HTTPReply {
            json(status, ControlCommands.failure(message))
        }
        // Every browser sends a Host header, so a request without one is not from a browser.
        if isLocal, let host = request.host, !HTTPHost.isAllowed(host) {
            return failure(403, "the URL names another host: use 127.0.0.1 or localhost")
        }
        if request.isCrossSite {
            return failure(
                403,
                "a web page of another site can't control the simulator: send the request from a "
                    + "program, without an Origin header")
        }
        let words = request.path.split(separator: "/").map(String.init)
        if words.isEmpty { return json(200, list) }
        do throws(ControlProblem) {
            let command = try ControlRequest(words: words, named: request.query)
            let isReading = request.method == "GET" || request.method == "HEAD"
            guard command.command.isReading ? isReading : request.method == "POST" else {
                return failure(
                    405,
                    "\(command.command.rawValue) needs "
                        + (command.command.isReading
                            ? "GET: leave out -X" : "POST: add -X POST"))
            }
            return json(200, try commands.execute(command))
        } catch {
            let status: UInt32 =
                switch error.kind {
                case .invalid: 400
                case .unknown: 404
                case .full: 409
                case .late: 504
                }
            return failure(status, error.message)
        }
    }

    /// Human-readable list of the commands.
    private static var list: String {
        var line = ControlCommands.success
        let commands = ControlCommand.allCases.map { command in
            JSONLine.quoted(
                (command.isReading ? "GET /" : "POST /")
                    + command.usage.split(separator: " ").filter { !$0.hasPrefix("[") }
                    .joined(separator: "/"))
        }
        line.addRaw("commands", "[\(commands.joined(separator: ","))]")
        return line.object
    }
}
