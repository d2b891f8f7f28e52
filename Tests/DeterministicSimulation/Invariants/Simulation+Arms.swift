import Broadside
import BroadsideEngine
import BroadsideRows

/// Checks of arms. In each process, a device is in the arm that its token determines, and nothing
/// is sent to the holdout. The checks of requests include the payload of each arm.
extension Simulation {
    /// Checks the arm that the ledger has for a row.
    func checkArm(_ row: LedgerRow, number: Int) {
        guard row.state.isSettled else { return }
        let arm = plan.arms?.armOfRow[number] ?? 0
        if row.arm != arm { fail("row \(number) is in arm \(row.arm), not in \(arm)") }
        guard plan.isHeldOut(number) else { return }
        if row.state != .skipped || row.reason != "Holdout" || row.attempts != 0
            || !requestsOfRow[number].isEmpty
        {
            fail("row \(number) is held out and \(row.state.name) (\(row.reason))")
        }
        checkLife(row, number: number)
    }

    /// Checks the counts per arm of a process.
    func checkArmCounts(
        _ rows: [LedgerRow], _ counted: RunStatistics, _ process: SimulatedProcess
    ) {
        guard let arms = plan.arms, process.reopens.isEmpty else { return }
        for arm in 1...UInt8(arms.split.arms.count) {
            for state in RowState.allCases where state.isSettled {
                let settled = rows.indices.count {
                    rows[$0].arm == arm && rows[$0].state == state
                        && !process.statesAtStart[$0].isSettled
                }
                let count = counted.counts.arms[arm, state]
                if count != UInt64(settled) {
                    fail(
                        "the process counted \(count) \(state.name) rows of arm \(arm), not \(settled)"
                    )
                }
            }
        }
    }
}
