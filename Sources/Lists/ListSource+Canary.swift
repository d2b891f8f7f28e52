import BroadsideLedgerFormat
import BroadsideRows
import BroadsideSupport

/// The progress of handing out a canary's rows, and the parts of the list that are left for later.
struct CanaryRows {
    let gate: CanaryGate
    /// Number of rows still to hand out.
    var rowsLeft: UInt64
    /// The ranges of the list that no run reserved, in order. Rows are taken from them.
    var gaps: [ListExtent] = []
    /// Whether the whole plan has been read. If so, each part of the plan was handed out or is in
    /// `gaps`.
    var isPlanRead = false
    /// Whether all rows requested so far are handed out.
    var isOut = false
    /// Index of the next sampling point in the list, below `stopCount`.
    var stop = 0
    var stopCount = 0
    /// Number of rows still to hand out at the sampling point.
    var rowsAtStop: UInt64 = 0
    /// Total size of all gaps, in bytes.
    var openByteCount: UInt64 = 0
    /// Total size of the gaps that were already passed, in bytes.
    var passedByteCount: UInt64 = 0
    /// Position in the current gap up to which rows were handed out or kept in `remains`.
    var rest: ListPosition?
    /// Gaps that are left, in order. They are sent once the canary has passed.
    var remains: [ListExtent] = []

    /// Limit on sampling points. More points do not represent a list better, and each point needs a
    /// reservation.
    static let stopLimit: UInt64 = 100
}

extension ListSource {
    /// Returns the next chunk of the canary; nil once all its rows are handed out.
    ///
    /// Rows that earlier runs reserved and did not settle come first. The other rows are taken at
    /// sampling points, which are spread over the unreserved parts of the list. The rows between
    /// these points are read, too, because each row has to be numbered. They are handed out once
    /// the canary has passed.
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
                let count =
                    selection.due == nil
                    ? UInt64(work.sendCount) : try selection.count(in: work.chunk.rows)
                canary.rowsLeft -= min(canary.rowsLeft, count)
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

    /// Takes further rows from the remaining gaps, in place of rows that could not be sent.
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

    /// Determines the number of sampling points.
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

    /// Returns the number of rows for this sampling point: the remaining rows, divided equally
    /// among the remaining points.
    private func rowsAtStop(_ canary: CanaryRows) -> UInt64 {
        let stops = UInt64(max(1, canary.stopCount - canary.stop))
        return (canary.rowsLeft + stops - 1) / stops
    }

    /// Advances to the sampling point and takes rows there; nil if the gap ends earlier.
    private func nextAtStop(
        in gap: ListExtent, _ canary: inout CanaryRows
    ) throws(BroadsideError) -> RowChunk? {
        // Offset of the sampling point within the bytes of all gaps.
        let share = canary.openByteCount / UInt64(canary.stopCount)
        let target = share * UInt64(canary.stop)
        let offset = target - min(target, canary.passedByteCount)
        guard offset <= byteCount(gap) else { return nil }
        if canary.rest == nil { canary.rest = cursor.begin(gap) }
        // Small steps stop closer to the sampling point, and large steps cost less.
        let step = share > 1 << 19 ? Int.max : max(1, Int(share / 512))
        while cursor.position.byteOffset < gap.byteOffset + offset {
            guard let chunk = try cursor.cutRows(atMost: step) else { return nil }
            cursor.giveBack(chunk)
        }
        guard
            let chunk = try cursor.cutRows(
                atMost: selection.rowLimit(Int(canary.rowsAtStop)))
        else { return nil }
        keepRest(upTo: chunk.start, &canary)
        canary.rest = chunk.end
        // In a shard by row numbers, only one of `rows.selection.divisor` rows is sent.
        let own = min(
            try selection.count(in: chunk.start.row..<chunk.end.row), canary.rowsAtStop)
        canary.rowsLeft -= own
        canary.rowsAtStop -= own
        assert(canary.rowsAtStop <= canary.rowsLeft, "a place has rows of the canary")
        if canary.rowsAtStop == 0 {
            canary.stop += 1
            assert(
                canary.rowsLeft == 0 || canary.stop < canary.stopCount,
                "the last stop of the canary takes all rows that are left")
            canary.rowsAtStop = rowsAtStop(canary)
        }
        return chunk
    }

    /// Keeps the rows before the sampling point that the canary does not use. They are handed out
    /// later.
    private func keepRest(upTo end: ListPosition, _ canary: inout CanaryRows) {
        guard let rest = canary.rest, rest.row < end.row else { return }
        canary.remains.append(ListExtent(from: rest, to: end))
    }

    /// Keeps what is left of a gap for later, and continues with the next gap.
    private func endGap(_ gap: ListExtent, _ canary: inout CanaryRows) {
        assert(canary.gaps.first == gap, "gaps end in their order")
        let left = canary.rest.map { gap.rest(from: $0) } ?? gap
        // The last gap is kept even if it has no rows, because counting the list's rows reads
        // through it.
        if left.firstRow != left.endRow { canary.remains.append(left) }
        canary.rest = nil
        canary.passedByteCount &+= byteCount(gap)
        canary.gaps.removeFirst()
    }
}
