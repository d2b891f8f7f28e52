import BroadsideAPNs
import BroadsideLists
import BroadsideObservability
import BroadsideRows
import BroadsideSupport

/// Row counts of a dry run, by result.
struct DryRunTally {
    var rows: UInt64 = 0
    /// Whether the campaign has a suppression list.
    var hasSuppressionList = false
    /// Rows that earlier runs left in doubt, and that this run would settle as unknown.
    var doubtful: UInt64 = 0
    private var skipped: [SkipReason: UInt64] = [:]
    private var invalid: UInt64 = 0
    private var reasons: [Reason: Int] = [:]
    private var firstInvalidLine: UInt64?
    /// Rows to send, by the number of their arm.
    private var arms = [UInt64](repeating: 0, count: ArmSplit.armLimit + 1)

    /// Counts a row that the run would settle because of earlier runs. A row of an erased device
    /// that no run sent would be skipped.
    mutating func countUnsent(_ disposition: RowDisposition) {
        if disposition == .erased(mayHaveBeenSent: false) {
            countSkipped(.suppressed)
        } else {
            doubtful += 1
        }
    }

    mutating func countSkipped(_ reason: SkipReason) { skipped[reason, default: 0] += 1 }

    mutating func countSent(arm: UInt8) { arms[Int(arm)] += 1 }

    mutating func countInvalid(_ reason: Reason, line: UInt64) {
        invalid += 1
        reasons[reason, default: 0] += 1
        firstInvalidLine = firstInvalidLine ?? line
    }

    var sendable: UInt64 {
        assert(
            invalid + skippedCount + doubtful <= rows, "each row is counted once")
        return rows - invalid - skippedCount - doubtful
    }

    private var skippedCount: UInt64 { skipped.values.reduce(0, +) }

    /// Warning that there is nothing to send; nil if at least one row would be sent.
    var emptyHandedWarning: String? {
        if rows == 0 { return Summary.noRowsWarning }
        guard skippedCount > 0, sendable == 0, doubtful == 0 else { return nil }
        let counts = SkipReason.allCases.compactMap { reason in
            skipped[reason].map { (reason: reason, count: $0) }
        }
        return Summary.allSkippedWarning(
            counts, invalid: invalid, hasSuppressionList: hasSuppressionList)
    }

    /// - Parameters:
    ///   - settled: Number of rows that earlier runs settled; nil if there was no run.
    ///   - possibleSkips: Reasons for which the options may skip rows.
    ///   - split: Rule that puts devices into arms; nil if there are none.
    ///   - explanation: Returns the line and the problem of the first invalid row with a reason;
    ///     nil if it has none.
    func print(
        settled: UInt64?, possibleSkips: [SkipReason], split: ArmSplit?,
        explanation: (Reason) -> String?
    ) {
        assert(arms.reduce(0, +) == sendable, "each row to send is counted with its arm")
        Swift.print("to send      \(grouped(sendable))")
        if let split {
            let counts = split.names.enumerated().filter { $0.element != ArmSplit.holdoutName }
                .map { "\($0.element) \(grouped(arms[$0.offset + 1]))" }
            Swift.print("             by arm: \(counts.joined(separator: ", "))")
        }
        if let settled {
            Swift.print("settled      \(grouped(settled)) by earlier runs, and not sent again")
        }
        if doubtful > 0 {
            Swift.print(
                "unknown      \(grouped(doubtful)): an earlier run sent them and got no response "
                    + "(--on-lost)")
        }
        // Rows of erased devices are skipped as suppressed, also without a suppression list.
        let skips = SkipReason.allCases.filter {
            possibleSkips.contains($0) || skipped[$0] != nil
        }
        if !skips.isEmpty {
            let counts = skips.map { "\($0.reason.text) \(grouped(skipped[$0] ?? 0))" }
            Swift.print(
                "skipped      \(grouped(skippedCount)): \(counts.joined(separator: ", "))")
        }
        let location = firstInvalidLine.map { ", the first on line \($0)" } ?? ""
        Swift.print("invalid      \(grouped(invalid))\(location)")
        for (reason, count) in reasons.sorted(by: { $0.key.text < $1.key.text }) {
            let why = explanation(reason).map { ": \($0)" } ?? ""
            Swift.print("             \(grouped(count)) \(reason.text)\(why)")
        }
    }
}
