public import BroadsideAPNs

/// Reason why a row is settled as `skipped` without being sent.
///
/// If several reasons apply to a row, the one with the lowest raw value counts. Files of
/// `ExclusionIndex` store the raw values.
public enum SkipReason: UInt8, CaseIterable, Comparable, Sendable {
    /// The suppression list has the row's token.
    case suppressed = 0
    /// An earlier row has the same token and can be sent.
    case duplicate = 1
    /// A row filter excludes the row.
    case filtered = 2
    /// An earlier ledger reports the token as dead.
    case deadToken = 3
    /// Earlier campaigns have already reached the device as often as the cap allows.
    case frequencyCap = 4
    /// The token is in the arm to which nothing is sent.
    case holdout = 5
    /// The row's time of delivery had already passed at the campaign's first start.
    case late = 6

    /// Whether the left reason takes precedence over the right one.
    public static func < (left: SkipReason, right: SkipReason) -> Bool {
        left.rawValue < right.rawValue
    }

    /// The corresponding reason in ledgers, summaries and reports.
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

    /// The option that skips rows for this reason, as on a command line.
    public var option: String {
        switch self {
        case .suppressed: "--suppress"
        case .duplicate: "--duplicates skip"
        case .filtered: "--where"
        case .deadToken: "--skip-dead"
        case .frequencyCap: "--cap"
        case .holdout: "--split"
        case .late: "--late skip"
        }
    }
}
