import BroadsideAPNs
import BroadsideEngine
public import BroadsideSupport
internal import Glibc

/// Runs `channel`: creates, reads, lists or deletes broadcast channels.
public enum ChannelRun {
    /// Maximum number of attempts of a request that may be repeated.
    private static let attemptsMax = 3

    /// Sends the request and prints the result.
    ///
    /// - Returns: 0.
    /// - Throws: Exit code 1 if APNs can't be reached or is overloaded, 2 if the request is wrong,
    ///   4 if APNs refuses it, 6 if it is unknown whether a channel was created or deleted.
    public static func run(_ options: ChannelOptions) throws(BroadsideError) -> Int32 {
        var options = options
        // The environment decides the port. A chosen one that contradicts the endpoint's host is
        // refused later.
        options.request.connection.adoptEnvironmentOfEndpoint()
        let app = try options.request.checkedApp()
        let needsChannel = options.action == .read || options.action == .delete
        guard needsChannel || options.request.channel == nil else {
            throw .usage("channel", "is not an option of channel \(options.action): leave it out")
        }
        let channel = needsChannel ? try options.request.checkedChannel() : nil
        let environment = options.request.connection.environment
        var warnings: [String] = []
        let server = try SingleRequestServer(
            options.request.connection, host: Endpoints.channelHost(environment),
            port: Endpoints.channelPort(environment), bodyLimit: BroadcastChannel.listCountMax,
            warnings: &warnings)
        try server.credential.checkApp(app, options.request.connection)
        for warning in warnings { standardErrorLine("broadside: warning: \(warning)") }
        let call = ChannelCall(options, app: app, channel: channel, server: server)
        if options.request.preview != nil {
            call.show()
            return 0
        }
        if options.request.isDryRun {
            printText(call.plan)
            return 0
        }
        if options.action == .delete { try confirm(options, call) }
        try call.finish(try perform(call))
        return 0
    }

    /// Asks a person at a terminal to confirm a delete; a script confirms with `--yes`.
    private static func confirm(
        _ options: ChannelOptions, _ call: ChannelCall
    ) throws(BroadsideError) {
        guard !options.request.isConfirmed else { return }
        guard isatty(STDIN_FILENO) == 1 else {
            throw .usage(
                "yes",
                "is missing: a deleted channel can't be restored, so confirm the deletion with "
                    + "--yes")
        }
        standardError(call.plan)
        standardError("A deleted channel can't be restored. Type yes to delete it:")
        guard readLine() == "yes" else {
            throw .request("not confirmed: nothing was deleted; in a script, confirm with --yes")
        }
    }

    /// Sends the request. Repeats it only if that is safe.
    ///
    /// - Returns: The response that means success; nil if a repeated delete found that the channel
    ///   is gone.
    private static func perform(
        _ call: ChannelCall
    ) throws(BroadsideError) -> BlockingConnection.Response? {
        var isInDoubt = false
        do throws(BroadsideError) {
            return try perform(call, &isInDoubt)
        } catch {
            guard call.action == .delete, isInDoubt, error.exitCode == ExitCode.failure else {
                throw error
            }
            throw BroadsideError(
                "\(error.message); broadside channel list shows whether the channel still exists",
                exitCode: ExitCode.openRows)
        }
    }

    /// Makes the request, in several attempts if necessary.
    ///
    /// - Parameter isInDoubt: Set to true if an attempt may have been processed.
    private static func perform(
        _ call: ChannelCall, _ isInDoubt: inout Bool
    ) throws(BroadsideError) -> BlockingConnection.Response? {
        switch call.action {
        case .create: RequestInterruption.handle(.create)
        case .delete: RequestInterruption.handle(.delete)
        case .read, .list: break
        }
        for attempt in 1...attemptsMax {
            let isLast = attempt == attemptsMax
            let connection = try call.server.connect()
            var retryAfter: UInt64?
            RequestInterruption.beginFlight()
            switch try call.server.exchange(call.request, over: connection) {
            case .response(let response):
                if call.isSuccess(response) {
                    try checkSize(connection, call)
                    return response
                }
                if isInDoubt, call.isGone(response) { return nil }
                switch ChannelRefusal.classify(response) {
                case .busy:
                    // APNs may have deleted the channel before its error. "A repeat that finds no
                    // channel is a success."
                    if call.action == .delete, response.status ?? 0 >= 500 { isInDoubt = true }
                    guard !isLast else {
                        throw call.refusal(response, exitCode: ExitCode.failure)
                    }
                    retryAfter = response.retryAfterSeconds
                case .lost where call.action == .create: throw orphan(call, response.summary)
                case .lost:
                    isInDoubt = true
                    guard !isLast else { throw call.uncertainty(response) }
                case .credential, .notFromAPNs, .request:
                    throw call.refusal(response, exitCode: ExitCode.refused)
                }
                guard
                    let seconds = RepeatDelay.seconds(after: attempt, retryAfter: retryAfter)
                else { throw call.refusal(response, exitCode: ExitCode.failure) }
                try RequestInterruption.endFlight(isInDoubt ? .unknown : .notProcessed)
                RepeatDelay.wait(seconds: seconds)
                continue
            case .notProcessed(let refusal, let cause):
                if let refusal {
                    throw call.refusal(
                        BlockingConnection.Response(status: nil, reason: refusal),
                        exitCode: ExitCode.refused)
                }
                guard !isLast else {
                    throw BroadsideError(
                        "\(call.server.hostAndPort) did not process the \(call.action) in "
                            + "\(attemptsMax) attempts: \(cause): try again later",
                        exitCode: ExitCode.failure)
                }
            case .lost(let message):
                // "Create is not idempotent": a repeat would create a second channel, and the ID of
                // the first one is lost.
                if call.action == .create { throw orphan(call, message) }
                isInDoubt = true
                guard !isLast else {
                    throw BroadsideError(
                        "\(call.server.hostAndPort): no response to the \(call.action): \(message)",
                        exitCode: ExitCode.failure)
                }
            }
            try RequestInterruption.endFlight(isInDoubt ? .unknown : .notProcessed)
            if let seconds = RepeatDelay.seconds(after: attempt, retryAfter: nil) {
                RepeatDelay.wait(seconds: seconds)
            }
        }
        preconditionFailure("the last attempt returns or throws")
    }

    private static func checkSize(
        _ connection: BlockingConnection, _ call: ChannelCall
    ) throws(BroadsideError) {
        guard connection.bodyIsTooLong else { return }
        throw BroadsideError(
            "\(call.server.hostAndPort): the response has more than "
                + "\(grouped(BroadcastChannel.listCountMax)) bytes, too many for a list of channels: "
                + "is this APNs? check --endpoint",
            exitCode: ExitCode.failure)
    }

    /// Error for a `create` without a response. It reports how many channels exist now.
    private static func orphan(_ call: ChannelCall, _ cause: String) -> BroadsideError {
        var count = ""
        if !RequestInterruption.isStopRequested, let connection = try? call.server.connect(),
            case .response(let response)? = try? call.server.exchange(
                call.list, over: connection), response.status == 200, !connection.bodyIsTooLong,
            let channels = try? ChannelCall.channels(in: response)
        {
            count = "; the app has \(grouped(channels.count)) channels now"
        }
        return BroadsideError(
            "the response to the create request was lost (\(cause))\(count): compare broadside "
                + "channel list with your records, delete any channel that you do not know (an "
                + "orphan), then create again",
            exitCode: ExitCode.openRows)
    }
}

extension Credential {
    /// Checks that a certificate is valid for an app and an environment.
    func checkApp(_ app: String, _ options: SendOptions) throws(BroadsideError) {
        guard case .certificate(_, let scope) = self else { return }
        guard scope.topics.isEmpty || scope.topics.contains(app) else {
            throw .usage(
                "app",
                "'\(app)' is not a topic of the certificate (\(scope.topics.joined(separator: ", "))): "
                    + "use one of them, or another certificate")
        }
        try check(NotificationHeaders(topic: app), options)
    }
}
