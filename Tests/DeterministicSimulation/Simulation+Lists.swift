import Broadside
import BroadsideLedgerFormat
import BroadsideLists
import BroadsidePolicy
import BroadsideRows
import BroadsideSupport

/// Lists that change between two processes: two rows of a reserved chunk change places.
extension Simulation {
    /// The list as a process finds it.
    ///
    /// - Parameter states: State of each row in the ledger.
    func listAsItIs(
        epoch: Int, _ index: LedgerIndex, _ states: [RowState]
    ) -> (bytes: [UInt8], changed: Range<UInt64>?) {
        let bytes = plan.list.bytes
        var random = SimulationRandom(
            seed: plan.seed ^ 0x6c69_7374_7300_0001 &+ UInt64(epoch) << 32)
        guard epoch > 1, epoch <= plan.faultPlans.count, !plan.hasSenders, index.chunkCount > 0,
            random.chance(plan.faultPlans[epoch - 1].listChange)
        else { return (bytes, nil) }
        var number = random.below(index.chunkCount)
        if plan.faultPlans[epoch - 1].ambushes.contains(where: { $0.fault == .listChanged }) {
            // The last chunk that is read again while other rows are sent.
            number =
                (0..<index.chunkCount).last { number in
                    index.chunk(number).rows.contains { isReadAgain(states[Int($0)]) }
                } ?? number
        }
        let rows = index.chunk(number).rows
        let first = Int(rows.lowerBound) + random.below(rows.count)
        let range = plan.list.ranges[first]
        let second = rows.first { other in
            let otherRange = plan.list.ranges[Int(other)]
            return otherRange.count == range.count && bytes[otherRange] != bytes[range]
        }
        guard let second else { return (bytes, nil) }
        var changed = bytes
        let otherRange = plan.list.ranges[Int(second)]
        changed.replaceSubrange(range, with: bytes[otherRange])
        changed.replaceSubrange(otherRange, with: bytes[range])
        note { "rows \(first) and \(second) of the list have changed places" }
        return (changed, rows)
    }

    private func isReadAgain(_ state: RowState) -> Bool {
        state == .remaining || (state == .inDoubt && plan.onLost == .resend)
    }

    /// Reads the next rows for a reactor, and delivers them a moment later.
    func readChunk(rowLimit: Int, for reactor: SimulatedReactor) {
        func answer(_ completion: ReactorCompletion) {
            events.insert(
                .deliver(reactor: reactor.index, epoch: process.epoch, completion),
                at: clock + random.skewedDelay(20 * millisecond))
        }
        // One thread reads for all reactors. A reactor that requests rows now waits until the slow
        // read ends.
        guard process.untoldChanges.isEmpty else {
            process.waitingReads.append((reactor.index, rowLimit))
            return
        }
        do {
            let isPending = process.coordinator.canary?.isPending ?? false
            let chunk = try process.list.next(rowLimit: rowLimit)
            if let chunk { checkUnchanged(chunk) }
            if isPending, let chunk { noteCanaryRows(chunk) }
            if chunk == nil, !process.list.isHeld { process.hasListEnded = true }
            answer(
                chunk.map { .chunk($0) } ?? (process.list.isHeld ? .listHeldByCanary : .listEnded))
        } catch {
            noteChange(error)
            let cause: StopCause =
                error.isChange
                ? .listChanged(detail: error.message) : .listFailed(detail: error.message)
            process.untoldChanges.append((reactor.index, cause))
            // If a fault waits for the detection of the change, the disk is even slower.
            guard awaits(.listChanged) else { return tellChanges() }
            events.insert(.changesTold(epoch: process.epoch), at: clock + 20 * second)
        }
    }

    /// Reports to the reactors that the list has changed.
    func tellChanges() {
        guard !process.untoldChanges.isEmpty else { return }
        cover(.listChanged)
        for (reactor, cause) in process.untoldChanges {
            events.insert(
                .deliver(
                    reactor: reactor, epoch: process.epoch, .listFailed(cause)),
                at: clock + random.skewedDelay(20 * millisecond))
        }
        process.untoldChanges = []
        for (reactor, rowLimit) in process.waitingReads {
            events.insert(
                .readChunk(reactor: reactor, epoch: process.epoch, rowLimit: rowLimit), at: clock)
        }
        process.waitingReads = []
    }

    /// Rows that were reserved are read again only if they are unchanged.
    func checkUnchanged(_ chunk: RowChunk) {
        guard let changed = process.changedRows,
            changed.overlaps(chunk.start.row..<chunk.end.row)
        else { return }
        fail("rows from \(chunk.start.row) on are handed out, and they are not what they were")
    }

    /// A list can't be read only because it has changed.
    func noteChange(_ error: BroadsideError) {
        guard process.changedRows != nil else {
            return fail("the list can't be read: \(error.message)")
        }
        note { error.message }
    }
}
