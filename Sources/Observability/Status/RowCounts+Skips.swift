import BroadsideAPNs
import BroadsideLedgerFormat
import BroadsideRows

extension RowCounts {
    /// Highest share of skipped rows that is not unusual.
    static let usualSkippedShare = 0.9

    /// Rows that were skipped, except those that the operator chose to leave out: filtered rows,
    /// suppressed tokens and the holdout.
    var unplannedSkips: UInt64 {
        let planned = SkipReason.allCases.filter(\.isPlanned).reduce(0) {
            $0 + (reasons.named[$1.reason.text] ?? 0)
        }
        return self[.skipped] - min(self[.skipped], planned)
    }

    /// Unplanned skips as a share of these and the sent rows, 0 to 1; nil if there are fewer than
    /// 20 of them.
    var skippedShare: Double? {
        let rows = unplannedSkips + sent
        return rows >= 20 ? Double(unplannedSkips) / Double(rows) : nil
    }
}

extension SkipReason {
    /// Whether the operator chose the rows that are skipped for this reason.
    var isPlanned: Bool {
        switch self {
        case .filtered, .holdout, .suppressed: true
        case .deadToken, .duplicate, .frequencyCap, .late: false
        }
    }
}
