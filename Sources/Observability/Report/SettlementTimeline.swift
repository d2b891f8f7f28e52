package import BroadsideLedgerFormat
import BroadsideRows

/// The counts of settled rows over time, from the ledger's verdicts, in bins of equal width. The
/// width grows with the time that is covered, so that the number of bins is bounded.
package struct SettlementTimeline {
    struct Bin {
        /// Seconds since the run's start.
        var start: Double
        var duration: Double
        var accepted: UInt64 = 0
        var rejected: UInt64 = 0
        var others: UInt64 = 0
    }

    private struct Counts {
        var accepted: UInt64 = 0
        var rejected: UInt64 = 0
        var others: UInt64 = 0

        mutating func add(_ other: Counts) {
            accepted += other.accepted
            rejected += other.rejected
            others += other.others
        }
    }

    private let epochs: [Manifest.Epoch]
    /// Numbers of the runs whose rows are counted; nil: all runs.
    private let runs: Set<UInt32>?
    /// Index of the run of the latest counted row.
    private var latestIndex = 0
    /// For each run, the time of its last counted verdict in milliseconds since 1970; 0 if it has
    /// no counted verdict.
    private var lastMilliseconds: [UInt64]
    private var widthMilliseconds: UInt64 = 1000
    /// For each run, the counts of each bin by the bin's number.
    private var counts: [[UInt64: Counts]]

    /// Maximum number of bins over all runs.
    static let binsLimit = 1200

    /// - Parameters:
    ///   - epochs: All runs of the ledger.
    ///   - runs: Numbers of the runs whose rows are counted; nil: all runs.
    package init(epochs: [Manifest.Epoch], only runs: Set<UInt32>? = nil) {
        self.epochs = epochs
        self.runs = runs
        counts = Array(repeating: [:], count: epochs.count)
        lastMilliseconds = Array(repeating: 0, count: epochs.count)
    }

    /// Counts the settled rows of a ledger.
    package mutating func add(_ index: LedgerIndex) throws(LedgerError) {
        var verdicts = ChunkVerdicts(of: index)
        for chunk in 0..<index.chunkCount {
            try verdicts.load(chunk: chunk)
            add(verdicts)
        }
    }

    /// Counts the settled rows of a chunk.
    mutating func add(_ verdicts: borrowing ChunkVerdicts) {
        for place in verdicts.rows.indices {
            let row = verdicts.rows[place]
            guard row.state.isSettled,
                verdicts.index.rows.contains(verdicts.firstRow + UInt64(place), row.state)
            else { continue }
            add(row.state, in: row.settlingEpoch, at: row.settledAtMilliseconds)
        }
    }

    /// Counts a settled row.
    ///
    /// - Parameters:
    ///   - run: Number of the run that settled the row. If the clock was set back, the times of
    ///     different runs overlap.
    ///   - milliseconds: Time of the verdict. A time before the run's start counts as its start.
    mutating func add(_ state: RowState, in run: UInt32, at milliseconds: UInt64) {
        guard runs?.contains(run) ?? true, let epoch = index(of: run) else { return }
        lastMilliseconds[epoch] = max(lastMilliseconds[epoch], milliseconds)
        let start = epochs[epoch].startedAtMilliseconds
        let bin = (milliseconds - min(milliseconds, start)) / widthMilliseconds
        switch state {
        case .accepted: counts[epoch][bin, default: Counts()].accepted += 1
        case .rejected: counts[epoch][bin, default: Counts()].rejected += 1
        default: counts[epoch][bin, default: Counts()].others += 1
        }
        while counts.lazy.map(\.count).reduce(0, +) > Self.binsLimit { widen() }
    }

    /// Returns the index of a run in `epochs`. Consecutive rows are mostly of the same run.
    private mutating func index(of run: UInt32) -> Int? {
        if latestIndex < epochs.count, epochs[latestIndex].number == run { return latestIndex }
        guard let index = epochs.firstIndex(where: { $0.number == run }) else { return nil }
        latestIndex = index
        return index
    }

    private mutating func widen() {
        widthMilliseconds *= 2
        for epoch in counts.indices {
            var wider: [UInt64: Counts] = [:]
            for (bin, count) in counts[epoch] { wider[bin / 2, default: Counts()].add(count) }
            assert(wider.count <= counts[epoch].count, "wider bins are not more")
            counts[epoch] = wider
        }
    }

    /// Seconds from a run's start to its last verdict, at least a millisecond; nil if no verdict of
    /// the run was counted.
    func seconds(of number: UInt32) -> Double? {
        guard let epoch = epochs.firstIndex(where: { $0.number == number }),
            !counts[epoch].isEmpty
        else { return nil }
        let start = epochs[epoch].startedAtMilliseconds
        return Double(max(1, lastMilliseconds[epoch] - min(lastMilliseconds[epoch], start))) / 1000
    }

    /// Bins of a run in order, from its start to its last verdict.
    func bins(of number: UInt32) -> [Bin] {
        guard let epoch = epochs.firstIndex(where: { $0.number == number }),
            let last = counts[epoch].keys.max()
        else { return [] }
        let width = Double(widthMilliseconds) / 1000
        // Empty bins between others are included, unless the run has a gap of days.
        guard last < UInt64(4 * Self.binsLimit) else {
            return counts[epoch].sorted { $0.key < $1.key }.map { bin($0.key, $0.value, width) }
        }
        return (0...last).map { bin($0, counts[epoch][$0] ?? Counts(), width) }
    }

    private func bin(_ index: UInt64, _ counts: Counts, _ width: Double) -> Bin {
        Bin(
            start: Double(index) * width, duration: width, accepted: counts.accepted,
            rejected: counts.rejected, others: counts.others)
    }
}
