internal import BroadsidePrimitives
public import BroadsideRows
internal import BroadsideSupport

/// Outcome of one row according to all runs.
public struct RowVerdict: Sendable {
    /// Recorded token of a row.
    public enum Token: Sendable {
        /// The ledger has no token of the row.
        case none
        /// Fingerprint of an accepted row's token. The ledger has no other data of this token.
        case fingerprint(UInt64)
        /// Bytes of a token, in the storage of `ChunkVerdicts`.
        case bytes(Range<Int>)
        /// Text of the list that is not a token, in the storage of `ChunkVerdicts`.
        case text(Range<Int>)
        /// The hash that replaces the token of an erased device, in the storage of `ChunkVerdicts`.
        case erased(Range<Int>)
    }

    /// State of the row.
    public internal(set) var state: RowState = .remaining
    /// Stable code of the reason; 0 if there is none.
    public internal(set) var reason: UInt8 = 0
    /// HTTP status; 0 if there was no response, 200 for accepted rows.
    public internal(set) var status: UInt16 = 0
    /// Number of attempts known to the ledger, of all runs.
    public internal(set) var attempts: UInt16 = 0
    /// Number of these attempts before a run reopened the row. They do not count for
    /// `--max-attempts`.
    var attemptsBefore: UInt16 = 0
    /// Number of the row's arm, from 1; 0 if none was recorded.
    public internal(set) var arm: UInt8 = 0
    /// Number of the row's topic in `ChunkVerdicts.topics`; 0 if none was recorded.
    public internal(set) var topic: UInt16 = 0
    /// Run that reopened the row and left it in doubt, and after which no run settled it; 0 if there
    /// is none.
    var reopeningEpoch: UInt32 = 0
    /// Time of the verdict in milliseconds since 1970; 0 while the row is open.
    public internal(set) var settledAtMilliseconds: UInt64 = 0
    /// Timestamp from APNs, in milliseconds since 1970.
    public internal(set) var timestamp: UInt64?
    /// Recorded token of the row, its fingerprint, or the text that the list has in its place.
    public internal(set) var token: Token = .none
    /// Range of a text in the storage of `ChunkVerdicts`: the text of a reason without a code, or
    /// the apns-unique-id of an accepted row that has a fingerprint. Empty if there is neither.
    var reasonText: Range<Int> = 0..<0

    /// Whether `reasonText` is the apns-unique-id.
    var hasUniqueID: Bool {
        guard case .fingerprint = token else { return false }
        assert(state == .accepted, "only accepted rows have fingerprints")
        return !reasonText.isEmpty
    }

    /// Whether `ledger forget` erased the row's device.
    var isErased: Bool {
        if case .erased = token { return true }
        return false
    }

    /// Whether the run that is being replayed may settle the row.
    var isOpen = false
    /// Run that settled the row. A later run that only recorded the same verdict again does not
    /// count.
    package internal(set) var settlingEpoch: UInt32 = 0

    /// Whether a record repeats this verdict with its time.
    fileprivate func isRepeated(by record: SettledRecord) -> Bool {
        record.milliseconds == settledAtMilliseconds && record.state == state
            && record.status == status && record.reason == reason && record.attempts == attempts
    }
}

/// Verdicts on all rows of a chunk. `load` replaces the chunk by another one, so one value serves
/// for all chunks of a ledger.
public struct ChunkVerdicts: ~Copyable {
    /// Rows of the chunk, in order.
    public private(set) var rows: ContiguousArray<RowVerdict> = []
    /// Number of the chunk's first row.
    public private(set) var firstRow: UInt64 = 0
    /// First fault: a run settled a row twice, or settled a row that it had not opened. If a run
    /// settled a row twice, the first verdict is kept. If it had not opened the row, its verdict is
    /// ignored.
    public private(set) var firstFault: LedgerError?

    /// Index of the ledger whose chunks are loaded.
    public let index: LedgerIndex

    private var storage: [UInt8] = []
    /// Verdicts before the reservation that is being replayed, of the rows that it reopens, by the
    /// index of the row.
    private var reopened: [Int: RowVerdict] = [:]
    private var reader = BlockReader()
    private var readerSegment: UInt32 = .max

    /// Creates verdicts without a chunk; `load` loads one.
    ///
    /// - Parameter index: The ledger whose chunks are loaded.
    public init(of index: LedgerIndex) { self.index = index }

    /// Loads all records of a chunk.
    ///
    /// Runs are replayed in order. A run that reserved the chunk opens each row that has no
    /// verdict, or whose state is among the reservation's `reopens`. An opened row gets a verdict
    /// from any of the run's segments. Without a verdict, the row is `remaining` if the run
    /// released it, and otherwise in doubt. If the new verdict of a reopened row is the one that it
    /// had before, with the same time, the run did not send the row: see `settlingEpoch`.
    ///
    /// - Parameter chunk: Index of the chunk.
    /// - Throws: `inputOutput`, or `damagedBlock` if a file changed since it was indexed.
    public mutating func load(chunk: Int) throws(LedgerError) {
        let entry = index.chunkTable[chunk]
        firstRow = entry.firstRow
        firstFault = nil
        storage.removeAll(keepingCapacity: true)
        rows.removeAll(keepingCapacity: true)
        reopened.removeAll(keepingCapacity: true)
        // The first run that reserved the chunk opened all of its rows.
        var opened = RowVerdict()
        opened.isOpen = true
        opened.state = .inDoubt
        rows.append(contentsOf: repeatElement(opened, count: Int(entry.rowCount)))
        var extent = entry.firstExtent
        var isFirst = true
        for reservation in index.reservations(ofChunk: chunk) {
            if !isFirst { begin(reservation) }
            isFirst = false
            while extent >= 0 {
                let range = index.extents[Int(extent)]
                let segment = index.segments[Int(range.segment)]
                guard segment.segment.epoch == reservation.epoch else { break }
                try replay(range, of: segment, epoch: reservation.epoch)
                extent = range.next
            }
        }
        if !index.erasedRows.isEmpty { markErasedRows() }
    }

    /// Gives the rows whose devices were erased before they were settled the token of an erased
    /// device, unless they have one.
    private mutating func markErasedRows() {
        let end = firstRow + UInt64(rows.count)
        for number in index.erasedRows.rows(in: firstRow..<end) {
            let place = Int(number - firstRow)
            guard !rows[place].isErased, rows[place].state != .accepted else { continue }
            let start = storage.count
            storage.append(contentsOf: ErasedToken.noHash)
            rows[place].token = .erased(start..<storage.count)
        }
    }

    /// Opens the rows covered by a run's reservation.
    private mutating func begin(_ reservation: LedgerIndex.Reservation) {
        reopened.removeAll(keepingCapacity: true)
        for index in rows.indices {
            let state = rows[index].state
            let isReopened = reservation.reopens.contains(state)
            rows[index].isOpen = !state.isSettled || isReopened
            guard rows[index].isOpen else { continue }
            if isReopened { reopened[index] = rows[index] }
            let before = rows[index]
            let earlier = before.reopeningEpoch
            rows[index] = RowVerdict()
            // A device that was erased stays erased, whatever the later runs do.
            if before.isErased { rows[index].token = before.token }
            rows[index].isOpen = true
            rows[index].state = .inDoubt
            rows[index].reopeningEpoch =
                isReopened ? reservation.epoch : state == .inDoubt ? earlier : 0
            rows[index].attempts = before.attempts
            // The limit on attempts of a reopened row starts again.
            rows[index].attemptsBefore = isReopened ? before.attempts : before.attemptsBefore
        }
    }

    private mutating func replay(
        _ extent: LedgerIndex.Extent, of sound: ValidatedSegment, epoch: UInt32
    ) throws(LedgerError) {
        if readerSegment == extent.segment {
            assert(extent.start < extent.end, "an extent holds blocks")
            reader.seek(to: extent.start, end: extent.end, clock: extent.clock)
        } else {
            readerSegment = extent.segment
            reader.open(
                sound.segment, seed: sound.seed, range: extent.start..<extent.end,
                clock: extent.clock)
        }
        let count = UInt64(rows.count)
        while true {
            switch try reader.nextBlock() {
            case .end: return
            case .bad:
                readerSegment = .max
                throw reader.changedFault
            case .block: break
            }
            while true {
                let fault = Self.takeAccepted(
                    of: &reader, epoch, firstRow: firstRow, into: &rows)
                firstFault = firstFault ?? fault
                guard let record = try reader.nextRecord() else { break }
                let first = record.rows.lowerBound
                guard first >= firstRow && first - firstRow < count else { continue }
                apply(record, at: Int(first - firstRow), epoch)
            }
        }
    }

    /// Applies records of accepted rows from the block, until another kind of record comes next.
    ///
    /// - Returns: The first fault, if any.
    private static func takeAccepted(
        of reader: inout BlockReader, _ epoch: UInt32, firstRow: UInt64,
        into table: inout ContiguousArray<RowVerdict>
    ) -> LedgerError? {
        var fault: LedgerError?
        // No topic record is among these records, so the topic does not change.
        let topic = reader.topic
        var rows = table.mutableSpan
        while let record = reader.nextAccepted() {
            guard record.row >= firstRow, record.row - firstRow < UInt64(rows.count) else {
                continue
            }
            let rowIndex = Int(record.row - firstRow)
            guard rows[rowIndex].isOpen && rows[rowIndex].settlingEpoch != epoch else {
                fault = fault ?? settledTwice(reader, record.row)
                continue
            }
            rows[rowIndex].settlingEpoch = epoch
            rows[rowIndex].state = .accepted
            rows[rowIndex].status = 200
            rows[rowIndex].attempts = record.attempts
            rows[rowIndex].settledAtMilliseconds = record.milliseconds
            rows[rowIndex].token = .fingerprint(record.fingerprint)
            if topic != 0 { rows[rowIndex].topic = topic }
        }
        return fault
    }

    private static func settledTwice(_ reader: borrowing BlockReader, _ row: UInt64) -> LedgerError
    {
        reader.fault(.settledTwice, at: reader.recordPosition, "row \(row)")
    }

    private mutating func apply(_ record: LedgerRecord, at row: Int, _ epoch: UInt32) {
        switch record {
        case .reserve: break
        case .release(_, let releasedCount, let attempts):
            for index in row..<min(row + releasedCount, rows.count)
            where rows[index].isOpen && rows[index].settlingEpoch != epoch {
                rows[index].state = .remaining
                rows[index].attempts = attempts
            }
        case .releaseSome(_, let count, let mask):
            for index in 0..<min(count, rows.count - row)
            where reader.isReleased(index, by: mask) && rows[row + index].isOpen
                && rows[row + index].settlingEpoch != epoch
            {
                rows[row + index].state = .remaining
            }
        case .accepted(_, let fingerprint, let attempts, let milliseconds):
            guard claim(row, epoch) else { return }
            rows[row].state = .accepted
            rows[row].status = 200
            rows[row].attempts = attempts
            rows[row].topic = reader.topic
            rows[row].settledAtMilliseconds = milliseconds
            rows[row].token = .fingerprint(fingerprint)
        case .settled(let record):
            guard claim(row, epoch) else { return }
            rows[row].state = record.state
            rows[row].status = record.status
            rows[row].reason = record.reason
            rows[row].attempts = record.attempts
            rows[row].arm = record.arm
            rows[row].topic = reader.topic
            rows[row].settledAtMilliseconds = record.milliseconds
            rows[row].timestamp = record.timestamp
            rows[row].reasonText = keep(record.reasonText)
            switch record.token {
            case .none: rows[row].token = .none
            case .fingerprint(let fingerprint): rows[row].token = .fingerprint(fingerprint)
            case .bytes(let range): rows[row].token = .bytes(keep(range))
            case .text(let range): rows[row].token = .text(keep(range))
            case .erased(let range): rows[row].token = .erased(keep(range))
            }
            if let before = reopened[row], before.isRepeated(by: record) {
                rows[row].settlingEpoch = before.settlingEpoch
                rows[row].isOpen = false
            }
        }
    }

    /// Returns whether a verdict of this run may be applied to the row. If not, records a fault.
    private mutating func claim(_ row: Int, _ epoch: UInt32) -> Bool {
        if rows[row].isOpen && rows[row].settlingEpoch != epoch {
            rows[row].settlingEpoch = epoch
            return true
        }
        if firstFault == nil { firstFault = Self.settledTwice(reader, firstRow + UInt64(row)) }
        return false
    }

    private mutating func keep(_ range: Range<Int>) -> Range<Int> {
        let start = storage.count
        reader.copy(range, to: &storage)
        return start..<storage.count
    }

    /// Returns the bytes of a row's token or reason.
    @_lifetime(borrow self)
    func storedBytes(_ range: Range<Int>) -> RawSpan {
        storage.rawSpan.extracting(range)
    }

    /// Appends a row's token: its lower-case digits, the list's text if that is not a token, or the
    /// placeholder of an erased device. Appends nothing if the ledger has none of these.
    ///
    /// - Parameters:
    ///   - index: Index of the row in the chunk.
    ///   - output: Buffer that grows by up to 200 bytes.
    public func appendToken(ofRow index: Int, to output: inout [UInt8]) {
        switch rows[index].token {
        case .none, .fingerprint: break
        case .text(let range): output.append(contentsOf: storage[range])
        case .erased(let range): ErasedToken.appendPlaceholder(storage[range], to: &output)
        case .bytes(let range): HexDigits.append(storage[range], to: &output)
        }
    }

    /// Whether the ledger has the list's text of a row, with all letters and digits masked.
    func isMasked(row index: Int) -> Bool {
        guard case .text(let range) = rows[index].token else { return false }
        return DeviceSet.isMasked(storedBytes(range))
    }

    /// Returns the verdict of a settled row that was not accepted, to be recorded again.
    func keptVerdict(ofRow index: Int) -> KeptVerdict {
        let row = rows[index]
        return KeptVerdict(
            row: firstRow + UInt64(index), state: row.state, status: row.status,
            reason: row.reason, reasonText: Array(storage[row.reasonText]),
            attempts: row.attempts, arm: row.arm, topic: topic(ofRow: index),
            milliseconds: row.settledAtMilliseconds, timestamp: row.timestamp,
            token: keptToken(of: row))
    }

    private func keptToken(of row: RowVerdict) -> KeptVerdict.Token {
        switch row.token {
        case .none, .fingerprint: return .digits([])
        case .bytes(let range):
            var digits: [UInt8] = []
            HexDigits.append(storage[range], to: &digits)
            return .digits(digits)
        case .text(let range): return .text(Array(storage[range]))
        case .erased(let range): return .erased(Array(storage[range]))
        }
    }

    /// Topics of the rows of all chunks loaded so far.
    public var topics: TopicNames { reader.topics }

    /// Returns the topic that a settled row was sent with; empty if none was recorded.
    public func topic(ofRow index: Int) -> [UInt8] { reader.topics[rows[index].topic] }

    /// Returns the text of a row's reason if it has no code; otherwise nil.
    public func reasonText(ofRow index: Int) -> [UInt8]? {
        rows[index].hasUniqueID ? nil : text(ofRow: index)
    }

    /// Returns the apns-unique-id of an accepted row; nil if none was recorded.
    public func uniqueID(ofRow index: Int) -> [UInt8]? {
        rows[index].hasUniqueID ? text(ofRow: index) : nil
    }

    private func text(ofRow index: Int) -> [UInt8]? {
        let range = rows[index].reasonText
        assert(range.upperBound <= storage.count, "a reason is in what was kept")
        return range.isEmpty ? nil : Array(storage[range])
    }
}
