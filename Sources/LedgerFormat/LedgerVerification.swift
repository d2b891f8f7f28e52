import BroadsideRows

/// What `ledger verify` says of a sound ledger.
public struct LedgerVerification: Sendable {
    /// How many rows are in which state.
    public var summary: LedgerSummary
    /// What a kill or a power cut left behind.
    public var tornTails: [LedgerLocation]
    /// Whether the manifest says that all rows are settled, and they are.
    var isFinished: Bool

    /// Reads all of a ledger and checks it: every checksum, every row settled at most once a run
    /// and never without a reservation, no two reservations of a run for one row; of runs that
    /// ended, the whole tail; and where the manifest says that the campaign is finished, that all
    /// rows are settled.
    ///
    /// - Throws: the first fault, with its place.
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
