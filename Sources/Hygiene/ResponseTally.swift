public import BroadsideAPNs
import BroadsideLedgerFormat
import BroadsideRows

/// How many responses of a ledger say that tokens are of another environment or app.
///
/// To a server of the wrong environment each token is a bad one, and so is one of another app to a
/// topic: a ledger in which nearly all responses say so tells of its run, not of the tokens.
public struct ResponseTally: Sendable {
    /// The reasons that good tokens get there.
    public static let mismatchReasons: Set<Reason> = [.badDeviceToken, .deviceTokenNotForTopic]

    /// Fewer responses tell nothing of a run.
    static let fewest: UInt64 = 10
    /// From so many of a hundred on, they tell of the run.
    static let percent: UInt64 = 90

    /// Rows that were accepted or rejected.
    public private(set) var count: UInt64 = 0
    /// Those that were rejected for one of `mismatchReasons`.
    public private(set) var mismatchCount: UInt64 = 0

    /// None yet.
    init() {}

    /// Counts a record, if it is a response.
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
        case .reserve, .release: break
        }
    }

    /// Whether nearly all are of that kind.
    public var isMismatch: Bool {
        assert(mismatchCount <= count, "a mismatch is one of the responses")
        return count >= Self.fewest && mismatchCount * 100 >= count * Self.percent
    }
}
