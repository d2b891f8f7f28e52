public import BroadsideAPNs

/// Reason why a row is settled as `skipped` without being sent.
///
/// If several reasons apply to a row, the smallest one counts. Files of `ExclusionIndex` store the
/// raw values.
public enum SkipReason: UInt8, CaseIterable, Comparable, Sendable {
    /// The suppression list has the row's token.
    case suppressed = 0
    /// An earlier row with the same token can be sent.
    case duplicate = 1
    /// A row filter leaves the row out.
    case filtered = 2
    /// An earlier ledger reports the token as dead.
    case deadToken = 3
    /// Earlier campaigns reached the device as often as the cap allows.
    case frequencyCap = 4
    /// The token is in the arm that receives nothing.
    case holdout = 5
    /// The row's time of delivery had passed at the campaign's first start.
    case late = 6

    /// Whether the left reason counts before the right one.
    public static func < (left: SkipReason, right: SkipReason) -> Bool {
        left.rawValue < right.rawValue
    }

    /// The reason in ledgers, summaries and reports.
    public var reason: Reason {
        switch self {
        case .suppressed: .suppressed
        case .duplicate: .duplicate
        case .filtered: .filtered
        case .deadToken: .deadToken
        case .frequencyCap: .frequencyCap
        case .holdout: .holdout
        case .late: .late
        }
    }
}
