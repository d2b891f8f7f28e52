/// Splits a token list, read in order, into chunks of whole rows, and numbers rows and lines.
///
///     byte-order mark ──▶ header, if any ──▶ rows ──▶ ended
///                                            │  ▲
///                                            ▼  │ end of the row
///                                           large ──▶ overlong ──▶ end of the row: rows
///
/// - rows: the chunk has several rows.
/// - large: the chunk has one row of more than `RowChunk.capacity` bytes, and grows with the row.
/// - overlong: the row has more than `RowChunk.rowByteCountMax` bytes. The rest of the row is hashed
///   and counted, but not stored.
///
/// Reading stops at a fault. After a fault, either rows can't be distinguished from text inside
/// quotes, or the line ends are unknown. No row after a fault is returned.
///
/// Chunks cover everything after the byte-order mark and the header, except blank lines between
/// chunks. Equal texts that are split at equal offsets give equal chunks, even if the texts arrive
/// in different pieces.
public struct RowSplitter: ~Copyable {
    /// Result of a call of `next`.
    public enum Outcome {
        /// A chunk of at least one row, which belongs to the caller. Call again with the same
        /// input.
        case chunk(RowChunk)
        /// All input is consumed.
        case needsInput
        /// The pool is empty: give a chunk back and call again with the same input.
        case poolEmpty
        /// The list can't be read any further. All rows before the fault were returned.
        case faulty(ListFault)
    }

    /// Maximum number of rows of a chunk; may be changed at any time.
    public var rowLimit: Int

    /// Text of the header without its line end; nil before it is read, and for formats without a
    /// header.
    public internal(set) var header: [UInt8]?

    /// Whether the header has more than `RowChunk.rowByteCountMax` bytes. Such a header is cut off.
    public internal(set) var isHeaderOverlong = false

    /// Fault that ends the list. The rows before the fault are returned first.
    public internal(set) var fault: ListFault?

    let format: ListFormat
    let pool: ChunkPool
    var scanner: RowScanner
    /// Position of the current chunk's start.
    var start: ListPosition
    var chunk: RowChunk?
    /// Numbers of bytes in the current chunk: stored (`filled`), scanned (`scan`), and in whole
    /// rows (`rowsEnd`).
    var filled = 0
    var scan = 0
    var rowsEnd = 0
    var rowCount = 0
    var lineCount: UInt64 = 0
    /// Number of bytes of an overlong row that are not stored, and the hash of the row so far; nil
    /// while the row is not overlong.
    var overlong: (count: UInt64, hash: UInt64)?
    /// Offset in the list at which a chunk must end. If `isExact`, the next chunk must end there,
    /// not earlier.
    var boundary: (byteOffset: UInt64, isExact: Bool)?
    /// Number of bytes of a byte-order mark read so far; nil after the start of the list.
    var markCount: Int?
    var isHeaderDue: Bool

    /// Size of the pieces in which input is copied and scanned. Pieces are small because a chunk
    /// may end at its row limit: then the rest of the piece is copied again.
    static var pieceSize: Int { 4_096 }

    /// Creates a splitter for a list whose columns are not known. It does not search for rows
    /// inside quotes.
    ///
    /// - Parameters:
    ///   - start: Position of the input in the decoded list. After the list's start, no mark and no
    ///     header are expected.
    ///   - rowLimit: Maximum number of rows of a chunk, at least 1.
    public init(
        format: ListFormat, pool: ChunkPool, start: ListPosition = ListPosition(),
        rowLimit: Int = .max
    ) {
        self.init(
            RowScanner(checking: format, shape: nil), pool: pool, start: start, rowLimit: rowLimit)
    }

    /// Creates a splitter for a list whose columns are known.
    ///
    /// - Parameters:
    ///   - layout: Layout whose field 0 is the token.
    ///   - start: Position of the input in the decoded list. After the list's start, no mark and no
    ///     header are expected.
    ///   - rowLimit: Maximum number of rows of a chunk, at least 1.
    public init(
        layout: RowLayout, pool: ChunkPool, start: ListPosition = ListPosition(),
        rowLimit: Int = .max
    ) {
        self.init(
            RowScanner(checking: layout.format, shape: layout.shape), pool: pool, start: start,
            rowLimit: rowLimit)
    }

    private init(
        _ scanner: consuming RowScanner, pool: ChunkPool, start: ListPosition, rowLimit: Int
    ) {
        precondition(rowLimit > 0, "a chunk has at least one row")
        format = scanner.format
        self.scanner = scanner
        self.pool = pool
        self.start = start
        self.rowLimit = rowLimit
        markCount = start.byteOffset == 0 ? 0 : nil
        isHeaderDue = start.byteOffset == 0 && format.hasHeader
    }

    /// Returns the current chunk to the pool. So a splitter that stops in the middle of a list
    /// loses no chunk.
    deinit {
        if let chunk { pool.giveBack(chunk) }
    }

    /// Position of the next chunk, or of the blank lines before that chunk.
    public var position: ListPosition { start }

    /// Makes a chunk end at an offset that an earlier run recorded.
    ///
    /// - Parameters:
    ///   - byteOffset: Offset in the decoded list beyond `position`.
    ///   - isExact: Whether the next chunk covers everything up to the offset, even if it then has
    ///     no rows or exceeds the row limit. If false, several smaller chunks may cover this part.
    public mutating func endChunk(at byteOffset: UInt64, isExact: Bool) {
        precondition(byteOffset > start.byteOffset, "a chunk ends after its start")
        precondition(filled == 0 || start.byteOffset + UInt64(filled) <= byteOffset)
        boundary = (byteOffset, isExact)
    }

    /// Consumes input from `offset` on, up to the end of the next chunk.
    public mutating func next(_ bytes: RawSpan, at offset: inout Int) -> Outcome {
        precondition(offset >= 0 && offset <= bytes.byteCount, "outside of the input")
        while true {
            if let fault { return .faulty(fault) }
            guard let chunk = chunk ?? pool.take() else { return .poolEmpty }
            self.chunk = chunk
            if markCount != nil, !skipMark(bytes, &offset, chunk) { return .needsInput }
            if overlong != nil {
                if let finished = goThroughOverlongRow(bytes, &offset) { return .chunk(finished) }
                if overlong != nil, fault == nil { return .needsInput }
                continue
            }
            append(bytes, &offset, to: chunk)
            switch scanRows(chunk) {
            case .rowLimit:
                // The last row ends in bytes of this input, because earlier calls left no whole row
                // unscanned. So the bytes after it are from this input, too.
                offset -= filled - rowsEnd
                filled = rowsEnd
                scan = rowsEnd
                if let finished = cutOff() { return .chunk(finished) }
            case .boundary:
                endLastRow(chunk)
                let finished = fault == nil ? cutOff() : cutOffBeforeFault()
                if let finished { return .chunk(finished) }
            case .full:
                if rowsEnd == 0, filled < RowChunk.storedCountMax {
                    chunk.grow(keeping: filled)
                } else if rowsEnd == 0 {
                    // SAFETY: the chunk's first `filled` bytes are set.
                    overlong = (0, unsafe hash(chunk.storage, filled))
                } else if rowsEnd == filled {
                    if let finished = cutOff() { return .chunk(finished) }
                } else {
                    guard let next = pool.take() else { return .poolEmpty }
                    if let finished = cutOff(carryingTo: next) { return .chunk(finished) }
                }
            case .more:
                if offset == bytes.byteCount { return .needsInput }
            case .fault:
                if let finished = cutOffBeforeFault() { return .chunk(finished) }
            }
        }
    }

    /// Ends the list, and returns the last chunk if any rows are left. A row with a fault at the
    /// end is not included. Call once, after all input.
    public mutating func finish() -> RowChunk? {
        if let markCount, markCount > 0, let chunk {
            appendMark(markCount, to: chunk)
            if case .fault = scanRows(chunk) { return cutOffBeforeFault() }
        }
        markCount = nil
        if overlong != nil {
            let lineCount = scanner.endOfText(at: 0).lineCount
            takeFault()
            return fault == nil ? endOverlongRow(lineCount: lineCount) : cutOffBeforeFault()
        }
        guard let chunk else { return nil }
        endLastRow(chunk)
        if fault != nil { return cutOffBeforeFault() }
        boundary = nil
        let finished = cutOff()
        if finished == nil, let chunk = self.chunk {
            pool.giveBack(chunk)
            self.chunk = nil
        }
        return finished
    }
}
