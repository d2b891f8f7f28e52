public import BroadsideAPNs
import BroadsideLedgerFormat
import BroadsideRows

/// Counts the responses of a ledger that report tokens as belonging to another environment or app.
///
/// In the wrong environment, or for the topic of another app, APNs rejects every token. If nearly
/// all responses are of this kind, the run was wrong, not the tokens.
public struct ResponseTally: Sendable {
    /// Reasons with which APNs rejects good tokens in a run with the wrong environment or topic.
    public static let mismatchReasons: Set<Reason> = [.badDeviceToken, .deviceTokenNotForTopic]

    /// Minimum number of responses for a conclusion.
    static let fewest: UInt64 = 10
    /// Minimum percentage of mismatches for the conclusion that the run was wrong.
    static let percent: UInt64 = 90

    /// Number of accepted and rejected rows.
    public private(set) var count: UInt64 = 0
    /// Number of rows rejected for one of `mismatchReasons`.
    public private(set) var mismatchCount: UInt64 = 0

    /// Creates an empty tally.
    init() {}

    /// Counts a record if it is a response.
    mutating func take(_ record: LedgerRecord) {
        switch record {
        case .accepted: count += 1
        case .settled(let settled):
            switch settled.state {
            case .accepted: count += 1
            case .rejected:
                count += 1
                let isMismatch =
                    settled.reason == Reason.badDeviceToken.rawValue
                    || settled.reason == Reason.deviceTokenNotForTopic.rawValue
                if isMismatch { mismatchCount += 1 }
            default: break
            }
        case .reserve, .release, .releaseSome: break
        }
    }

    /// Whether nearly all responses are mismatches.
    public var isMismatch: Bool {
        assert(mismatchCount <= count, "a mismatch is one of the responses")
        return count >= Self.fewest && mismatchCount * 100 >= count * Self.percent
    }
}
