package import BroadsideEngine
package import BroadsideLedgerFormat
import BroadsideLists
package import BroadsidePolicy
package import BroadsideSupport

/// What the guards against a wrong campaign have counted, for the caller that runs several parts of one: in the
/// summary, and in the response to `control status`.
public struct GuardStatus: Sendable, Equatable, Encodable {
    /// How the canary stands.
    public enum Canary: String, Sendable, Encodable {
        /// There is none.
        case none
        /// Its responses are not all in.
        case pending
        /// Few enough of its rows were refused.
        case passed
        /// Too many were.
        case refused
        /// Too few of its rows got a response.
        case unanswered
        /// Another part's has passed (`--assume-canary`).
        case assumed
    }

    /// The canary.
    public var canary: Canary
    /// Responses to rows of the canary, those of earlier runs among them; nil if this process has none.
    public var canaryResponses: UInt64?
    /// Those of them that refuse, 410 not counted.
    public var canaryRefused: UInt64?
    /// What this process counted over its responses; nil for a ledger that is read.
    package var refusals: RefusalCounts?

    /// Nothing but how the canary stands.
    init(canary: Canary) { self.canary = canary }

    /// What a ledger alone says.
    ///
    /// - Parameter manifest: its manifest.
    package init(_ manifest: Manifest) {
        canary =
            manifest.canaryPassed ? .passed : manifest.canaryRowCount == nil ? .none : .pending
    }

    /// What a run has counted.
    ///
    /// - Parameters:
    ///   - manifest: of its ledger.
    ///   - coordinator: the run's.
    ///   - isAssumed: whether `--assume-canary` was given.
    package init(_ manifest: Manifest, _ coordinator: RunCoordinator, isAssumed: Bool) {
        self.init(manifest)
        refusals = coordinator.refusalCounts
        if isAssumed, canary != .passed { canary = .assumed }
        guard let gate = coordinator.canary else { return }
        (canaryResponses, canaryRefused) = gate.counts
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

    /// All keys are always there; what is not known is null.
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

    /// The same members, on one line.
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
