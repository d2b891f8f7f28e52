import BroadsideLedgerFormat
import BroadsideRows
import BroadsideSupport

/// The rows of a canary on their way out, and what is left of the list besides.
struct CanaryRows {
    let gate: CanaryGate
    /// Rows that are to be handed out yet.
    var rowsLeft: UInt64
    /// Parts of the list that no run has reserved, in order: looked at for rows.
    var gaps: [ListExtent] = []
    /// True once all of the plan is in `gaps` or was handed out.
    var isPlanRead = false
    /// True once all rows that were asked for so far are handed out.
    var isOut = false
    /// The place that the rows come from next, of `stopCount`.
    var stop = 0
    var stopCount = 0
    /// Rows that are to come from the place, and those that were handed out before it.
    var rowsAtStop: UInt64 = 0
    /// Bytes in the gaps, and in those that are behind us.
    var openByteCount: UInt64 = 0
    var passedByteCount: UInt64 = 0
    /// Where the gap that is being looked at begins, as far as it is not handed out.
    var rest: ListPosition?
    /// What remains of the gaps, in order: sent once the canary has passed.
    var remains: [ListExtent] = []

    /// More places than these tell no more of a list, and each is a reservation of its own.
    static let stopLimit: UInt64 = 100
}

extension ListSource {
    /// The next chunk of the canary; nil once all its rows are handed out.
    ///
    /// Rows that earlier runs reserved and did not settle come first. The others come from places
    /// spread over what was never reserved: what lies between is read past, which numbers its rows,
    /// and is handed out when the canary has passed.
    func nextOfCanary(_ canary: inout CanaryRows) throws(BroadsideError) -> RowChunk? {
        if canary.isOut { goOn(&canary) }
        while canary.rowsLeft > 0, !canary.isPlanRead {
            switch try nextOfPlan() {
            case nil:
                canary.isPlanRead = true
                spread(&canary)
            case .gap(let gap):
                canary.gaps.append(gap)
            case .chunk(let work):
                canary.rowsLeft -= min(canary.rowsLeft, UInt64(work.sendCount))
                return try read(work)
            }
        }
        while canary.rowsLeft > 0, let gap = canary.gaps.first {
            if let chunk = try nextAtStop(in: gap, &canary) { return chunk }
            endGap(gap, &canary)
        }
        while let gap = canary.gaps.first { endGap(gap, &canary) }
        canary.isOut = true
        return nil
    }

    /// Rows that could not be sent have others take their place, from what remains.
    private func goOn(_ canary: inout CanaryRows) {
        let missing = canary.gate.takeMissing()
        guard missing > 0, canary.rowsLeft == 0 else { return }
        canary.isOut = false
        canary.rowsLeft = missing
        canary.gaps = canary.remains
        canary.remains = []
        canary.passedByteCount = 0
        canary.stop = 0
        if canary.isPlanRead { spread(&canary) }
    }

    /// Decides how many places the rows come from.
    private func spread(_ canary: inout CanaryRows) {
        canary.openByteCount = canary.gaps.reduce(0) { $0 &+ byteCount($1) }
        canary.stopCount =
            canSpreadCanary ? Int(min(canary.rowsLeft, CanaryRows.stopLimit)) : 1
        assert(canary.stopCount > 0, "there are rows to send first")
        canary.rowsAtStop = rowsAtStop(canary)
    }

    private func byteCount(_ gap: ListExtent) -> UInt64 {
        let end = gap.endByteOffset ?? list.byteCount ?? .max
        return end - min(end, gap.byteOffset)
    }

    /// About as many rows at each place; all that are left at the last.
    private func rowsAtStop(_ canary: CanaryRows) -> UInt64 {
        let stops = UInt64(max(1, canary.stopCount - canary.stop))
        return (canary.rowsLeft + stops - 1) / stops
    }

    /// Goes on to the place and takes rows there; nil where the gap ends before.
    private func nextAtStop(
        in gap: ListExtent, _ canary: inout CanaryRows
    ) throws(BroadsideError) -> RowChunk? {
        // The place lies so many bytes into all that is open.
        let share = canary.openByteCount / UInt64(canary.stopCount)
        let target = share * UInt64(canary.stop)
        let offset = target - min(target, canary.passedByteCount)
        guard offset <= byteCount(gap) else { return nil }
        if canary.rest == nil { canary.rest = cursor.begin(gap) }
        // Small steps hit the place well, large ones cost less.
        let step = share > 1 << 19 ? Int.max : max(1, Int(share / 512))
        while cursor.position.byteOffset < gap.byteOffset + offset {
            guard let chunk = try cursor.cutRows(atMost: step) else { return nil }
            cursor.giveBack(chunk)
        }
        guard let chunk = try cursor.cutRows(atMost: Int(canary.rowsAtStop)) else { return nil }
        keepRest(upTo: chunk.start, &canary)
        canary.rest = chunk.end
        // Of a part by row numbers, only one row in `rows.selection.divisor` is sent.
        let own = rows.selection.count(in: chunk.start.row..<chunk.end.row)
        canary.rowsLeft -= own
        canary.rowsAtStop -= own
        if canary.rowsAtStop == 0 {
            canary.stop += 1
            assert(
                canary.rowsLeft == 0 || canary.stop < canary.stopCount,
                "the last place takes the rest")
            canary.rowsAtStop = rowsAtStop(canary)
        }
        return chunk
    }

    /// The rows between the last ones that were handed out and a place remain.
    private func keepRest(upTo end: ListPosition, _ canary: inout CanaryRows) {
        guard let rest = canary.rest, rest.row < end.row else { return }
        canary.remains.append(ListExtent(from: rest, to: end))
    }

    /// What is left of a gap remains; the next one is looked at.
    private func endGap(_ gap: ListExtent, _ canary: inout CanaryRows) {
        assert(canary.gaps.first == gap, "gaps end in their order")
        let left = canary.rest.map { gap.rest(from: $0) } ?? gap
        // The last gap stays even without rows: who counts the list's rows goes through it.
        if left.firstRow != left.endRow { canary.remains.append(left) }
        canary.rest = nil
        canary.passedByteCount &+= byteCount(gap)
        canary.gaps.removeFirst()
    }
}
