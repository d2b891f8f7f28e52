import BroadsideLedgerFormat
import BroadsideRows
import BroadsideSupport

/// The rows of a campaign by what they mean to its operator: a value, from which the page makes the
/// bar, the cards and the verdict.
struct OutcomeShares {
    enum Part: CaseIterable {
        case accepted
        /// The app was removed: normal, and no reason to act but to prune.
        case dead
        case badToken
        /// Rejected for any other reason.
        case rejected
        case skipped
        case invalid
        /// Failed, unknown or in doubt.
        case undecided
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
            case .remaining: "remaining"
            }
        }
    }

    private(set) var counts: [Part: UInt64] = [:]
    /// All rows that are known of.
    let all: UInt64
    /// Rows that are settled, skipped ones not among them.
    let sent: UInt64
    private let isInProgress: Bool

    /// Bad tokens up to this share of what was sent are usual.
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
            .undecided: summary.failed &+ summary.unknown &+ summary.inDoubt,
            .remaining: remaining - min(remaining, summary.inDoubt),
        ]
        all = counts.values.reduce(0, &+)
        sent = summary.counts.settled - min(summary.counts.settled, summary.skipped)
        self.isInProgress = isInProgress
    }

    func count(_ part: Part) -> UInt64 { counts[part] ?? 0 }

    /// Whether more tokens were bad than a list of this environment has.
    var hasManyBadTokens: Bool {
        Double(count(.badToken)) > Double(sent) * Self.usualBadTokens
    }

    /// Whether somebody has to decide about the rows of a part.
    func needsDecision(_ part: Part) -> Bool {
        switch part {
        case .accepted, .dead, .skipped, .invalid: false
        case .badToken: hasManyBadTokens
        case .rejected, .undecided: true
        case .remaining: !isInProgress
        }
    }

    /// Rows that somebody has to decide about, the largest part first.
    var decisions: [(part: Part, count: UInt64)] {
        Part.allCases.filter { needsDecision($0) && count($0) > 0 }.map { ($0, count($0)) }
            .sorted { $0.count > $1.count }
    }
}

/// A number for a card: whole up to a million, from there on with three digits.
func shortCount(_ count: UInt64) -> String {
    switch count {
    case ..<1_000_000: return grouped(count)
    case ..<1_000_000_000: return cut(count, 1_000_000) + " M"
    default: return cut(count, 1_000_000_000) + " G"
    }
    // Cut, not rounded: what is not all is never shown as all.
    func cut(_ count: UInt64, _ unit: UInt64) -> String {
        let whole = count / unit
        guard whole < 100 else { return grouped(whole) }
        let digits: UInt64 = whole < 10 ? 100 : 10
        let fraction = count / (unit / digits) % digits
        return decimal(
            Double(whole) + Double(fraction) / Double(digits), places: whole < 10 ? 2 : 1)
    }
}
