import Broadside
import BroadsideEngine
import BroadsidePolicy
import BroadsideSupport

// In some seeds, a newer attempt claims the ledger of a process while that process still runs,
// frozen or not. No lock prevents this. The newer attempt reads the segments as they are at the
// instant of its claim. In the simulation, it begins after the older process has ended. The
// requests that the older process sent in between are then compared with the ledger that the newer
// attempt reads. A row that is remaining there must not have been sent.

extension SimulationPlan {
    /// Time for which a process is frozen while a newer attempt claims its ledger. 0: the process
    /// continues to run. nil: no attempt claims the ledger. It uses no random numbers.
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

    /// The next process gets the segments as the newer attempt read them. As after a death, the
    /// older process's manifest does not count.
    func handOver(_ process: SimulatedProcess) {
        checkSuperseded(process)
        segments[process.epoch - 1] = process.segmentsAtClaim
        process.hasDied = true
    }

    /// A process that noticed the newer attempt ends because of it.
    func checkSuperseded(_ process: SimulatedProcess) {
        if !process.hasDied, process.reactors.contains(where: \.isSuperseded),
            process.coordinator.stopCause != .superseded
        {
            fail("ends by \(String(describing: process.coordinator.stopCause)), and is superseded")
        }
    }
}
