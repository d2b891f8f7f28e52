internal import BroadsideAPNs
public import BroadsideRows
internal import BroadsideSupport

/// The export of each row's outcome, in list order, one chunk at a time.
public struct LedgerExport: ~Copyable {
    /// The states to export, one bit per state. A set would have to hash a value for each row.
    private let states: UInt16
    private let reasons: WantedReasons
    private let format: ExportFormat
    private let describer: RowDescriber
    /// Number of the arm to export; 0 for all rows.
    private let wantedArm: UInt8
    private let columns: Set<ExportColumn>

    private var verdicts: ChunkVerdicts
    private var listRows = ListRows()
    private var nextChunk = 0
    private var gap: ListExtent?
    private var gapIsDone = false
    private var headerIsDone: Bool
    /// The loaded rows, and the number of them that were processed.
    private var part: Part?
    private var text: ExportText

    private struct Part {
        /// Number of the first row.
        var firstRow: UInt64
        /// Number of rows to process, and the number that were processed.
        var count: Int
        var rowIndex = 0
        /// If no run reserved the rows (a gap), the chunk that the list reader returned for them;
        /// nil if a run reserved the rows.
        var ofGap: ChunkReservation?
    }

    /// Rows whose text is in the buffer, each with the offset at which its text ends.
    public private(set) var rows: [(number: UInt64, end: Int)] = []
    /// First row that was not processed.
    public private(set) var nextRow: UInt64 = 0
    private let notesRows: Bool

    /// Creates an export.
    ///
    /// - Parameters:
    ///   - index: The ledger.
    ///   - states: States to export; nil for all settled states. Rows that were never reserved are
    ///     `remaining`, and are found only in the list.
    ///   - reasons: Reasons to export; empty for all rows. `ReasonCounts.noReason` selects rows
    ///     without a reason.
    ///   - format: Format of the output.
    ///   - isPart: Whether the output continues an earlier export, and so has no header.
    ///   - notesRows: Whether `rows` is recorded.
    ///   - campaign: Campaign number in the rows' apns-ids; nil if rows have no apns-id.
    ///   - part: Part of the campaign, from 1; 0 for a campaign of one list.
    ///   - acceptsBySilence: Whether accepted rows had no response and therefore have no status.
    ///   - split: Split of devices into arms; nil if the campaign has none.
    ///   - hasTopics: Whether rows name their topics.
    ///   - arm: Name of the arm to export; nil for all rows.
    ///   - columns: Optional columns that were requested.
    ///   - reasonText: Returns the text of a reason's stable code.
    public init(
        of index: LedgerIndex, states: Set<RowState>? = nil, reasons: Set<String> = [],
        format: ExportFormat, isPart: Bool = false, notesRows: Bool = false, campaign: UInt64?,
        part: UInt16 = 0, acceptsBySilence: Bool = false, split: ArmSplit? = nil,
        hasTopics: Bool = false, arm: String? = nil, columns: Set<ExportColumn> = [],
        reasonText: @escaping (UInt8) -> String
    ) {
        let arms = split.map { ArmFinder($0) }
        wantedArm = arm.map { split?.number(of: $0) ?? .max } ?? 0
        let wanted = states ?? Set(RowState.allCases.filter(\.isSettled))
        self.states = wanted.reduce(0) { $0 | 1 << UInt16($1.rawValue) }
        self.reasons = WantedReasons(reasons, text: reasonText)
        self.format = format
        describer = RowDescriber(
            reasonText: reasonText,
            appendNotificationID: { row, output in
                guard let campaign else { return }
                output += [UInt8](capacity: NotificationID.textCount) {
                    NotificationID(campaign: campaign, part: part, row: row).write(into: &$0)
                }
            },
            acceptsBySilence: acceptsBySilence, arms: arms, hasTopics: hasTopics,
            hasUniqueIDs: columns.contains(.uniqueID))
        self.columns = columns
        verdicts = ChunkVerdicts(of: index)
        text = ExportText(
            ExportPieces(
                format, campaign: campaign, part: part, acceptsBySilence: acceptsBySilence,
                arms: arms, hasTopics: hasTopics, hasUniqueIDs: columns.contains(.uniqueID),
                reasonText: reasonText))
        self.notesRows = notesRows
        headerIsDone = isPart
    }

    /// Text of the rows appended since the last `forgetText`.
    public var bytes: RawSpan {
        @_lifetime(borrow self) get { text.bytes }
    }

    /// Removes the text and the recorded rows.
    public mutating func forgetText() {
        text.removeAll()
        rows.removeAll(keepingCapacity: true)
    }

    private func wants(_ state: RowState) -> Bool { states >> UInt16(state.rawValue) & 1 == 1 }

    /// Appends rows of one chunk, or of one range of the list that was never reserved, until the
    /// output is full.
    ///
    /// - Parameter list: The list, or `NoLedgerList`.
    /// - Returns: Whether there may be more rows. When `hasRoom` is false, the caller writes and
    ///   removes the text before the next call.
    /// - Throws: Errors of reading the ledger or the list.
    public mutating func next(
        list: inout some LedgerListReader
    ) throws(LedgerError) -> Bool {
        if !headerIsDone {
            headerIsDone = true
            var header: [UInt8] = []
            format.appendHeader(
                to: &header, hasArms: describer.arms != nil, hasTopics: describer.hasTopics,
                further: columns)
            text.append(header)
        }
        if part == nil, try !load(list: &list) { return false }
        guard var part else { return true }
        if part.ofGap == nil {
            appendChunk(&part, hasList: list.isAvailable)
        } else {
            appendOpen(&part)
        }
        assert(part.rowIndex <= part.count, "a part has no more rows than it has")
        nextRow = part.firstRow + UInt64(part.rowIndex)
        if part.rowIndex < part.count {
            self.part = part
            return true
        }
        if let read = part.ofGap {
            gap = gap?.rest(behind: read)
        } else {
            nextChunk += 1
            gapIsDone = false
        }
        self.part = nil
        return true
    }

    /// Whether a row of any length can be appended before the text is removed.
    public var hasRoom: Bool { text.hasRoom }

    /// Loads the next rows of a chunk or a gap. A gap may have no rows.
    ///
    /// - Returns: false at the end.
    private mutating func load(list: inout some LedgerListReader) throws(LedgerError) -> Bool {
        let count = verdicts.index.chunkCount
        let chunk = nextChunk < count ? verdicts.index.chunk(nextChunk) : nil
        if !gapIsDone {
            gapIsDone = true
            let previous = nextChunk > 0 ? verdicts.index.chunk(nextChunk - 1) : nil
            // A row that no run reserved has no reason.
            let wantsGaps = wants(.remaining) && list.isAvailable && reasons.areAll
            gap =
                wantsGaps ? verdicts.index.rows.open(after: previous, before: chunk) : nil
        }
        if let open = gap {
            guard let read = try list.loadNext(of: open, into: &listRows), read.rowCount > 0 else {
                gap = nil
                return true
            }
            let end = open.endRow ?? .max
            part = Part(
                firstRow: read.firstRow,
                count: Int(min(UInt64(read.rowCount), end - min(end, read.firstRow))),
                ofGap: read)
            return true
        }
        guard let chunk else { return false }
        try verdicts.load(chunk: nextChunk)
        if list.isAvailable { try list.load(chunk, into: &listRows) }
        assert(
            chunk.firstRow == verdicts.firstRow && chunk.rowCount == verdicts.rows.count,
            "the verdicts are the chunk's")
        part = Part(firstRow: chunk.firstRow, count: verdicts.rows.count)
        return true
    }

    /// Appends rows that a run reserved.
    private mutating func appendChunk(_ part: inout Part, hasList: Bool) {
        let campaignRows = verdicts.index.rows
        while part.rowIndex < part.count, text.hasRoom {
            let rowIndex = part.rowIndex
            part.rowIndex += 1
            let state = verdicts.rows[rowIndex].state
            let number = part.firstRow + UInt64(rowIndex)
            guard wants(state), campaignRows.contains(number, state),
                reasons.areAll || reasons.contain(verdicts, at: rowIndex)
            else { continue }
            let listIndex = hasList ? rowIndex : nil
            if wantedArm != 0, arm(at: rowIndex, listIndex: listIndex) != wantedArm { continue }
            if !text.appendPlain(
                row: number, at: rowIndex, verdicts, listIndex: listIndex, listRows)
            {
                var row = ExportRow()
                describer.describe(&row, verdicts, at: rowIndex, listIndex: listIndex, listRows)
                append(row)
            }
            if notesRows { rows.append((number, text.count)) }
        }
    }

    /// Appends rows that no run reserved.
    private mutating func appendOpen(_ part: inout Part) {
        let (campaignRows, erasedRows) = (verdicts.index.rows, verdicts.index.erasedRows)
        while part.rowIndex < part.count, text.hasRoom {
            let rowIndex = part.rowIndex
            part.rowIndex += 1
            let number = part.firstRow + UInt64(rowIndex)
            guard campaignRows.contains(number, .remaining) else { continue }
            let isErased = !erasedRows.isEmpty && erasedRows.contains(number)
            if wantedArm != 0, isErased || listArm(at: rowIndex) != wantedArm { continue }
            if isErased
                || !text.appendPlain(
                    row: number, at: nil, verdicts, listIndex: rowIndex, listRows)
            {
                var row = ExportRow()
                describer.describe(
                    &row, open: number, at: rowIndex, listRows, isErased: isErased)
                append(row)
            }
            if notesRows { rows.append((number, text.count)) }
            assert(rows.count <= 1 || rows[rows.count - 2].number < number, "rows are in order")
        }
    }

    /// Number of the arm of a reserved row; 0 if it is unknown.
    private func arm(at rowIndex: Int, listIndex: Int?) -> UInt8 {
        let verdict = verdicts.rows[rowIndex]
        if verdict.arm != 0 || verdict.state.isSettled || verdict.isErased { return verdict.arm }
        return listIndex.map { listArm(at: $0) } ?? 0
    }

    /// Returns the number of the arm to which a row's token in the list belongs; 0 if the row has
    /// no token.
    private func listArm(at listIndex: Int) -> UInt8 {
        guard let arms = describer.arms, listRows.isToken(listIndex) else { return 0 }
        return arms.arm(of: listRows.text(of: listIndex))
    }

    @inline(never)
    private mutating func append(_ row: ExportRow) {
        var line: [UInt8] = []
        format.append(row, to: &line)
        text.append(line)
    }
}

/// Selection of rows by their reasons.
struct WantedReasons {
    /// Reasons to select, each cut off at the length that a ledger keeps. An empty text selects
    /// rows without a reason.
    private let texts: Set<[UInt8]>
    /// Whether a reason is selected, indexed by its code.
    private let codes: [Bool]
    /// Whether all rows are selected, even those without a reason.
    let areAll: Bool

    init(_ reasons: Set<String>, text: (UInt8) -> String) {
        let texts = Set(
            reasons.map {
                $0 == ReasonCounts.noReason
                    ? [] : Array($0.utf8.prefix(LedgerFormat.reasonTextByteCountMax))
            })
        self.texts = texts
        areAll = texts.isEmpty
        codes =
            texts.isEmpty
            ? []
            : (UInt8.min...UInt8.max).map { code in
                texts.contains(code == 0 ? [] : Array(text(code).utf8))
            }
    }

    func contain(_ verdicts: borrowing ChunkVerdicts, at rowIndex: Int) -> Bool {
        contain(
            verdicts.rows[rowIndex].state, code: verdicts.rows[rowIndex].reason,
            text: verdicts.reasonText(ofRow: rowIndex))
    }

    /// - Parameters:
    ///   - state: State of the row.
    ///   - code: Stable code of the row's reason; 0 if there is none.
    ///   - text: Text of the reason if it has no code; otherwise nil.
    func contain(_ state: RowState, code: UInt8, text: [UInt8]?) -> Bool {
        if areAll { return true }
        if let text { return texts.contains(text) }
        // A request for rows without a reason selects neither accepted rows nor rows without a
        // verdict.
        if code == 0, !state.isSettled || state == .accepted { return false }
        return codes[Int(code)]
    }
}
