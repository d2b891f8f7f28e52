/// Writes what became of each row, in list order, a chunk at a time.
public struct LedgerExport: ~Copyable {
    /// A bit a state: a set would be hashed into for each row.
    private let states: UInt16
    /// Only rows with one of these; empty: whatever it is.
    private let reasons: Set<[UInt8]>
    private let format: ExportFormat
    private let describer: RowDescriber

    private var verdicts: ChunkVerdicts
    private var nextChunk = 0
    private var gap: ListGap?
    private var gapIsDone = false
    private var headerIsDone = false
    private var row = ExportRow()

    /// The rows in the latest parts, and where each one's text ends in what they were appended to,
    /// if that was empty before.
    public private(set) var rows: [(number: UInt64, end: Int)] = []
    /// All rows before this one were dealt with.
    public private(set) var nextRow: UInt64 = 0
    private let notesRows: Bool

    /// Prepares an export.
    ///
    /// - Parameters:
    ///   - index: the ledger.
    ///   - states: which rows; nil for all settled ones. Rows that were never reserved are
    ///     `remaining`, and found only in the list.
    ///   - reasons: only rows with one of these reasons, `ReasonCounts.noReason` among them; empty:
    ///     whatever it is.
    ///   - format: how it is written.
    ///   - isPart: whether it is put together with others: then it has no header, and notes `rows`.
    ///   - acceptsBySilence: whether accepted rows had no answer, and so have no status.
    ///   - reasonText: the text of a reason's stable code.
    ///   - appendNotificationID: appends the apns-id of a row, by its number.
    public init(
        of index: LedgerIndex, states: Set<RowState>? = nil, reasons: Set<String> = [],
        format: ExportFormat, isPart: Bool = false, acceptsBySilence: Bool = false,
        reasonText: @escaping (UInt8) -> String,
        appendNotificationID: @escaping (UInt64, inout [UInt8]) -> Void
    ) {
        let wanted = states ?? Set(RowState.allCases.filter(\.isSettled))
        self.states = wanted.reduce(0) { $0 | 1 << UInt16($1.rawValue) }
        self.reasons = Set(
            reasons.map {
                $0 == ReasonCounts.noReason
                    ? [] : Array($0.utf8.prefix(LedgerFormat.reasonTextByteCountMax))
            })
        self.format = format
        describer = RowDescriber(
            reasonText: reasonText, appendNotificationID: appendNotificationID,
            acceptsBySilence: acceptsBySilence)
        verdicts = ChunkVerdicts(of: index)
        notesRows = isPart
        headerIsDone = isPart
    }

    /// Forgets the rows noted so far.
    public mutating func forgetRows() { rows.removeAll(keepingCapacity: true) }

    private func wants(_ state: RowState) -> Bool { states >> UInt16(state.rawValue) & 1 == 1 }

    private var wantsRow: Bool {
        guard !reasons.isEmpty else { return true }
        // Rows that were accepted, or have no verdict yet, lack no reason.
        if row.reason.isEmpty, !row.state.isSettled || row.state == .accepted { return false }
        return reasons.contains(row.reason)
    }

    /// Appends the next part: the rows of one chunk, or of one part of the list that was never
    /// reserved.
    ///
    /// - Parameters:
    ///   - list: the list, or `NoLedgerList`.
    ///   - output: grows by the rows' text; the caller writes and empties it.
    /// - Returns: whether there may be more.
    /// - Throws: what reading the ledger or the list throws.
    public mutating func next(
        list: inout some LedgerListReader, into output: inout [UInt8]
    ) throws(LedgerError) -> Bool {
        if !headerIsDone {
            headerIsDone = true
            format.appendHeader(to: &output)
        }
        let count = verdicts.index.chunkCount
        let chunk = nextChunk < count ? verdicts.index.chunk(nextChunk) : nil
        if !gapIsDone {
            gapIsDone = true
            let previous = nextChunk > 0 ? verdicts.index.chunk(nextChunk - 1) : nil
            // A row that no run has reserved has no reason.
            let wantsGaps = wants(.remaining) && list.isAvailable && reasons.isEmpty
            gap =
                wantsGaps ? verdicts.index.rows.open(after: previous, before: chunk) : nil
        }
        if let open = gap {
            gap = try appendPart(of: open, list: &list, into: &output)
            return true
        }
        guard let chunk else { return false }
        try verdicts.load(chunk: nextChunk)
        if list.isAvailable { try list.load(chunk) }
        for place in verdicts.rows.indices where wants(verdicts.rows[place].state) {
            let number = chunk.firstRow + UInt64(place)
            guard verdicts.index.rows.contains(number, verdicts.rows[place].state) else {
                continue
            }
            describer.describe(&row, verdicts, at: place, list)
            guard wantsRow else { continue }
            format.append(row, to: &output)
            if notesRows { rows.append((row.row, output.count)) }
        }
        nextRow = chunk.rows.upperBound
        nextChunk += 1
        gapIsDone = false
        return true
    }

    /// Appends rows from the beginning of a gap.
    ///
    /// - Returns: the rest of the gap; nil if nothing is left of it.
    private mutating func appendPart(
        of gap: ListGap, list: inout some LedgerListReader, into output: inout [UInt8]
    ) throws(LedgerError) -> ListGap? {
        guard let part = try list.loadNext(of: gap), part.rowCount > 0 else { return nil }
        for place in 0..<part.rowCount {
            let number = part.firstRow + UInt64(place)
            if let endRow = gap.endRow, number >= endRow { return nil }
            guard verdicts.index.rows.contains(number, .remaining) else { continue }
            describer.describe(&row, open: number, at: place, list)
            format.append(row, to: &output)
            if notesRows { rows.append((number, output.count)) }
        }
        nextRow = part.rows.upperBound
        return gap.rest(behind: part)
    }
}
