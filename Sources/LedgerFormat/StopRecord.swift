internal import BroadsideAPNs
public import BroadsidePolicy

/// Stored form of a `StopCause`. It is flat, so that a cause of a later version is preserved.
public struct StopRecord: Codable, Hashable, Sendable {
    /// Kind of the cause: `signal`, `gave-up`, `refused`, ...
    public var kind: String
    /// Status of a refusal's response; 0 for a GOAWAY.
    public var status: UInt16?
    /// Reason of a refusal, in the spelling of APNs.
    public var reason: String?
    /// Whether a refusal concerns the credential instead of the request.
    var isCredential: Bool?
    /// The step that failed, if connections failed.
    var trouble: String?
    /// One-line description of the event.
    var detail: String?
    /// Number of rows or responses that a guard counted, or of seconds without a response.
    var count: UInt64?
    /// Total to which `count` relates.
    var total: UInt64?
    /// Whether the provider token came from `--auth-token-file`.
    var isSupplied: Bool?
    /// Whether the run received any response.
    public var wasAnswered: Bool

    /// Maximum length of `detail`, in characters.
    static let detailLimit = 500

    /// Stores the cause of a run's end.
    public init(_ cause: StopCause, wasAnswered: Bool) {
        self.init(kind: cause.storedKind, wasAnswered: wasAnswered)
        switch cause {
        case .complete, .signal, .control, .keyboard, .deadline, .tooManyBadTokens,
            .canaryWithoutResponses, .signingFailed, .ledgerGone, .superseded:
            break
        case .gaveUp(let trouble), .brokenServer(let trouble):
            take(trouble)
        case .noResponse(let seconds, let last):
            count = seconds
            if let last { take(last) }
        case .refused(let refusal), .onlyBadTokens(let refusal):
            take(refusal)
        case .heldBack(let rows, let refusal), .allRefused(let rows, let refusal):
            count = rows
            if let refusal { take(refusal) }
        case .topicsRefused(let detail, let refusal):
            self.detail = String(detail.prefix(Self.detailLimit))
            if let refusal { take(refusal) }
        case .tooManyInvalid(let count, let rows):
            (self.count, total) = (count, rows)
        case .canaryRefused(let count, let answered):
            (self.count, total) = (count, answered)
        case .expiredToken(let isSupplied):
            self.isSupplied = isSupplied
        case .ledgerFailed(let detail), .listFailed(let detail), .listFaulty(let detail),
            .listChanged(let detail), .failed(let detail):
            self.detail = String(detail.prefix(Self.detailLimit))
        }
    }

    private init(kind: String, wasAnswered: Bool) {
        self.kind = kind
        self.wasAnswered = wasAnswered
    }

    private mutating func take(_ trouble: ConnectionTrouble) {
        self.trouble = trouble.kind.rawValue
        detail = String(trouble.message.prefix(Self.detailLimit))
    }

    private mutating func take(_ refusal: StopCause.Refusal) {
        status = refusal.status
        reason = refusal.reason?.text ?? refusal.unknownReason
        isCredential = refusal.isCredential
    }

    /// Cause of the run's end; nil for a kind that this version does not know.
    public var cause: StopCause? {
        switch kind {
        case "complete": .complete
        case "signal": .signal
        case "control": .control
        case "keyboard": .keyboard
        case "deadline": .deadline
        case "gave-up": .gaveUp(connectionTrouble)
        case "no-response":
            .noResponse(seconds: count ?? 0, last: trouble == nil ? nil : connectionTrouble)
        case "broken-server": .brokenServer(connectionTrouble)
        case "refused": .refused(refusal)
        case "held-back":
            .heldBack(rows: count ?? 0, status == nil ? nil : refusal)
        case "all-refused":
            .allRefused(rows: count ?? 0, status == nil ? nil : refusal)
        case "only-bad-tokens": .onlyBadTokens(refusal)
        case "too-many-bad-tokens": .tooManyBadTokens
        case "topics-refused":
            .topicsRefused(detail: detail ?? "", status == nil ? nil : refusal)
        case "too-many-invalid": .tooManyInvalid(count: count ?? 0, rows: total ?? 0)
        case "canary-refused": .canaryRefused(count: count ?? 0, answered: total ?? 0)
        case "canary-unanswered": .canaryWithoutResponses
        case "expired-token": .expiredToken(isSupplied: isSupplied ?? false)
        case "signing-failed": .signingFailed
        case "ledger-failed": .ledgerFailed(detail: detail ?? "")
        case "ledger-gone": .ledgerGone
        case "superseded": .superseded
        case "list-failed": .listFailed(detail: detail ?? "")
        case "list-faulty": .listFaulty(detail: detail ?? "")
        case "list-changed": .listChanged(detail: detail ?? "")
        case "failed": .failed(detail: detail ?? "")
        default: nil
        }
    }

    private var connectionTrouble: ConnectionTrouble {
        ConnectionTrouble(
            trouble.flatMap(ConnectionTrouble.Kind.init(rawValue:)) ?? .other, detail ?? "")
    }

    private var refusal: StopCause.Refusal {
        var refusal = StopCause.Refusal(
            status: status ?? 0,
            reason: reason.flatMap { text in Reason.allCases.first { $0.text == text } },
            isCredential: isCredential ?? true)
        if refusal.reason == nil { refusal.unknownReason = reason }
        return refusal
    }
}

extension StopCause {
    fileprivate var storedKind: String {
        switch self {
        case .complete: "complete"
        case .signal: "signal"
        case .control: "control"
        case .keyboard: "keyboard"
        case .deadline: "deadline"
        case .gaveUp: "gave-up"
        case .noResponse: "no-response"
        case .brokenServer: "broken-server"
        case .refused: "refused"
        case .heldBack: "held-back"
        case .allRefused: "all-refused"
        case .onlyBadTokens: "only-bad-tokens"
        case .tooManyBadTokens: "too-many-bad-tokens"
        case .topicsRefused: "topics-refused"
        case .tooManyInvalid: "too-many-invalid"
        case .canaryRefused: "canary-refused"
        case .canaryWithoutResponses: "canary-unanswered"
        case .expiredToken: "expired-token"
        case .signingFailed: "signing-failed"
        case .ledgerFailed: "ledger-failed"
        case .ledgerGone: "ledger-gone"
        case .superseded: "superseded"
        case .listFailed: "list-failed"
        case .listFaulty: "list-faulty"
        case .listChanged: "list-changed"
        case .failed: "failed"
        }
    }
}
