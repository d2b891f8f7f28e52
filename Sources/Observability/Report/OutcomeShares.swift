import BroadsideLedgerFormat
import BroadsideRows
import BroadsideSupport

/// Rows of a campaign in groups that matter to its operator. The bar, the cards and the verdict of
/// the page use these groups.
struct OutcomeShares {
    enum Part: CaseIterable {
        case accepted
        /// Rows whose token is dead, because the app was removed. This is normal; no action is
        /// needed except to prune the list.
        case dead
        case badToken
        /// Rows that APNs rejected for any other reason.
        case rejected
        case skipped
        case invalid
        /// Rows that failed or are unknown.
        case undecided
        case inDoubt
        case remaining

        var name: String {
            switch self {
            case .accepted: "accepted"
            case .dead: "dead"
            case .badToken: "bad token"
            case .rejected: "otherwise rejected"
            case .skipped: "skipped"
            case .invalid: "invalid"
            case .undecided: "failed or unknown"
            case .inDoubt: "in doubt"
            case .remaining: "remaining"
            }
        }
    }

    private(set) var counts: [Part: UInt64] = [:]
    /// Number of all known rows.
    let all: UInt64
    /// Number of settled rows that were sent: all except skipped and invalid rows.
    let sent: UInt64
    /// Number of failed and unknown rows that the option `--retry` sends again.
    private let retryable: UInt64
    private let isInProgress: Bool

    /// Highest normal share of bad tokens among the sent rows.
    private static let usualBadTokens = 0.01

    init(_ summary: Summary, isInProgress: Bool) {
        func reasons(_ names: [String]) -> UInt64 {
            names.reduce(0) { $0 &+ (summary.reasons[$1] ?? 0) }
        }
        let dead = min(summary.rejected, reasons(Night.deadReasons))
        let bad = min(summary.rejected - dead, reasons(["BadDeviceToken"]))
        let remaining = summary.remaining ?? 0
        counts = [
            .accepted: summary.accepted, .dead: dead, .badToken: bad,
            .rejected: summary.rejected - dead - bad, .skipped: summary.skipped,
            .invalid: summary.invalid,
            .undecided: summary.failed &+ summary.unknown, .inDoubt: summary.inDoubt,
            .remaining: remaining - min(remaining, summary.inDoubt),
        ]
        all = counts.values.reduce(0, &+)
        sent = summary.counts.sent
        retryable = summary.retryable(.failed) &+ summary.retryable(.unknown)
        self.isInProgress = isInProgress
        assert(counts.count == Part.allCases.count, "each part has its count")
        assert(dead + bad <= sent, "only rows that were sent have responses")
    }

    func count(_ part: Part) -> UInt64 { counts[part] ?? 0 }

    /// Whether there are more bad tokens than a list for this environment normally has.
    var hasManyBadTokens: Bool {
        Double(count(.badToken)) > Double(sent) * Self.usualBadTokens
    }

    /// Whether the operator has to decide about the rows of a group.
    func needsDecision(_ part: Part) -> Bool {
        switch part {
        case .accepted, .dead, .skipped, .invalid: false
        case .badToken: hasManyBadTokens
        case .rejected, .undecided: true
        case .inDoubt, .remaining: !isInProgress
        }
    }

    /// The groups about which the operator has to decide, the largest first.
    var decisions: [(part: Part, count: UInt64)] {
        Part.allCases.filter { needsDecision($0) }
            .map { ($0, $0 == .undecided ? retryable : count($0)) }
            .filter { $0.1 > 0 }
            .sorted { $0.count > $1.count }
    }
}

/// Number for a card: exact below a million, and otherwise three digits.
func shortCount(_ count: UInt64) -> String {
    switch count {
    case ..<1_000_000: return grouped(count)
    case ..<1_000_000_000: return cut(count, 1_000_000) + " M"
    default: return cut(count, 1_000_000_000) + " G"
    }
    // The number is cut off, not rounded, so that no part looks like the whole.
    func cut(_ count: UInt64, _ unit: UInt64) -> String {
        let whole = count / unit
        guard whole < 100 else { return grouped(whole) }
        let digits: UInt64 = whole < 10 ? 100 : 10
        let fraction = count / (unit / digits) % digits
        return decimal(
            Double(whole) + Double(fraction) / Double(digits), places: whole < 10 ? 2 : 1)
    }
}
