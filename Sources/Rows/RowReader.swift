public import BroadsideAPNs
internal import BroadsidePrimitives
internal import BroadsideSupport

/// Reads the rows of one chunk after another, without allocation.
///
/// This file has what all formats share. `RowReader+Lines.swift` and the files beside it read one
/// format each, and produce rows with the same fields. `RowScanner` alone determines where rows
/// end, and `readToken` alone decides what a token is.
@safe public struct RowReader: ~Copyable {
    /// A row, by its position in chunk and list.
    public struct Row: Sendable, Equatable {
        /// Number of the row in the chunk, from 0.
        public var index: Int
        /// Number of the row in the list, from 0.
        public var number: UInt64
        /// Line of the list on which the row starts, from 1.
        public var line: UInt64
        /// Offset of the row's bytes in the chunk.
        public var start: Int
        /// Number of bytes, without the line end.
        public internal(set) var count: Int
    }

    /// A field of the row that was read last, as a range of the row's text.
    public struct Field: Sendable, Equatable {
        /// Start of the text: an offset in the chunk, or in the decoded texts of the row.
        var start: Int
        /// Number of bytes, without surrounding quotes and escapes.
        public var count: Int
        /// The form in which the list has the field.
        public var form: Form

        /// How the list contains the field.
        public enum Form: UInt8, Sendable {
            /// The row has no such column, or the column is a JSON null.
            case missing
            /// Text as it is in the list.
            case plain
            /// A text that had doubled quotes or escapes and is among the decoded texts.
            case decoded
            /// In JSON Lines: the value is an array, an object, or a string that is not valid text,
            /// or the row is not a JSON object.
            case unusable
            /// The row breaks the rules of its format, or has more fields than the header. The text
            /// of the field is the beginning of the row.
            case malformed
        }

        /// Whether the field has a text.
        public var isText: Bool { form == .plain || form == .decoded }

        static var missing: Field { Field(start: 0, count: 0, form: .missing) }
    }

    /// Columns that are read.
    let columns: WantedColumns

    var chunk: RowChunk?
    // SAFETY: `end` bytes, alive until `close` or the next `open`: the storage of `chunk`, or bytes
    // that a caller of `open` vouches for. Before that, and after `close`, `end` is 0 and no byte
    // is read.
    private var bytes: UnsafeRawPointer
    private(set) var end = 0
    /// Offset of the next row.
    public var offset = 0
    /// Line of the next row.
    public var line: UInt64 = 0
    var index = 0
    var firstNumber: UInt64 = 0
    /// Whether the row that was read last was incomplete at the end of the text.
    public var isRowOpen = false
    /// Whether the row that was read last is overwritten with zero bytes.
    private var isRowOverwritten = false
    /// Current mode of reading rows.
    private var mode: Mode
    /// Mode for rows that do not exceed the maximum length.
    private let usualMode: Mode
    let separator: UInt8
    /// The fields of the row that was read last.
    // SAFETY: `fieldCount` fields, allocated and set in `init`, freed in `deinit`; accessed only
    // through this value.
    private let fields: UnsafeMutablePointer<Field>
    let fieldCount: Int
    /// For JSON Lines: the wanted columns that are keys inside objects; nil if there are none.
    let paths: JSONPaths?
    /// Decoded texts of the row, one after another.
    // SAFETY: `decodedRoom` bytes owned by this reader, of which `decodedCount` are set; freed when
    // they are replaced, and in `deinit`.
    private var decoded: UnsafeMutableRawPointer?
    var decodedRoom = 0
    var decodedCount = 0

    private enum Mode {
        case lines
        case delimited
        case tabs
        case jsonLines
        /// Mode for a chunk that consists of one row beyond the maximum length.
        case overlong
        /// Mode for a text in which some rows are overwritten with zero bytes.
        case overwritten
    }

    /// Creates a reader of lists with a layout; open a chunk next.
    public init(layout: RowLayout) {
        columns = WantedColumns(layout)
        fieldCount = layout.names.count
        // SAFETY: one field per name.
        unsafe fields = .allocate(capacity: fieldCount)
        unsafe fields.initialize(repeating: .missing, count: fieldCount)
        unsafe bytes = UnsafeRawPointer(fields)
        separator = layout.format.separator ?? 0
        switch layout.format {
        case .lines: usualMode = .lines
        case .csv, .semicolonCSV: usualMode = .delimited
        case .tsv: usualMode = .tabs
        case .jsonl: usualMode = .jsonLines
        }
        mode = usualMode
        paths = layout.format == .jsonl ? JSONPaths(layout.names) : nil
    }

    deinit {
        // SAFETY: allocated in `init` and `reserveDecoded`, and accessed only through this value.
        unsafe fields.deallocate()
        unsafe decoded?.deallocate()
    }

    /// Offset in the chunk after the line end of the row that was read last.
    public var position: Int { offset }

    /// Starts at the first row of a chunk, which stays alive until `close`.
    public mutating func open(_ chunk: RowChunk) {
        self.chunk = chunk
        // SAFETY: `storedCount` bytes are set in it, and `chunk` keeps them alive until `close`.
        unsafe bytes = UnsafeRawPointer(chunk.storage)
        end = chunk.storedCount
        offset = 0
        line = chunk.start.line
        firstNumber = chunk.start.row
        mode = chunk.isOverlong ? .overlong : modeOfText
        isRowOverwritten = false
        isRowOpen = false
        index = 0
    }

    /// Starts at a row in bytes that the caller keeps alive. Bytes before `start` may change.
    @unsafe public mutating func open(
        _ bytes: UnsafeRawPointer, from start: Int, count: Int, line: UInt64
    ) {
        chunk = nil
        // SAFETY: the caller vouches for `count` bytes until it opens something else.
        unsafe self.bytes = bytes
        end = count
        offset = start
        self.line = line
        firstNumber = 0
        mode = modeOfText
        isRowOverwritten = false
        isRowOpen = false
        index = 0
    }

    /// Mode for the text from `offset` on. Searching a whole text for zero bytes costs less than
    /// searching each row.
    private var modeOfText: Mode {
        isOverwritten(min(offset, end), end) ? .overwritten : usualMode
    }

    /// Releases and returns the chunk.
    public mutating func close() -> RowChunk? {
        end = 0
        offset = 0
        return chunk.take()
    }

    /// Returns the next row; nil at the chunk's end. These are exactly the rows that the row
    /// splitter counted.
    public mutating func next() -> Row? {
        while offset < end {
            let row: Row?
            switch mode {
            case .lines: row = nextLine()
            case .delimited: row = nextDelimited(separator: separator)
            case .tabs: row = nextTabbed()
            case .jsonLines: row = nextJSONLine()
            case .overlong: row = nextOverlong()
            case .overwritten: row = nextBesideOverwritten()
            }
            guard var row else { continue }
            assert(row.start + row.count <= offset && offset <= end, "a row ends before the next")
            row.index = index
            row.number = firstNumber + UInt64(index)
            index += 1
            return row
        }
        return nil
    }

    /// Field of the column `layout.names[index]` in the row that was read last.
    @inline(__always)
    public func field(_ index: Int) -> Field {
        precondition(index >= 0 && index < fieldCount)
        // SAFETY: checked to be inside `fields`.
        return unsafe fields[index]
    }

    /// Sets a field of the row that is being read.
    @inline(__always)
    mutating func setField(_ index: Int, _ field: Field) {
        precondition(index >= 0 && index < fieldCount)
        // SAFETY: checked to be inside `fields`.
        unsafe fields[index] = field
    }

    /// Text of a field, without the escapes of its format; valid until the next row is read.
    @_lifetime(borrow self)
    @inline(__always)
    public func text(_ field: Field) -> RawSpan {
        // SAFETY: nothing is read while the reader is borrowed.
        unsafe looseText(field)
    }

    /// Text of a field, without borrowing the reader. The caller may change the value that contains
    /// the reader, but must not read a row while it uses the text.
    @_lifetime(immortal) @inline(__always)
    @unsafe func looseText(_ field: Field) -> RawSpan {
        // SAFETY: neither the open text nor the decoded ones change before the next row is read.
        let all = field.form == .decoded ? unsafe decodedText : unsafe openText
        let stop = field.start &+ field.count
        precondition(
            UInt(bitPattern: field.start) <= UInt(bitPattern: stop) && stop <= all.byteCount)
        return unsafe all.extracting(
            unchecked: Range(uncheckedBounds: (field.start, stop)))
    }

    /// The whole text being read, for a caller that sets fields while it reads.
    @unsafe var openText: RawSpan {
        // SAFETY: `end` bytes are set in it; the caller opens and closes nothing while it reads.
        @inline(__always) @_lifetime(immortal) get {
            let text = unsafe RawSpan(_unsafeStart: bytes, byteCount: end)
            return unsafe _overrideLifetime(text, borrowing: ())
        }
    }

    /// The decoded texts of the row, for a caller that reads them before it decodes the next text.
    @unsafe var decodedText: RawSpan {
        // SAFETY: `decodedCount` bytes are set in it, and do not move until more space is needed.
        @inline(never) @_lifetime(immortal) get {
            let text = unsafe RawSpan(
                _unsafeBytes: UnsafeRawBufferPointer(start: decoded, count: decodedCount))
            return unsafe _overrideLifetime(text, borrowing: ())
        }
    }

    /// Text of the row that was read last, unchanged from the list.
    @_lifetime(borrow self)
    public func text(of row: Row) -> RawSpan {
        text(Field(start: row.start, count: row.count, form: .plain))
    }

    /// Text of the line on which the latest row ends. Not for hot paths.
    @_lifetime(borrow self)
    public func lastLine() -> RawSpan {
        let before = text(Field(start: 0, count: offset, form: .plain))
        var stop = offset
        while stop > 0, Self.endsLine(before.byte(at: stop - 1)) { stop -= 1 }
        var start = stop
        while start > 0, !Self.endsLine(before.byte(at: start - 1)) { start -= 1 }
        return text(Field(start: start, count: stop - start, form: .plain))
    }

    /// Line on which the row that was read last begins, if this row is overwritten with zero bytes;
    /// nil for any other row. It is computed because a larger reader is slower to move.
    public var overwrittenLine: UInt64? {
        guard isRowOverwritten else { return nil }
        // The reader stays on the line of an overlong row.
        guard mode != .overlong else { return line }
        let row = text(field(0))
        let innerLines = ByteScan.count(UInt8(ascii: "\n"), in: row, from: 0, to: row.byteCount)
        return line - 1 - UInt64(innerLines)
    }

    private static func endsLine(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r")
    }

    /// Copy of a field's text; empty if the field is missing. Not for hot paths.
    public func value(_ field: Field) -> [UInt8] {
        if field.form == .missing { return [] }
        return [UInt8](text(field))
    }

    /// Reads the token from a field of the row that was read last, and writes it to `digits` in
    /// lower case. No other function decides whether a row has a token.
    ///
    /// - Parameter digits: Space for `TokenText.maximumDigitCount` bytes.
    /// - Returns: Reason for a missing token; nil if there is a token.
    @inline(__always)
    public func readToken(_ field: Field, into digits: inout OutputRawSpan) -> Reason? {
        guard field.isText else { return refusal(of: field) }
        return TokenText.canonicalize(text(field), into: &digits) ? nil : .malformedToken
    }

    /// Reason why a row has no token, from the row's token field.
    public func refusal(of field: Field) -> Reason {
        switch field.form {
        case .missing: .missingColumn
        case .malformed: .malformedRow
        case .plain, .decoded, .unusable: .malformedToken
        }
    }

    /// Whether no field of the row that was read last can be read: the row is malformed, or it is
    /// a line of JSON Lines that is not an object.
    public func isUnreadable(_ row: Row) -> Bool {
        let token = field(0)
        switch token.form {
        case .malformed: return true
        // A value inside an object begins after the row.
        case .unusable: return token.start == row.start
        case .missing, .plain, .decoded: return false
        }
    }

    /// Reserves memory for `count` bytes after the decoded texts.
    mutating func reserveDecoded(_ count: Int) {
        assert(decodedCount <= decodedRoom, "what was decoded is in its memory")
        let needed = decodedCount + count
        if needed <= decodedRoom { return }
        let larger = max(needed, 2 * decodedRoom, 1_024)
        let memory = UnsafeMutableRawPointer.allocate(byteCount: larger, alignment: 8)
        // SAFETY: `decodedCount` bytes are set, and both memories have at least that size.
        if let decoded = unsafe decoded {
            unsafe memory.copyMemory(from: decoded, byteCount: decodedCount)
            unsafe decoded.deallocate()
        }
        unsafe decoded = memory
        decodedRoom = larger
    }

    /// Decodes a text of the row, and stores it after the other decoded texts.
    ///
    /// - Parameters:
    ///   - count: Number of bytes of the encoded text. A decoded text is never longer, so that all
    ///     texts of a row fit into the number of bytes of the row.
    ///   - decode: Appends the text; returns false if the bytes are not valid text.
    /// - Returns: The text; nil if the bytes are not valid text.
    mutating func decode(_ count: Int, _ decode: (inout OutputRawSpan) -> Bool) -> Field? {
        reserveDecoded(count)
        // SAFETY: `count` bytes are allocated behind the first `decodedCount`; the span counts
        // those that are set.
        let room = unsafe UnsafeMutableRawBufferPointer(
            start: decoded.map { unsafe $0 + decodedCount }, count: decoded == nil ? 0 : count)
        var output = unsafe OutputRawSpan(buffer: room, initializedCount: 0)
        let isText = decode(&output)
        let length = unsafe output.finalize(for: room)
        guard isText else { return nil }
        defer { decodedCount += length }
        return Field(start: decodedCount, count: length, form: .decoded)
    }

    /// Marks all fields of a row as malformed.
    mutating func setMalformed(_ start: Int, _ stop: Int) {
        setAll(Field(start: start, count: stop - start, form: .malformed))
    }

    /// Sets all fields to the same value.
    @inline(__always)
    mutating func setAll(_ field: Field) {
        for index in 0..<fieldCount { setField(index, field) }
    }

    /// Returns the next row of a text in which some rows are overwritten with zero bytes; nil if the
    /// line is blank. A row that is overwritten is malformed.
    @inline(never)
    private mutating func nextBesideOverwritten() -> Row? {
        let next: Row? =
            switch usualMode {
            case .lines: nextLine()
            case .delimited: nextDelimited(separator: separator)
            case .tabs: nextTabbed()
            case .jsonLines: nextJSONLine()
            case .overlong, .overwritten: preconditionFailure("these modes are of single texts")
            }
        guard let row = next else { return nil }
        let stop = row.start + row.count
        isRowOverwritten = isOverwritten(row.start, stop)
        if isRowOverwritten { setMalformed(row.start, stop) }
        return row
    }

    private func isOverwritten(_ start: Int, _ stop: Int) -> Bool {
        // SAFETY: nothing is opened or closed here.
        unsafe OverwrittenRows.isOverwritten(
            openText, from: start, to: stop, in: columns.format)
    }

    /// Returns the only row of an overlong chunk. The chunk contains only the beginning of that
    /// row.
    private mutating func nextOverlong() -> Row? {
        let row = Row(index: 0, number: 0, line: line, start: offset, count: end - offset)
        isRowOverwritten = isOverwritten(offset, end)
        setMalformed(offset, end)
        offset = end
        return row
    }
}
