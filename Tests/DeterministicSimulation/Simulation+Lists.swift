import Broadside
import Campaign
import Lists
import Support

/// Lists that somebody edits between two processes: of a chunk that was reserved two rows change places.
extension Simulation {
    /// The list as a process finds it.
    func listAsItIs(epoch: Int, _ index: LedgerIndex) -> (bytes: [UInt8], changed: Range<UInt64>?) {
        let bytes = plan.list.bytes
        var random = SimulationRandom(
            seed: plan.seed ^ 0x6c69_7374_7300_0001 &+ UInt64(epoch) << 32)
        guard epoch > 1, epoch <= plan.faultPlans.count, !plan.hasSenders, index.chunkCount > 0,
            random.chance(plan.faultPlans[epoch - 1].listChange)
        else { return (bytes, nil) }
        // Of slow lists the last one, which is read while others are sent.
        let isLast = plan.faultPlans[epoch - 1].listDelay > 0
        let rows =
            index.chunk(isLast ? index.chunkCount - 1 : random.below(index.chunkCount)).rows
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

    /// Reads the next rows for a reactor, and tells it a moment later.
    func readChunk(rowLimit: Int, for reactor: SimulatedReactor) {
        func answer(_ completion: ReactorCompletion) {
            events.insert(
                .deliver(reactor: reactor.index, epoch: process.epoch, completion),
                at: clock + random.skewedDelay(20 * millisecond))
        }
        do {
            let isPending = process.coordinator.canary?.isPending ?? false
            let chunk = try process.list.next(rowLimit: rowLimit)
            if let chunk { checkUnchanged(chunk) }
            if isPending, let chunk { noteCanaryRows(chunk) }
            if chunk == nil, !process.list.isHeld { process.hasListEnded = true }
            answer(
                chunk.map { .chunk($0) } ?? (process.list.isHeld ? .listHeld : .listEnded))
        } catch {
            noteChange(error)
            let cause: StopCause =
                error.isChange
                ? .listChanged(detail: error.message) : .listFailed(detail: error.message)
            answer(.listFailed(cause))
        }
    }

    /// What was reserved is read again as it was, or not at all.
    func checkUnchanged(_ chunk: RowChunk) {
        guard let changed = process.changedRows,
            changed.overlaps(chunk.start.row..<chunk.end.row)
        else { return }
        fail("rows from \(chunk.start.row) on are handed out, and they are not what they were")
    }

    /// Nothing else keeps a list from being read.
    func noteChange(_ error: BroadsideError) {
        guard process.changedRows != nil else {
            return fail("the list can't be read: \(error.message)")
        }
        note { error.message }
        cover(.listChanged)
    }
}
