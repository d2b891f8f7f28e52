import BroadsideAPNs
import BroadsideCampaigns
import BroadsideEngine
import BroadsideSupport
internal import Synchronization

/// Sends single notifications, thousands at once, over few connections that stay open.
///
/// A client has a thread of its own, which ends with `close` or with the last reference. Use one
/// client per credential for the life of the program.
public final class Client: Sendable {
    private let queue: PushQueue
    private let credential: NotificationHeaders.Credential
    private let timeout: UInt64

    /// Reads and checks the credential; a connection is opened for the first push.
    ///
    /// - Throws: If the credential or an option is wrong.
    public init(
        credential: APNsCredential, options: ClientOptions = ClientOptions()
    ) async throws(CampaignError) {
        guard options.connectionsLimit > 0, options.pushesLimit > 0 else {
            throw CampaignError(
                .invalid, property: "ClientOptions.connectionsLimit",
                "limits on connections and pushes are at least 1")
        }
        let made = try await OwnThread.run { () throws(BroadsideError) in
            try Self.make(credential, options)
        }.get()
        queue = made.queue
        self.credential = made.kind
        timeout = options.timeout.wholeNanoseconds
    }

    deinit { queue.close() }

    private static func make(
        _ credential: APNsCredential, _ choices: ClientOptions
    ) throws(BroadsideError) -> (queue: PushQueue, kind: NotificationHeaders.Credential) {
        var options = SendOptions()
        choices.server.apply(to: &options)
        try credential.apply(to: &options)
        var warnings: [String] = []
        let read = try Credential.read(options, warnings: &warnings)
        let route = try Route.read(options, warnings: &warnings)
        for warning in warnings {
            choices.logger?.log(RunLogEntry(line: "broadside: warning: \(warning)"))
        }
        let context = try CampaignRun.tlsContext(options, read, resumesSessions: true)
        let queue = try PushQueue(limit: choices.pushesLimit)
        let loop = try ClientLoop(queue, choices, route, route.tlsConfiguration(context), read)
        // SAFETY: the loop belongs to the thread that is started here.
        nonisolated(unsafe) let unshared = loop
        try HostedRun { _ in }.start { unsafe unshared.run() }
        return (queue, read.kind)
    }

    /// Number of pushes that are awaited.
    public var pushesAwaited: Int { queue.count }

    /// Sends a notification and waits for its response.
    ///
    /// A task that is cancelled gets an error at once. A request that is already on its way is not
    /// taken back: the device may get the notification.
    ///
    /// - Returns: APNs' response, whatever its status.
    /// - Throws: If there is no response. Only `CampaignError.Code.responseLost` and a cancelled
    ///   task leave open whether the notification is delivered.
    public func send(_ push: Push) async throws(CampaignError) -> PushResponse {
        let (deadline, isFar) = Clock.now().nanoseconds.addingReportingOverflow(timeout)
        let request = try PushRequest(
            push, credential: credential, deadline: isFar ? .max : deadline)
        let outcome = await withTaskCancellationHandler { () -> PushRequest.Outcome in
            await withCheckedContinuation {
                (task: CheckedContinuation<PushRequest.Outcome, Never>) in
                guard request.begin(task), let refusal = queue.put(request) else { return }
                request.finish(.failure(refusal))
            }
        } onCancel: {
            request.finish(
                .failure(
                    CampaignError(.stopped, "the task was cancelled: the push may be sent anyway")))
        }
        return try outcome.get()
    }

    /// Takes no more pushes, waits for the responses to those that are awaited, and ends the
    /// connections.
    public func close() async {
        queue.close()
        await queue.end()
    }
}
