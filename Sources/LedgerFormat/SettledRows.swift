internal import BroadsideAPNs
package import BroadsideRows
internal import BroadsideSupport

/// Rows of a ledger that a run is writing, in the order of their verdicts, one batch at a time.
///
/// A batch is read from segments, completed from the list and written. Unlike an export, this needs
/// no index of the ledger. Only the locations of chunks in the list are kept, about 80 bytes for
/// each chunk.
package struct SettledRows: ~Copyable {
    /// Number of records in a batch. A batch ends after the block that reaches this number.
    package static let batchRecordsMax = 32_768
    /// Maximum number of the list's chunks in memory. The rows of a batch are mostly from chunks
    /// with requests in flight.
    static let loadedChunksMax = 64

    private let format: ExportFormat
    private let filter: RowFilter
    private let campaign: UInt64

    private var reader = BlockReader()
    private var batch: [ExportRow] = []
    private var recordCount = 0
    /// Indices of the batch's rows whose verdicts are older than the run that recorded them. Such a
    /// verdict is an earlier run's, recorded again, unless the clock was set back.
    private var olderThanRun: [Int] = []

    /// Chunks in list order, and the chunks found since the last sort.
    private var chunks: ContiguousArray<ChunkReservation> = []
    private var found: ContiguousArray<ChunkReservation> = []
    private var loaded: [LoadedChunk] = []
    private var useCount: UInt64 = 0

    /// Chunk of the list in memory.
    private final class LoadedChunk {
        var rows = ListRows()
        var chunk: ChunkReservation
        var lastUse: UInt64 = 0

        init(_ chunk: ChunkReservation) { self.chunk = chunk }
    }

    /// - Parameters:
    ///   - states: States to include; empty for all settled states.
    ///   - reasons: Reasons to include; empty for all rows.
    ///   - format: Format of a row.
    ///   - segmentNumber: The number that segments have in their headers.
    ///   - campaign: Campaign number in the rows' apns-ids; nil if rows have no apns-id.
    ///   - part: Part of the campaign, from 1; 0 for a campaign of one list.
    ///   - acceptsBySilence: Whether accepted rows had no response and therefore have no status.
    ///   - split: Split of devices into arms; nil if the campaign has none.
    ///   - hasTopics: Whether rows name their topics.
    ///   - arm: Name of the arm to include; nil for all rows.
    ///   - columns: Optional columns that were requested.
    ///   - reasonText: Returns the text of a reason's stable code.
    package init(
        states: Set<RowState>, reasons: Set<String>, format: ExportFormat, segmentNumber: UInt64,
        campaign: UInt64?, part: UInt16, acceptsBySilence: Bool, split: ArmSplit? = nil,
        hasTopics: Bool = false, arm: String? = nil, columns: Set<ExportColumn> = [],
        reasonText: @escaping (UInt8) -> String
    ) {
        self.format = format
        self.campaign = segmentNumber
        let wanted = states.isEmpty ? Set(RowState.allCases.filter(\.isSettled)) : states
        filter = RowFilter(
            states: wanted.reduce(0) { $0 | 1 << UInt16($1.rawValue) },
            reasons: WantedReasons(reasons, text: reasonText),
            arm: arm.map { split?.number(of: $0) ?? .max } ?? 0,
            describer: RowDescriber(
                reasonText: reasonText,
                appendNotificationID: { row, output in
                    guard let campaign else { return }
                    output += [UInt8](capacity: NotificationID.textCount) {
                        NotificationID(campaign: campaign, part: part, row: row).write(into: &$0)
                    }
                },
                acceptsBySilence: acceptsBySilence, arms: split.map { ArmFinder($0) },
                hasTopics: hasTopics, hasUniqueIDs: columns.contains(.uniqueID)))
    }

    /// Whether the batch accepts no further block.
    package var isFull: Bool { recordCount >= Self.batchRecordsMax }

    /// Reads new blocks of a segment, to find the locations of chunks and the synced position.
    ///
    /// - Parameter end: The segment's recorded or current length.
    package mutating func scan(
        _ tail: inout SegmentTail, _ segment: LedgerSegment, upTo end: UInt64
    ) throws(LedgerError) {
        var noted: ContiguousArray<ChunkReservation> = []
        try tail.scan(segment, upTo: end, campaign: campaign, with: &reader) { noted.append($0) }
        found += noted
    }

    /// Adds durable rows of a segment to the batch.
    ///
    /// - Parameters:
    ///   - rows: The rows that the campaign covers.
    ///   - start: Time of the start of the segment's run, in milliseconds since 1970.
    ///   - limit: Number of records; reading stops after the block that reaches it.
    /// - Returns: Whether a block was read.
    package mutating func read(
        _ tail: inout SegmentTail, _ segment: LedgerSegment, of rows: CampaignRows,
        startedAtMilliseconds start: UInt64, atMost limit: Int
    ) throws(LedgerError) -> Bool {
        let filter = filter
        let isFirstRun = tail.epoch == 1
        var (added, older, count) = ([ExportRow](), [Int](), 0)
        let before = batch.count
        let isRead = try tail.emit(segment, campaign: campaign, atMost: limit, with: &reader) {
            reader, record in
            count += 1
            guard let row = filter.row(record, reader), rows.contains(row.row, row.state) else {
                return
            }
            if !isFirstRun, row.settledAtMilliseconds ?? .max < start {
                older.append(before + added.count)
            }
            added.append(row)
        }
        batch += added
        olderThanRun += older
        recordCount += count
        return isRead
    }

    /// Whether the batch may have verdicts that an earlier run recorded.
    package var mayRepeatVerdicts: Bool { !olderThanRun.isEmpty }

    /// Removes the rows whose verdicts an earlier run recorded. A run records such verdicts again if
    /// it reopens rows and does not send them.
    ///
    /// - Parameter earlier: Index of the runs before the one that the batch is from.
    package mutating func removeRepeatedVerdicts(of earlier: LedgerIndex) throws(LedgerError) {
        var verdicts = ChunkVerdicts(of: earlier)
        var loaded: Int?
        var repeated: Set<Int> = []
        for index in olderThanRun.sorted(by: { batch[$0].row < batch[$1].row }) {
            let row = batch[index]
            guard let chunk = earlier.chunkIndex(ofRow: row.row) else { continue }
            if chunk != loaded { try verdicts.load(chunk: chunk) }
            loaded = chunk
            let known = verdicts.rows[Int(row.row - verdicts.firstRow)]
            if known.state == row.state, known.attempts == row.attempts,
                known.settledAtMilliseconds == row.settledAtMilliseconds
            {
                repeated.insert(index)
            }
        }
        olderThanRun.removeAll()
        guard !repeated.isEmpty else { return }
        batch = batch.indices.filter { !repeated.contains($0) }.map { batch[$0] }
    }

    // MARK: The list

    /// Adds the line number to each row of the batch, and the token if the ledger does not have it.
    ///
    /// - Parameter list: The list that was sent.
    package mutating func complete(from list: inout some LedgerListReader) throws(LedgerError) {
        guard list.isAvailable, !batch.isEmpty else { return }
        sortChunks()
        // In list order, because a compressed list can only be read forward.
        let order = batch.indices.sorted { batch[$0].row < batch[$1].row }
        var current: LoadedChunk?
        for index in order {
            let number = batch[index].row
            if current?.chunk.rows.contains(number) != true {
                current = try load(chunkOf: number, &list)
            }
            guard let current else { continue }
            Self.complete(
                &batch[index], at: Int(number - current.chunk.firstRow), of: current.rows)
        }
    }

    private static func complete(
        _ row: inout ExportRow, at place: Int, of list: borrowing ListRows
    ) {
        row.line = list.line(of: place)
        guard row.token.isEmpty else { return }
        let text = list.text(of: place)
        if ErasedToken.isErased(row.fingerprint, text) {
            ErasedToken.appendPlaceholder(row.fingerprint, to: &row.token)
        } else {
            row.token.append(text)
        }
    }

    private mutating func load(
        chunkOf row: UInt64, _ list: inout some LedgerListReader
    ) throws(LedgerError) -> LoadedChunk {
        useCount += 1
        if let known = loaded.first(where: { $0.chunk.rows.contains(row) }) {
            known.lastUse = useCount
            return known
        }
        guard let chunk = chunk(of: row) else {
            throw LedgerError(.unreservedRow, segment: "", detail: "row \(row)")
        }
        let room: LoadedChunk
        if loaded.count < Self.loadedChunksMax {
            room = LoadedChunk(chunk)
            loaded.append(room)
        } else {
            room = loaded.min { $0.lastUse < $1.lastUse }!
        }
        assert(loaded.count <= Self.loadedChunksMax, "chunks in memory have a limit")
        try list.load(chunk, into: &room.rows)
        room.chunk = chunk
        room.lastUse = useCount
        return room
    }

    /// Moves the chunks found since the last call into the sorted chunks.
    private mutating func sortChunks() {
        guard !found.isEmpty else { return }
        found.sort { $0.firstRow < $1.firstRow }
        if let last = chunks.last, let first = found.first, first.firstRow <= last.firstRow {
            chunks += found
            chunks.sort { $0.firstRow < $1.firstRow }
        } else {
            chunks += found
        }
        found.removeAll(keepingCapacity: true)
    }

    /// Returns the chunk that holds a row. A chunk has several reservations if later runs continued
    /// it. Any of them is suitable.
    private func chunk(of row: UInt64) -> ChunkReservation? {
        var (low, high) = (0, chunks.count)
        while low < high {
            let middle = (low + high) / 2
            if chunks[middle].rows.upperBound <= row { low = middle + 1 } else { high = middle }
        }
        guard low < chunks.count, chunks[low].rows.contains(row) else { return nil }
        return chunks[low]
    }

    // MARK: Text

    /// Appends the rows of the batch as text, and starts the next batch.
    package mutating func takeBatch(into text: inout [UInt8]) {
        for row in batch { format.append(row, to: &text) }
        batch.removeAll(keepingCapacity: true)
        olderThanRun.removeAll()
        recordCount = 0
    }
}

/// Selection of verdicts, and their conversion to rows.
private struct RowFilter {
    /// Selected states, one bit per state.
    let states: UInt16
    let reasons: WantedReasons
    /// Number of the arm to include; 0 for all rows.
    let arm: UInt8
    let describer: RowDescriber

    /// Returns the row of a verdict; nil for other records, and for rows that are not selected.
    func row(_ record: LedgerRecord, _ reader: borrowing BlockReader) -> ExportRow? {
        var row = ExportRow()
        switch record {
        case .reserve, .release, .releaseSome: return nil
        case .accepted:
            guard arm == 0, wants(.accepted), reasons.contain(.accepted, code: 0, text: nil) else {
                return nil
            }
        case .settled(let settled):
            guard wants(settled.state), arm == 0 || settled.arm == arm else { return nil }
            if case .fingerprint = settled.token {
                var uniqueID: [UInt8] = []
                reader.copy(settled.reasonText, to: &uniqueID)
                row.uniqueID = uniqueID
            } else {
                reader.copy(settled.reasonText, to: &row.reason)
            }
            let text = row.reason.isEmpty ? nil : row.reason
            guard reasons.contain(settled.state, code: settled.reason, text: text) else {
                return nil
            }
        }
        describer.describe(&row, record, reader)
        return row
    }

    private func wants(_ state: RowState) -> Bool { states >> UInt16(state.rawValue) & 1 == 1 }
}
