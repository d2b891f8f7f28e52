public import BroadsideRows

extension LedgerIndex {
    /// Returns the number of rows that got their state from some runs.
    ///
    /// - Parameters:
    ///   - runs: Numbers of the runs.
    ///   - states: The states to count. A row in doubt counts for the latest run that reserved it.
    public func rowCount(
        of runs: Set<UInt32>, in states: Set<RowState>
    ) throws(LedgerError) -> UInt64 {
        var verdicts = ChunkVerdicts(of: self)
        var count: UInt64 = 0
        for chunk in 0..<chunkCount
        where reservations(ofChunk: chunk).contains(where: { runs.contains($0.epoch) }) {
            try verdicts.load(chunk: chunk)
            let latest = latestRun(ofChunk: chunk)
            for place in verdicts.rows.indices {
                let row = verdicts.rows[place]
                guard states.contains(row.state),
                    runs.contains(row.state == .inDoubt ? latest : row.settlingEpoch),
                    rows.contains(verdicts.firstRow + UInt64(place), row.state)
                else { continue }
                count += 1
            }
        }
        return count
    }
}
