package import BroadsideEngine
package import BroadsideLedgerFormat
import BroadsideLists
package import BroadsidePolicy
package import BroadsideSupport

/// The counts of the guards against a wrong campaign, in the summary and in the response to
/// `control status`. A program that runs several parts of one campaign needs them.
public struct GuardStatus: Sendable, Equatable, Encodable {
    /// State of the canary.
    public enum Canary: String, Sendable, Encodable {
        /// No canary.
        case none
        /// Rows of the canary still have no response.
        case pending
        /// The share of refused rows was within the limit.
        case passed
        /// Too many rows were refused.
        case refused
        /// Too few rows received a response.
        case unanswered
        /// The canary of another part passed (`--assume-canary`).
        case assumed
    }

    /// State of the canary.
    public var canary: Canary
    /// Number of responses to rows of the canary, including responses in earlier runs; nil if this
    /// process counted none.
    public var canaryResponses: UInt64?
    /// Number of refusals among `canaryResponses`. A response with status 410 is not counted as a
    /// refusal.
    public var canaryRefused: UInt64?
    /// Refusals among this process's responses; nil if the process only reads the ledger.
    package var refusals: RefusalCounts?

    /// Creates a status without counts.
    init(canary: Canary) { self.canary = canary }

    /// Creates the status from a ledger's manifest, without counts of a run.
    package init(_ manifest: Manifest) {
        canary =
            manifest.canaryPassed ? .passed : manifest.canaryRowCount == nil ? .none : .pending
    }

    /// Creates the status of a run.
    ///
    /// - Parameters:
    ///   - manifest: Manifest of the run's ledger.
    ///   - coordinator: Coordinator of the run.
    ///   - isAssumed: Whether `--assume-canary` was given.
    package init(_ manifest: Manifest, _ coordinator: RunCoordinator, isAssumed: Bool) {
        self.init(manifest)
        refusals = coordinator.refusalCounts
        if isAssumed, canary != .passed { canary = .assumed }
        if let counts = coordinator.canaryCounts {
            (canaryResponses, canaryRefused) = counts
            assert(counts.refused <= counts.responses, "a canary's refusals are responses")
        }
        guard let gate = coordinator.canary else { return }
        canary =
            switch gate.verdict {
            case .pending: .pending
            case .passed: .passed
            case .refused: .refused
            case .unanswered: .unanswered
            }
    }

    private enum CodingKeys: String, CodingKey {
        case responses
        case consecutiveRefusals = "consecutive_refusals"
        case areOnlyBadTokens = "only_bad_tokens"
        case badTokens = "bad_tokens"
        case windowResponses = "bad_tokens_of"
        case canary
        case canaryResponses = "canary_responses"
        case canaryRefused = "canary_refused"
    }

    /// Encodes all keys; unknown values are null.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(refusals?.responses, forKey: .responses)
        try container.encode(refusals?.consecutiveRefusals, forKey: .consecutiveRefusals)
        try container.encode(refusals?.areOnlyBadTokens, forKey: .areOnlyBadTokens)
        try container.encode(refusals?.badTokens, forKey: .badTokens)
        try container.encode(refusals?.windowResponses, forKey: .windowResponses)
        try container.encode(canary, forKey: .canary)
        try container.encode(canaryResponses, forKey: .canaryResponses)
        try container.encode(canaryRefused, forKey: .canaryRefused)
    }

    /// JSON object with the same members as `encode(to:)`, on one line.
    package var json: JSONLine {
        func key(_ key: CodingKeys) -> String { key.rawValue }
        var line = JSONLine()
        line.add(key(.responses), refusals?.responses)
        line.add(key(.consecutiveRefusals), refusals.map { UInt64($0.consecutiveRefusals) })
        line.addRaw(
            key(.areOnlyBadTokens), refusals?.areOnlyBadTokens.map { "\($0)" } ?? "null")
        line.add(key(.badTokens), refusals.map { UInt64($0.badTokens) })
        line.add(key(.windowResponses), refusals.map { UInt64($0.windowResponses) })
        line.add(key(.canary), canary.rawValue)
        line.add(key(.canaryResponses), canaryResponses)
        line.add(key(.canaryRefused), canaryRefused)
        return line
    }
}
