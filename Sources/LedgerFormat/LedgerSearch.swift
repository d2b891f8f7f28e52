public import BroadsideRows

/// A search for rows in a ledger, by number or by token, including rows of the list that no run has
/// reserved yet.
public struct LedgerSearch {
    /// Subject of a search.
    public enum Wanted: Sendable {
        /// The row with this number in the list, counted from 0.
        case row(UInt64)
        /// All rows with this token. The first value is the token's digits, in lower case.
        /// `fingerprint` is the token's fingerprint, which the ledger stores for accepted rows.
        case token([UInt8], fingerprint: UInt64)
    }

    private let wanted: Wanted
    private let describer: RowDescriber

    /// Creates a search.
    ///
    /// - Parameters:
    ///   - wanted: Subject of the search.
    ///   - acceptsBySilence: Whether accepted rows had no response and therefore have no status.
    ///   - split: Split of devices into arms; nil if the campaign has none.
    ///   - hasTopics: Whether rows name their topics.
    ///   - reasonText: Returns the text of a reason's stable code.
    ///   - appendNotificationID: Appends the apns-id of a row, by its number.
    public init(
        for wanted: Wanted, acceptsBySilence: Bool, split: ArmSplit? = nil,
        hasTopics: Bool = false, reasonText: @escaping (UInt8) -> String,
        appendNotificationID: @escaping (UInt64, inout [UInt8]) -> Void
    ) {
        self.wanted = wanted
        describer = RowDescriber(
            reasonText: reasonText, appendNotificationID: appendNotificationID,
            acceptsBySilence: acceptsBySilence, arms: split.map { ArmFinder($0) },
            hasTopics: hasTopics, hasUniqueIDs: true)
    }

    /// Returns the rows found, in list order, in the form of an export.
    ///
    /// - Parameters:
    ///   - rowCount: End of the rows, if known.
    ///   - list: The list, or `NoLedgerList`; in the latter case rows that are not settled have no
    ///     token.
    /// - Throws: Errors of reading the ledger or the list.
    public func run(
        _ index: LedgerIndex, rowCount: UInt64?, list: inout some LedgerListReader
    ) throws(LedgerError) -> [ExportRow] {
        var verdicts = ChunkVerdicts(of: index)
        var rows = ListRows()
        var found: [ExportRow] = []
        var previous: ChunkReservation?
        for number in 0...index.chunkCount {
            let chunk = number < index.chunkCount ? index.chunk(number) : nil
            if let gap = index.rows.open(after: previous, before: chunk) {
                try search(gap, index, rowCount, &list, &rows, &found)
            }
            previous = chunk
            guard let chunk else { break }
            if case .row(let row) = wanted, !chunk.rows.contains(row) { continue }
            try verdicts.load(chunk: number)
            try search(verdicts, chunk, &list, &rows, &found)
        }
        return found
    }

    /// Searches the reserved rows.
    private func search(
        _ verdicts: borrowing ChunkVerdicts, _ chunk: ChunkReservation,
        _ list: inout some LedgerListReader, _ rows: inout ListRows, _ found: inout [ExportRow]
    ) throws(LedgerError) {
        var isLoaded = false
        var row = ExportRow()
        for rowIndex in verdicts.rows.indices {
            let number = chunk.firstRow + UInt64(rowIndex)
            guard verdicts.index.rows.contains(number, verdicts.rows[rowIndex].state),
                mayBe(verdicts, rowIndex, number, list)
            else { continue }
            if list.isAvailable, !isLoaded {
                isLoaded = true
                try list.load(chunk, into: &rows)
            }
            describer.describe(
                &row, verdicts, at: rowIndex, listIndex: list.isAvailable ? rowIndex : nil, rows)
            if case .token(let digits, _) = wanted, list.isAvailable, row.token != digits {
                continue
            }
            found.append(row)
        }
    }

    /// Whether the row may match. If the ledger has the row's token, the result is certain.
    /// Otherwise the result is true if there is a list. The caller then compares the row's token in
    /// the list.
    private func mayBe(
        _ verdicts: borrowing ChunkVerdicts, _ rowIndex: Int, _ number: UInt64,
        _ list: some LedgerListReader
    ) -> Bool {
        switch wanted {
        case .row(let row): return number == row
        case .token(let digits, let fingerprint):
            switch verdicts.rows[rowIndex].token {
            case .none: return list.isAvailable
            // The ledger has no tokens; only the list has them.
            case .fingerprint(0): return list.isAvailable
            case .fingerprint(let other): return other == fingerprint
            case .erased: return false
            case .bytes, .text:
                var text: [UInt8] = []
                verdicts.appendToken(ofRow: rowIndex, to: &text)
                return text == digits
            }
        }
    }

    /// Searches the rows that no run reserved.
    private func search(
        _ gap: ListExtent, _ index: LedgerIndex, _ rowCount: UInt64?,
        _ list: inout some LedgerListReader, _ listRows: inout ListRows,
        _ found: inout [ExportRow]
    ) throws(LedgerError) {
        let (end, rows) = (gap.endRow ?? .max, index.rows)
        if case .row(let row) = wanted, row < gap.firstRow || row >= end { return }
        var described = ExportRow()
        guard list.isAvailable else {
            if case .row(let row) = wanted, let rowCount, row < rowCount,
                rows.contains(row, .remaining)
            {
                describer.describe(
                    &described, open: row, at: nil, listRows,
                    isErased: index.erasedRows.contains(row))
                found.append(described)
            }
            return
        }
        var rest: ListExtent? = gap
        while let open = rest, let part = try list.loadNext(of: open, into: &listRows),
            part.rowCount > 0
        {
            for rowIndex in 0..<part.rowCount {
                let number = part.firstRow + UInt64(rowIndex)
                if number >= end { return }
                guard rows.contains(number, .remaining) else { continue }
                if case .row(let row) = wanted, number != row { continue }
                describer.describe(
                    &described, open: number, at: rowIndex, listRows,
                    isErased: index.erasedRows.contains(number))
                if case .token(let digits, _) = wanted, described.token != digits { continue }
                found.append(described)
                if case .row = wanted { return }
            }
            rest = open.rest(behind: part)
        }
    }
}
