/// How many rows ended in which state, and why.
public struct LedgerSummary: Sendable {
    /// Rows of all reserved chunks, those of other shards left out.
    public private(set) var reservedRowCount: UInt64 = 0
    /// Times a reserved row was sent, as far as the ledger knows.
    public private(set) var attemptCount: UInt64 = 0
    /// Rows not accepted by the stable code of their reason; those without one are not in it.
    public private(set) var reasons: [UInt8: UInt64] = [:]
    /// Rows not accepted by the text of a reason without a code.
    public private(set) var reasonTexts: [String: UInt64] = [:]

    private var counts = [UInt64](repeating: 0, count: RowState.allCases.count)

    /// No rows.
    public init() {}

    /// Counts all rows that a ledger knows. Rows that were never reserved are `remaining` and not
    /// counted here: only who reads the list knows how many there are.
    public init(_ index: LedgerIndex) throws(LedgerError) {
        var verdicts = ChunkVerdicts(of: index)
        for chunk in 0..<index.chunkCount {
            try verdicts.load(chunk: chunk)
            add(verdicts)
        }
    }

    /// Rows in a state.
    public func count(_ state: RowState) -> UInt64 { counts[Int(state.rawValue)] }

    /// Adds what another ledger knows.
    public mutating func add(_ other: LedgerSummary) {
        reservedRowCount += other.reservedRowCount
        attemptCount += other.attemptCount
        for state in counts.indices { counts[state] += other.counts[state] }
        reasons.merge(other.reasons) { $0 + $1 }
        reasonTexts.merge(other.reasonTexts) { $0 + $1 }
    }

    /// Adds the rows of a chunk.
    public mutating func add(_ verdicts: borrowing ChunkVerdicts) {
        for place in verdicts.rows.indices
        where verdicts.index.selection.contains(verdicts.firstRow + UInt64(place)) {
            let row = verdicts.rows[place]
            reservedRowCount += 1
            attemptCount += UInt64(row.attempts)
            counts[Int(row.state.rawValue)] += 1
            guard row.state.isSettled && row.state != .accepted else { continue }
            if let text = verdicts.reasonText(ofRow: place) {
                reasonTexts[String(decoding: text, as: UTF8.self), default: 0] += 1
            } else if row.reason != 0 {
                reasons[row.reason, default: 0] += 1
            }
        }
    }
}
