internal import BroadsideAPNs
import BroadsideSupport
internal import BroadsidePrimitives

/// One call of `broadside channel`: its request, and the meaning of its response.
struct ChannelCall {
    let action: ChannelOptions.Action
    let request: SingleRequest
    let server: SingleRequestServer
    private let app: String
    private let channel: String?
    private let storage: BroadcastChannel.Storage
    private let environment: Endpoints.Environment
    private let isJSON: Bool

    init(
        _ options: ChannelOptions, app: String, channel: String?, server: SingleRequestServer
    ) {
        assert(
            (channel != nil) == (options.action == .read || options.action == .delete),
            "reading or deleting a channel needs its ID")
        action = options.action
        self.app = app
        self.channel = channel
        self.server = server
        storage = options.storage
        environment = options.request.connection.environment
        isJSON = options.request.isJSON
        let path = BroadcastChannel.channelsPath(app: app)
        let named = channel.map { [(name: "apns-channel-id", value: $0)] } ?? []
        request =
            switch options.action {
            case .create:
                SingleRequest(
                    method: "POST", path: path,
                    body: Array(
                        "{\"message-storage-policy\":\(options.storage.policy),\"push-type\":\"\(BroadcastChannel.pushType)\"}"
                            .utf8))
            case .read: SingleRequest(method: "GET", path: path, fields: named)
            case .list: Self.list(app: app)
            case .delete: SingleRequest(method: "DELETE", path: path, fields: named)
            }
    }

    /// The request for the list of all channels.
    var list: SingleRequest { Self.list(app: app) }

    private static func list(app: String) -> SingleRequest {
        SingleRequest(method: "GET", path: BroadcastChannel.listPath(app: app))
    }

    /// Prints the request.
    func show() {
        print(server.preview(request) + "\npreview: nothing was sent")
    }

    /// Human-readable description of the operation.
    var plan: String {
        var text = "\(action) of app \(app)"
        if let channel { text += ", channel \(channel)" }
        if action == .create { text += ", storage \(storage.rawValue)" }
        return text + "\nto      \(server.hostAndPort)\nby      \(server.credential.summary)\n"
    }

    /// Whether the response means that the operation succeeded.
    func isSuccess(_ response: BlockingConnection.Response) -> Bool {
        switch action {
        case .create: response.status == 201 || response.status == 200
        case .read, .list: response.status == 200
        case .delete: response.status == 204 || response.status == 200
        }
    }

    /// Whether the response to a repeated delete means that the channel is gone. APNs reports
    /// ChannelNotRegistered, and has been seen to report BadPath.
    func isGone(_ response: BlockingConnection.Response) -> Bool {
        action == .delete
            && (response.reason == .channelNotRegistered || response.reason == .badPath)
    }

    /// Error for a response that refuses the request.
    func refusal(
        _ response: BlockingConnection.Response, exitCode: Int32
    ) -> BroadsideError {
        let advice = ChannelRefusal.advice(response, app: app, environment: environment)
        let isFromAPNs = ChannelRefusal.classify(response) != .notFromAPNs
        return BroadsideError(
            "\(isFromAPNs ? "APNs" : server.hostAndPort) refused the \(action): "
                + "\(response.summary): \(advice)",
            exitCode: exitCode)
    }

    /// Error for a response that neither accepts nor refuses the request.
    func uncertainty(_ response: BlockingConnection.Response) -> BroadsideError {
        BroadsideError(
            "\(server.hostAndPort): the response to the \(action) is \(response.summary), which does "
                + "not say whether APNs processed the request: try again later, and check --endpoint",
            exitCode: ExitCode.failure)
    }

    // MARK: Results

    /// Prints the result of an operation that succeeded.
    ///
    /// - Parameter response: nil if a repeated delete found that the channel is gone.
    func finish(_ response: BlockingConnection.Response?) throws(BroadsideError) {
        var line = JSONLine()
        line.add("app", app)
        line.add("environment", environment.rawValue)
        let text: String
        switch action {
        case .create:
            let channel = try createdChannel(response)
            line.add("channel", channel)
            line.add("storage", storage.rawValue)
            text = channel + "\n"
        case .read:
            let found = try Self.configuration(in: response)
            line.add("channel", channel)
            line.add("storage", found.storage)
            line.add("push_type", found.pushType)
            text = "storage    \(found.storage)\npush type  \(found.pushType)\n"
        case .list:
            let channels = try Self.channels(in: response)
            line.addRaw(
                "channels", "[\(channels.map(JSONLine.quoted).joined(separator: ","))]")
            text = channels.map { $0 + "\n" }.joined()
        case .delete:
            line.add("channel", channel)
            text = "deleted \(channel ?? "")\n"
        }
        line.add("request_id", response?.field("apns-request-id"))
        printText(isJSON ? line.object + "\n" : text)
    }

    private func createdChannel(
        _ response: BlockingConnection.Response?
    ) throws(BroadsideError) -> String {
        guard let channel = response?.field("apns-channel-id"), BroadcastChannel.isID(channel.utf8)
        else {
            throw BroadsideError(
                "\(server.hostAndPort) accepted the request, but its response names no channel: find "
                    + "the channel with broadside channel list, and check --endpoint",
                exitCode: ExitCode.openRows)
        }
        return channel
    }

    /// Returns the channels in the response to a `list` request.
    static func channels(
        in response: BlockingConnection.Response?
    ) throws(BroadsideError) -> [String] {
        struct List: Decodable { var channels: [String] }
        guard let response,
            let list = try? JSONCoding.decode(List.self, from: response.body),
            list.channels.allSatisfy({ BroadcastChannel.isID($0.utf8) })
        else { throw unreadable("list of channels") }
        return list.channels
    }

    private static func configuration(
        in response: BlockingConnection.Response?
    ) throws(BroadsideError) -> (storage: String, pushType: String) {
        struct Configuration: Decodable {
            var policy: Int
            var pushType: String?

            private enum CodingKeys: String, CodingKey {
                case policy = "message-storage-policy"
                case pushType = "push-type"
            }
        }
        guard let response,
            let found = try? JSONCoding.decode(Configuration.self, from: response.body)
        else { throw unreadable("channel") }
        let storage = BroadcastChannel.Storage(policy: found.policy)?.rawValue
        return (storage ?? "policy \(found.policy)", found.pushType ?? BroadcastChannel.pushType)
    }

    private static func unreadable(_ what: String) -> BroadsideError {
        BroadsideError(
            "the response is not a \(what) in APNs' format: check --endpoint",
            exitCode: ExitCode.failure)
    }
}
