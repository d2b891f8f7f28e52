import Broadside
import BroadsideEngine
import BroadsidePolicy
import BroadsideSupport

// A process whose ledger a newer attempt claims while it still runs: stopped as a whole or not, without its
// lock. That attempt reads the segments as they are at the instant of its claim. It begins, in the
// simulation, when the older process has ended: what that one sent in the meantime is held against what the
// newer one finds. A row that is remaining there must not have been sent.

extension SimulationPlan {
    /// For how long a process is stopped while a newer attempt claims its ledger; 0: it runs on meanwhile;
    /// nil: none does. No draw of its own.
    func claimedWithin(epoch: Int) -> UInt64? {
        guard epoch <= faultPlans.count, (seed / 7 + UInt64(epoch)) % 9 == 4 else { return nil }
        return [0, 0, 1500, 15_000][Int(seed / 63 % 4)] * millisecond
    }
}

extension Simulation {
    /// A newer attempt claims the ledger, and reads it.
    func claim() {
        guard process.claimedAt == nil else { return }
        note { "a newer attempt claims the ledger" }
        trace.step(time: clock, kind: 14, 0)
        cover(.claimed)
        process.claimedAt = clock
        process.segmentsAtClaim = segments[process.epoch - 1]
        if plan.hasSenders { beginNewer() }
    }

    /// The next process finds what the newer attempt read. The older one's manifest counts for nothing, as
    /// if it had died.
    func handOver(_ process: SimulatedProcess) {
        checkSuperseded(process)
        segments[process.epoch - 1] = process.segmentsAtClaim
        process.hasDied = true
    }

    /// A process that noticed the newer attempt ends by that.
    func checkSuperseded(_ process: SimulatedProcess) {
        if !process.hasDied, process.reactors.contains(where: \.isSuperseded),
            process.coordinator.stopCause != .superseded
        {
            fail("ends by \(String(describing: process.coordinator.stopCause)), and is superseded")
        }
    }
}
