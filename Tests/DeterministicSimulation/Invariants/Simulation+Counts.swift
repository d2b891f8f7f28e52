import Broadside
import BroadsideAPNs
import BroadsideEngine
import BroadsideLedgerFormat
import BroadsidePolicy
import BroadsideRows

/// Compares the counts of a process for its summary with the ledger and with the requests that were
/// sent.
extension Simulation {
    /// Each count of the process is the sum of the counts of its reactors.
    func checkSums(_ process: SimulatedProcess) {
        let parts = process.reactors.map { $0.machine.snapshot() }
        var sum = RunStatistics()
        if sum.limited.contains(where: { $0 != 0 }) { fail("time counts before there is any") }
        for part in parts { sum.add(part) }
        let numbers: [KeyPath<RunStatistics, UInt64>] = [
            \.counts[.accepted], \.counts[.rejected], \.counts[.invalid], \.counts[.skipped],
            \.counts[.failed], \.counts[.unknown], \.refusedByCredential,
            \.retries, \.ownRetries,
            \.requests, \.untimedResponses, \.connectionsOpened, \.reconnects, \.goAways,
            \.failures,
            \.pushbacks, \.refutedAcceptances,
        ]
        for number in numbers {
            let expected = parts.reduce(0) { $0 + $1[keyPath: number] }
            if sum[keyPath: number] != expected {
                fail("\(number) of all reactors is \(sum[keyPath: number]), not \(expected)")
            }
        }
        for number in [\RunStatistics.pausedAddresses, \.openConnections, \.inFlight] {
            let expected = parts.reduce(0) { $0 + $1[keyPath: number] }
            if sum[keyPath: number] != expected {
                fail("\(number) of all reactors is \(sum[keyPath: number]), not \(expected)")
            }
        }
        for cause in sum.limited.indices {
            let expected = parts.reduce(0) { $0 + $1.limited[cause] }
            if sum.limited[cause] != expected { fail("time for cause \(cause) is not added up") }
        }
        let slowest = parts.compactMap { $0.pace.worst?.loadedNanoseconds }.max()
        if sum.pace.worst?.loadedNanoseconds != slowest {
            fail("the slowest finding is \(sum.pace.worst as Any), not of \(slowest as Any) ns")
        }
    }

    func checkCounts(_ rows: [LedgerRow], _ process: SimulatedProcess) {
        var counted = RunStatistics()
        for reactor in process.reactors { counted.add(reactor.machine.snapshot()) }
        checkSettled(rows, counted, process)
        checkArmCounts(rows, counted, process)
        checkRequestCounts(counted, process)
        checkReports(counted, process)
        // A client starts to receive on a connection once it is established.
        let made = ownLinks.count(where: \.isReceiving)
        if counted.connectionsOpened != UInt64(made) {
            fail("the process counted \(counted.connectionsOpened) connections of \(made)")
        }
    }

    /// Whether the process may have settled a row: the row was unsettled at its start, or it
    /// reopened the row.
    private func wasOpen(_ number: Int, _ process: SimulatedProcess) -> Bool {
        let before = process.statesAtStart[number]
        // A reopened row that is not due stays as it is.
        return !before.isSettled
            || process.reopens(row: number) && !waits(number, epoch: process.epoch)
    }

    private func checkSettled(
        _ rows: [LedgerRow], _ counted: RunStatistics, _ process: SimulatedProcess
    ) {
        let byState: [(RowState, UInt64)] = [
            (.accepted, counted.counts[.accepted]), (.rejected, counted.counts[.rejected]),
            (.invalid, counted.counts[.invalid]), (.skipped, counted.counts[.skipped]),
            (.failed, counted.counts[.failed]),
            (.unknown, counted.counts[.unknown]),
        ]
        // A process that was stopped has not reached all rows that it was to reopen.
        let isStopped = process.coordinator.stopCause != nil
        for (state, count) in byState {
            let settled = rows.indices.filter {
                rows[$0].state == state && wasOpen($0, process)
            }
            let passedOver = settled.count { isStopped && process.statesAtStart[$0] == state }
            if count > settled.count || Int(count) < settled.count - passedOver {
                fail("the process counted \(count) \(state.name) rows, the ledger \(settled.count)")
            }
        }
        if !isStopped || process.reopens.isEmpty { checkReasons(rows, counted, process) }
    }

    private func checkReasons(
        _ rows: [LedgerRow], _ counted: RunStatistics, _ process: SimulatedProcess
    ) {
        var expected: [String: UInt64] = [:]
        for number in rows.indices where wasOpen(number, process) {
            let row = rows[number]
            guard row.state.isSettled, row.state != .accepted else { continue }
            expected[row.reason.isEmpty ? ReasonCounts.noReason : row.reason, default: 0] += 1
        }
        let found = counted.counts.reasons.named { Reason(rawValue: $0)?.text ?? "" }
        // Beyond a limit, all other reasons are counted together.
        guard found != expected, found[ReasonCounts.otherTexts] == nil else { return }
        fail("the process counted the reasons \(found), the ledger has \(expected)")
    }

    /// If all written requests were sent, the counts equal the requests that were sent.
    private func checkRequestCounts(_ counted: RunStatistics, _ process: SimulatedProcess) {
        var requests = 0
        var rows: Set<Int> = []
        var isWhole = true
        for link in ownLinks {
            requests += taps[link.id].requests.count
            for request in taps[link.id].requests { rows.insert(request.row) }
            if link.endedWhileSending { isWhole = false }
        }
        if requests > counted.requests || (isWhole && requests < counted.requests) {
            fail("the process counted \(counted.requests) requests, and \(requests) left")
        }
        if isWhole, counted.ownRetries != UInt64(requests - rows.count) {
            fail(
                "\(counted.ownRetries) own retries where \(requests) requests are for "
                    + "\(rows.count) rows")
        }
        let new = rows.subtracting(process.sentBefore)
        if isWhole, counted.retries != UInt64(requests - new.count) {
            fail(
                "\(counted.retries) retries where \(requests) requests are for \(rows.count) rows, "
                    + "\(new.count) of which no earlier process sent")
        }
    }
}
