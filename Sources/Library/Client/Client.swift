import BroadsideAPNs
import BroadsideCampaigns
import BroadsideEngine
import BroadsideSupport
internal import Synchronization

/// Sends single notifications over a few connections that stay open. Thousands of notifications may
/// be in flight at the same time.
///
/// A client has a thread of its own, which ends after `close` or when the last reference is
/// released. Use one client per credential for the life of the program.
public final class Client: Sendable {
    private let queue: PushQueue
    private let options: ClientOptions
    /// Credential for further requests.
    private let current: Mutex<ClientCredential>
    private let kind: NotificationHeaders.Credential
    private let timeout: UInt64

    /// Reads and checks the credential. The first push opens a connection.
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
        self.options = options
        kind = made.credential.credential.kind
        current = Mutex(made.credential)
        timeout = options.timeout.wholeNanoseconds
    }

    deinit { queue.close() }

    private static func make(
        _ credential: APNsCredential, _ choices: ClientOptions
    ) throws(BroadsideError) -> (queue: PushQueue, credential: ClientCredential) {
        let read = try ClientCredential(credential, choices)
        let queue = try PushQueue(limit: choices.pushesLimit)
        let loop = ClientLoop(queue, choices, read)
        // SAFETY: the loop belongs to the thread that is started here.
        nonisolated(unsafe) let unshared = loop
        try HostedRun { _ in }.start { unsafe unshared.run() }
        return (queue, read)
    }

    /// Sends all further requests with another credential: a new key, or a renewed certificate. If
    /// the same credential is passed, its files are read again.
    ///
    /// Connections are replaced; requests in flight still get their responses.
    ///
    /// - Throws: If the credential is wrong or of another kind, or if its key or provider token belongs
    ///   to another team. The previous credential then stays in use.
    public func replaceCredential(_ credential: APNsCredential) async throws(CampaignError) {
        let read = try await OwnThread.run { [options] () throws(BroadsideError) in
            try ClientCredential(credential, options)
        }.get()
        try current.withLock { (current) throws(CampaignError) in
            try read.checkSuccession(of: current)
            current = read
            queue.replaceCredential(read)
        }
    }

    /// Number of pushes that wait for a response.
    public var pushesAwaited: Int { queue.count }

    /// Sends a notification and waits for its response.
    ///
    /// A task that is cancelled gets an error at once. A request that was already sent can't be
    /// taken back, so the device may still get the notification.
    ///
    /// - Returns: APNs' response, whatever its status.
    /// - Throws: If there is no response. After `CampaignError.Code.responseLost` and after a
    ///   cancelled task, the device may have the notification; after any other error, it does not.
    public func send(_ push: Push) async throws(CampaignError) -> PushResponse {
        let request = try PushRequest(
            push, credential: kind, timeout: timeout, now: Clock.now().nanoseconds)
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

    /// Refuses further pushes, waits for the responses to all earlier pushes, and ends the
    /// connections.
    public func close() async {
        queue.close()
        await queue.end()
    }
}
