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
    /// Sizes of the gaps, in bytes or in due rows; empty until the plan has been read. A size is
    /// counted only once, because due rows are counted in the whole gap.
    var sizes: [UInt64] = []
    /// Total size of all gaps.
    var openSize: UInt64 = 0
    /// Total size of the gaps that were already passed.
    var passedSize: UInt64 = 0
    /// Size of the current gap up to the cursor.
    var sizeInGap: UInt64 = 0
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
        if canary.isOut { try goOn(&canary) }
        while canary.rowsLeft > 0, !canary.isPlanRead {
            switch try nextOfPlan() {
            case nil:
                canary.isPlanRead = true
                try spread(&canary)
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
    private func goOn(_ canary: inout CanaryRows) throws(BroadsideError) {
        let missing = canary.gate.takeMissing()
        guard missing > 0, canary.rowsLeft == 0 else { return }
        canary.isOut = false
        canary.rowsLeft = missing
        canary.gaps = canary.remains
        canary.remains = []
        canary.passedSize = 0
        canary.stop = 0
        if canary.isPlanRead { try spread(&canary) }
    }

    /// Determines the number of sampling points.
    private func spread(_ canary: inout CanaryRows) throws(BroadsideError) {
        canary.sizes = []
        for gap in canary.gaps { canary.sizes.append(try size(gap)) }
        canary.openSize = canary.sizes.reduce(0, &+)
        canary.stopCount =
            canSpreadCanary ? Int(min(canary.rowsLeft, CanaryRows.stopLimit)) : 1
        assert(canary.stopCount > 0, "there are rows to send first")
        canary.rowsAtStop = rowsAtStop(canary)
    }

    /// Size of a range of the list, over which the sampling points are spread: its due rows, or its
    /// bytes if all rows are due. Rows that are due may lie together.
    private func size(_ gap: ListExtent) throws(BroadsideError) -> UInt64 {
        guard selection.due == nil else {
            return try selection.count(in: gap.firstRow..<(gap.endRow ?? .max))
        }
        let end = gap.endByteOffset ?? list.byteCount ?? .max
        return end - min(end, gap.byteOffset)
    }

    /// Reads a chunk of at most so many rows, or due rows.
    private func cut(
        atMost limit: Int, _ canary: inout CanaryRows
    ) throws(BroadsideError) -> RowChunk? {
        let most = try selection.rowLimit(limit, from: cursor.position.row)
        guard let chunk = try cursor.cutRows(atMost: most) else { return nil }
        canary.sizeInGap += try size(ListExtent(from: chunk.start, to: chunk.end))
        return chunk
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
        // Offset of the sampling point within all gaps.
        let share = canary.openSize / UInt64(canary.stopCount)
        let target = share * UInt64(canary.stop)
        let offset = target - min(target, canary.passedSize)
        assert(canary.sizes.count == canary.gaps.count, "each gap has its size")
        guard offset <= canary.sizes[0] else { return nil }
        if canary.rest == nil {
            canary.rest = cursor.begin(gap)
            canary.sizeInGap = 0
        }
        while canary.sizeInGap < offset {
            guard
                let chunk = try cut(
                    atMost: step(share, to: offset - canary.sizeInGap), &canary)
            else { return nil }
            cursor.giveBack(chunk)
        }
        guard let chunk = try cut(atMost: Int(canary.rowsAtStop), &canary) else { return nil }
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

    /// Returns how many rows, or due rows, to pass over at a time before a sampling point.
    private func step(_ share: UInt64, to left: UInt64) -> Int {
        guard selection.due == nil else { return Int(left) }
        // Small steps stop closer to the sampling point, and large steps cost less.
        return share > 1 << 19 ? Int.max : max(1, Int(share / 512))
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
        if !canary.sizes.isEmpty { canary.passedSize &+= canary.sizes.removeFirst() }
        canary.gaps.removeFirst()
    }
}
