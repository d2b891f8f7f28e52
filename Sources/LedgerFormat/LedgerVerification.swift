import BroadsideRows

/// Result of `ledger verify` for a sound ledger.
public struct LedgerVerification: Sendable {
    /// Rows, counted by state.
    public var summary: LedgerSummary
    /// Torn tails: remains of a kill or a power cut.
    public var tornTails: [LedgerLocation]
    /// Whether all rows are settled. The manifest records this, and the check confirmed it.
    var isFinished: Bool

    /// Reads and checks a whole ledger:
    ///
    /// - every checksum is right;
    /// - a run settles a row at most once, and only if it reserved the row;
    /// - no two reservations of a run cover the same row;
    /// - the segments of an ended run are complete;
    /// - all rows are settled if the manifest records the campaign as finished.
    ///
    /// - Throws: The first fault, with its location.
    public init(checking segments: [LedgerSegment], manifest: Manifest) throws(LedgerError) {
        let index = try LedgerIndex(segments: segments, manifest: manifest)
        var verdicts = ChunkVerdicts(of: index)
        var summary = LedgerSummary()
        var nextRow = index.rows.part.firstRow
        for chunk in 0..<index.chunkCount {
            try verdicts.load(chunk: chunk)
            if let fault = verdicts.firstFault { throw fault }
            summary.add(verdicts)
            guard manifest.isFinished else { continue }
            if index.rows.openCount(from: nextRow, to: verdicts.firstRow) > 0 {
                throw LedgerVerification.open(nextRow)
            }
            assert(verdicts.firstRow >= nextRow, "chunks are in order")
            nextRow = verdicts.firstRow + UInt64(verdicts.rows.count)
            let rows = verdicts.rows.span
            for place in rows.indices where !rows[place].state.isSettled {
                let row = verdicts.firstRow + UInt64(place)
                if index.rows.contains(row, rows[place].state) {
                    throw LedgerVerification.open(row)
                }
            }
        }
        if manifest.isFinished, let rowCount = manifest.rowCount,
            index.rows.openCount(from: nextRow, to: rowCount) > 0
        {
            throw LedgerVerification.open(nextRow)
        }
        self.summary = summary
        tornTails = index.tornTails
        isFinished = manifest.isFinished
    }

    private static func open(_ row: UInt64) -> LedgerError {
        LedgerError(.unsettledRow, detail: "row \(row)")
    }
}
