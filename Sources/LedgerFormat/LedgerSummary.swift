public import BroadsideRows
import BroadsideSupport

/// Rows, counted by state and by reason.
public struct LedgerSummary: Sendable {
    /// Number of the campaign's rows in all reserved chunks. It excludes rows of other shards, and
    /// rows beyond the limit that were never sent.
    public private(set) var reservedRowCount: UInt64 = 0
    /// Reserved rows beyond the limit of the latest run.
    public private(set) var beyondLimitCount: UInt64 = 0
    /// Rows rejected with 410: dead tokens.
    public private(set) var goneCount: UInt64 = 0
    /// Rows that are invalid because their device was erased from the ledger's list before a run
    /// read them.
    public private(set) var erasedCount: UInt64 = 0
    /// Failed and unknown rows that the option `--retry` does not send again.
    public private(set) var unsendable = UnsendableRows()

    /// Rows by the raw value of their state.
    private var numbers = [UInt64](repeating: 0, count: RowState.allCases.count)
    /// Rows that were not accepted, by state and reason.
    private var reasons = [ReasonCounts](repeating: ReasonCounts(), count: RowState.allCases.count)

    /// Settled rows by arm.
    private var arms = ArmCounts()
    /// Settled rows by topic, if rows name their topics.
    public private(set) var topics = TopicCounts()

    /// Creates a summary without rows.
    public init() {}

    /// Counts all rows in a ledger. Rows that were never reserved are `remaining` and not counted
    /// here, because only the list tells how many there are.
    ///
    /// - Parameter run: Counts only rows that this run or a later one settled; nil: all rows.
    public init(_ index: LedgerIndex, settledSince run: UInt32? = nil) throws(LedgerError) {
        var verdicts = ChunkVerdicts(of: index)
        for chunk in 0..<index.chunkCount
        where run.map({ index.latestRun(ofChunk: chunk) >= $0 }) ?? true {
            try verdicts.load(chunk: chunk)
            add(verdicts, settledSince: run ?? 0)
        }
    }

    /// Returns the number of rows in a state.
    public func count(_ state: RowState) -> UInt64 { numbers[Int(state.rawValue)] }

    /// The counts of all rows.
    public var counts: RowCounts { counts(of: RowState.allCases) }

    /// Returns the counts of rows that stay settled if a run reopens the rows in `states`.
    public func kept(reopening states: ReopenedStates) -> RowCounts {
        counts(of: RowState.settledStates.filter { !states.contains($0) })
    }

    /// Returns the counts of settled rows in some states.
    public func settled(in states: ReopenedStates) -> RowCounts {
        counts(of: RowState.settledStates.filter { states.contains($0) })
    }

    private func counts(of states: [RowState]) -> RowCounts {
        var counts = RowCounts()
        for state in states {
            counts[state] = count(state)
            counts.reasons.add(reasons[Int(state.rawValue)])
            counts.arms.add(arms, in: state)
        }
        return counts
    }

    /// Adds the counts of another ledger.
    public mutating func add(_ other: LedgerSummary) {
        reservedRowCount += other.reservedRowCount
        beyondLimitCount += other.beyondLimitCount
        for state in numbers.indices {
            numbers[state] += other.numbers[state]
            reasons[state].add(other.reasons[state])
        }
        goneCount += other.goneCount
        erasedCount += other.erasedCount
        unsendable.add(other.unsendable)
        arms.add(other.arms)
        topics.add(other.topics)
        assert(numbers.reduce(0, +) == reservedRowCount, "each reserved row has one state")
    }

    /// Adds the rows of a chunk.
    ///
    /// - Parameter run: Adds only rows that this run or a later one settled; 0: all rows.
    mutating func add(_ verdicts: borrowing ChunkVerdicts, settledSince run: UInt32 = 0) {
        let campaignRows = verdicts.index.rows
        var (reserved, beyondLimit): (UInt64, UInt64) = (0, 0)
        var accepted: UInt64 = 0
        var byTopic: [[UInt64]] = []
        let rows = verdicts.rows.span
        for place in rows.indices {
            let state = rows[place].state
            let number = verdicts.firstRow + UInt64(place)
            guard campaignRows.contains(number, state), rows[place].settlingEpoch >= run else {
                continue
            }
            reserved += 1
            if number >= campaignRows.end { beyondLimit += 1 }
            if rows[place].arm != 0, state.isSettled { arms.count(rows[place].arm, state) }
            if rows[place].topic != 0 { Self.count(rows[place].topic, state, in: &byTopic) }
            if state == .accepted {
                accepted += 1
                continue
            }
            numbers[Int(state.rawValue)] += 1
            unsendable.count(rows[place], isBeyondLimit: number >= campaignRows.end)
            if state.isSettled { addReason(verdicts, at: place) }
        }
        assert(beyondLimit <= reserved && accepted <= reserved, "no more rows than the chunk has")
        assert(erasedCount <= count(.invalid), "an erased row is invalid")
        reservedRowCount += reserved
        beyondLimitCount += beyondLimit
        numbers[Int(RowState.accepted.rawValue)] += accepted
        for (topic, counts) in byTopic.enumerated() where !counts.isEmpty {
            topics.add(counts, of: verdicts.topics[UInt16(topic)])
        }
        assert(numbers.reduce(0, +) == reservedRowCount, "each reserved row has one state")
    }

    /// Counts a row under the number of its topic.
    private static func count(_ topic: UInt16, _ state: RowState, in counts: inout [[UInt64]]) {
        assert(state.isSettled, "only a verdict has a topic")
        while counts.count <= Int(topic) { counts.append([]) }
        if counts[Int(topic)].isEmpty {
            counts[Int(topic)] = Array(repeating: 0, count: RowState.allCases.count)
        }
        counts[Int(topic)][Int(state.rawValue)] += 1
    }

    /// Counts the reason of a row that was not accepted.
    private mutating func addReason(_ verdicts: borrowing ChunkVerdicts, at place: Int) {
        let row = verdicts.rows[place]
        if row.state == .rejected && row.status == 410 { goneCount += 1 }
        if row.state == .invalid, verdicts.isMasked(row: place) { erasedCount += 1 }
        if let text = verdicts.reasonText(ofRow: place) {
            reasons[Int(row.state.rawValue)].add(text: text.rawSpan)
        } else {
            reasons[Int(row.state.rawValue)].add(code: row.reason)
        }
    }
}
