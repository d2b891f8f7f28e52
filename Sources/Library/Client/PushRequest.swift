import BroadsideAPNs
import BroadsideHPACK
import BroadsideSupport
internal import FoundationEssentials
internal import Synchronization

/// A push in progress: its request, and the task that waits for the outcome. Once the push is in
/// the queue, threads other than the client's may only call `finish`, `begin` and `isFinished`.
final class PushRequest: @unchecked Sendable {
    typealias Outcome = Result<PushResponse, CampaignError>

    private enum Waiter: Sendable {
        /// No task waits yet.
        case none
        case task(CheckedContinuation<Outcome, Never>)
        case finished(Outcome)
    }

    /// Maximum number of requests for one push. A request is repeated if the server did not process
    /// it, or refused a provider token that is no longer in use. Requests that a GOAWAY refused do
    /// not count.
    static let attemptsLimit = 5
    /// Maximum number of bytes of a topic. With it, all header fields fit into one frame.
    static let topicByteLimit = 255
    /// Times from here on, in the year 5138, are no expirations; seconds since 1970.
    static let expirationLimit = 1e11

    let id: UUID
    let payload: [UInt8]
    /// Time limit for sending the push, and then for its response, nanoseconds each.
    let timeout: UInt64
    /// Time by which the push must be sent, monotonic nanoseconds.
    let sendBy: UInt64
    /// Header fields of the push, without the credential.
    private let fields: [RequestField]
    private let path: RequestField
    private let waiter = Mutex(Waiter.none)
    // Used only by the client's thread:
    var attempts = 0
    var streamID: UInt32 = 0
    /// The last value of the header field `authorization`; nil with a certificate.
    var authorization: [UInt8]?
    /// Offset of the request in all frames of its connection, bytes.
    var offset = 0
    /// Time by which the response must arrive, monotonic nanoseconds.
    var respondBy: UInt64 = 0

    /// Checks a push.
    ///
    /// - Throws: If APNs would refuse the push because of its form.
    init(
        _ push: Push, credential: NotificationHeaders.Credential, timeout: UInt64, now: UInt64
    ) throws(CampaignError) {
        guard let digits = canonicalToken(push.token) else {
            throw CampaignError(
                .invalid, property: "Push.token",
                "'\(wordExcerpt(push.token))' is not a device token: pass an even number of hexadecimal "
                    + "digits")
        }
        let limit = push.pushType == .voip ? 5_120 : 4_096
        guard push.payload.count <= limit, !push.payload.isEmpty else {
            throw CampaignError(
                .invalid, property: "Push.payload",
                "the payload has \(push.payload.count) bytes: pass JSON of 1 to \(limit) bytes")
        }
        guard push.topic.utf8.count <= Self.topicByteLimit else {
            throw CampaignError(
                .invalid, property: "Push.topic",
                "the topic has \(push.topic.utf8.count) bytes: pass at most \(Self.topicByteLimit)")
        }
        let expiration = try push.expiration.map { (date) throws(CampaignError) in
            try Self.seconds(date)
        }
        let headers = NotificationHeaders(
            topic: push.topic, pushType: push.pushType, priority: push.priority,
            expirationUnixSeconds: expiration, collapseID: push.collapseID)
        for problem in headers.validate(credential: credential) where problem.isError {
            let error = problem.asError
            throw CampaignError(
                .invalid,
                property: error.option.map {
                    "Push." + (PropertyName.property(ofOption: $0).split(separator: ".").last ?? "")
                },
                error.message.replacing("--", with: "Push."))
        }
        id = push.id
        payload = [UInt8](push.payload)
        self.timeout = timeout
        sendBy = now.addingClamped(timeout)
        path = RequestField(.path, .constant(Array("/3/device/".utf8) + digits))
        var fields: [RequestField] = []
        func add(_ name: RequestFieldName, _ value: String?) {
            guard let value else { return }
            fields.append(RequestField(name, .constant(Array(value.utf8))))
        }
        add(.topic, push.topic)
        add(.pushType, headers.pushType.rawValue)
        add(.identifier, push.id.uuidString.lowercased())
        add(.expiration, expiration.map { "\($0)" })
        add(.collapseIdentifier, push.collapseID)
        add(.priority, "\(headers.priority.rawValue)")
        self.fields = fields
    }

    /// Value of apns-expiration for a time.
    private static func seconds(_ date: Date) throws(CampaignError) -> UInt64 {
        let seconds = date.timeIntervalSince1970
        guard seconds < expirationLimit else {
            throw CampaignError(
                .invalid, property: "Push.expiration",
                "the expiration is \(seconds) s after 1970: pass a time before the year 5000")
        }
        return UInt64(max(0, seconds))
    }

    /// Fields in the order in which they are sent.
    func fields(authority: [UInt8], authorization: [UInt8]?) -> [RequestField] {
        let beginning = [
            RequestField(.method, "POST"), RequestField(.scheme, "https"), path,
            RequestField(.authority, .constant(authority)),
        ]
        return beginning
            + (authorization.map { [RequestField(.authorization, .constant($0))] } ?? []) + fields
    }

    // MARK: The task

    /// Registers the task that waits; returns false if the push already has an outcome.
    func begin(_ task: CheckedContinuation<Outcome, Never>) -> Bool {
        let known = waiter.withLock { waiter -> Outcome? in
            if case .finished(let outcome) = waiter { return outcome }
            assert(isWaiterFree(waiter), "one task waits for a push")
            waiter = .task(task)
            return nil
        }
        if let known { task.resume(returning: known) }
        return known == nil
    }

    private func isWaiterFree(_ waiter: Waiter) -> Bool {
        if case .none = waiter { return true }
        return false
    }

    /// Sets the outcome of the push; only the first one counts.
    func finish(_ outcome: Outcome) {
        let task = waiter.withLock { waiter -> CheckedContinuation<Outcome, Never>? in
            defer { if case .finished = waiter {} else { waiter = .finished(outcome) } }
            if case .task(let task) = waiter { return task }
            return nil
        }
        task?.resume(returning: outcome)
    }

    /// Whether the push already has an outcome.
    var isFinished: Bool {
        waiter.withLock { waiter in
            if case .finished = waiter { return true }
            return false
        }
    }
}

extension UInt64 {
    /// The sum, or the largest number if the sum is larger.
    func addingClamped(_ other: UInt64) -> UInt64 {
        let (sum, isFar) = addingReportingOverflow(other)
        return isFar ? .max : sum
    }
}
