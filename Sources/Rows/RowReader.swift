public import BroadsideAPNs
internal import BroadsideSupport

/// Goes through the rows of one chunk after another, without allocation.
///
/// The seam between formats: what differs lies in `RowReader+Lines.swift` and its neighbours; all
/// give rows with the same fields. Where a row ends is for `RowScanner` to say; what a token is, for
/// `readToken`; all who read a list ask here.
@safe public struct RowReader: ~Copyable {
    /// A row: its place in chunk and list.
    public struct Row: Sendable, Equatable {
        /// Its number in the chunk, from 0.
        public var index: Int
        /// Its number in the list, from 0.
        public var number: UInt64
        /// The line of the list on which it starts, from 1.
        public var line: UInt64
        /// Where its bytes start in the chunk.
        public var start: Int
        /// Its bytes, without the line end.
        var count: Int
    }

    /// A field of the row read last: where its text lies in the chunk.
    public struct Field: Sendable, Equatable {
        /// Where its text starts: in the chunk, or among the decoded texts of the row.
        var start: Int
        /// Its bytes, without quotes round them and without escapes.
        public var count: Int
        /// How to read it.
        public var form: Form

        /// How a field is written.
        public enum Form: UInt8, Sendable {
            /// The row has no such column, or a JSON null there.
            case missing
            /// The text as it is in the list.
            case plain
            /// A text that had doubled quotes or escapes: it lies among the decoded texts.
            case decoded
            /// In JSON: an array or object, a string that is not text, or the row is not a JSON object.
            case unusable
            /// The row breaks the rules of its format, or has more fields than the header; the text is the
            /// row's beginning.
            case malformed
        }

        /// Whether it says something.
        public var isText: Bool { form == .plain || form == .decoded }

        static var missing: Field { Field(start: 0, count: 0, form: .missing) }
    }

    /// Which columns are read.
    let columns: WantedColumns

    var chunk: RowChunk?
    // SAFETY: `end` bytes, alive until `close` or the next `open`: the storage of `chunk`, or what
    // a caller of `open` vouches for. Before that, and after `close`, `end` is 0 and nothing of it
    // is read.
    private var bytes: UnsafeRawPointer
    private(set) var end = 0
    /// Where the next row begins.
    public var offset = 0
    /// The line on which it begins.
    public var line: UInt64 = 0
    var index = 0
    var firstNumber: UInt64 = 0
    /// Whether the row read last was open at the end of the text.
    public var isRowOpen = false
    /// How rows are read now.
    private var mode: Mode
    /// How rows are read where they are no longer than they may be.
    private let usualMode: Mode
    let separator: UInt8
    /// The fields of the row read last.
    // SAFETY: `fieldCount` of them, allocated and set in `init`, freed in `deinit`; known to nobody
    // else.
    private let fields: UnsafeMutablePointer<Field>
    let fieldCount: Int
    /// For JSON Lines: keys that lead to columns inside objects; empty where there are none.
    let paths: JSONPaths?
    /// The texts of the row that had to be decoded, one after another.
    // SAFETY: `decodedRoom` bytes of this reader's own, of which `decodedCount` are set; freed when
    // they are replaced, and in `deinit`.
    private var decoded: UnsafeMutableRawPointer?
    var decodedRoom = 0
    var decodedCount = 0

    private enum Mode {
        case lines
        case delimited
        case tabs
        case jsonLines
        /// One row that is too long.
        case overlong
    }

    /// A reader of lists with this layout; open a chunk next.
    public init(layout: RowLayout) {
        columns = WantedColumns(layout)
        fieldCount = layout.names.count
        // SAFETY: as many fields as there are names.
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
        // SAFETY: allocated in `init` and `reserveDecoded`, and reached only through here.
        unsafe fields.deallocate()
        unsafe decoded?.deallocate()
    }

    /// Where the row read last ends in the chunk, behind its line end.
    public var position: Int { offset }

    /// Starts at a chunk's first row; the chunk stays alive until `close`.
    public mutating func open(_ chunk: RowChunk) {
        self.chunk = chunk
        // SAFETY: `storedCount` bytes are set there, and `chunk` holds them until `close`.
        unsafe bytes = UnsafeRawPointer(chunk.storage)
        end = chunk.storedCount
        offset = 0
        line = chunk.start.line
        firstNumber = chunk.start.row
        mode = chunk.isOverlong ? .overlong : usualMode
        isRowOpen = false
        index = 0
    }

    /// Starts at a row in bytes that the caller keeps alive; what lies before `offset` may change.
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
        isRowOpen = false
        index = 0
    }

    /// Lets go of the chunk.
    public mutating func close() -> RowChunk? {
        end = 0
        offset = 0
        return chunk.take()
    }

    /// The next row; nil at the chunk's end. Rows that the cutter counted come, and no others.
    public mutating func next() -> Row? {
        while offset < end {
            let row: Row?
            switch mode {
            case .lines: row = nextLine()
            case .delimited: row = nextDelimited(separator: separator)
            case .tabs: row = nextTabbed()
            case .jsonLines: row = nextJSONLine()
            case .overlong: row = nextOverlong()
            }
            guard var row else { continue }
            row.index = index
            row.number = firstNumber + UInt64(index)
            index += 1
            return row
        }
        return nil
    }

    /// The field of the column `layout.names[index]` in the row read last.
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

    /// A field's text, without the escapes of its format; it lasts until the next row is read.
    @_lifetime(borrow self)
    @inline(__always)
    public func text(_ field: Field) -> RawSpan {
        // SAFETY: nothing is read while the reader is borrowed.
        unsafe looseText(field)
    }

    /// The same for who changes what the reader is part of, and reads no row meanwhile.
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

    /// All that is open, for who sets fields while it reads it.
    @unsafe var openText: RawSpan {
        // SAFETY: `end` bytes are set there; the caller opens and closes nothing while it reads.
        @inline(__always) @_lifetime(immortal) get {
            let text = unsafe RawSpan(_unsafeStart: bytes, byteCount: end)
            return unsafe _overrideLifetime(text, borrowing: ())
        }
    }

    /// The texts of the row that had to be decoded, for who reads them before it decodes another.
    @unsafe var decodedText: RawSpan {
        // SAFETY: `decodedCount` bytes are set there, and stay where they are until there is no
        // more room.
        @inline(never) @_lifetime(immortal) get {
            let text = unsafe RawSpan(
                _unsafeBytes: UnsafeRawBufferPointer(start: decoded, count: decodedCount))
            return unsafe _overrideLifetime(text, borrowing: ())
        }
    }

    /// All of the row read last, as it is in the list.
    @_lifetime(borrow self)
    public func text(of row: Row) -> RawSpan {
        text(Field(start: row.start, count: row.count, form: .plain))
    }

    /// What a field says. Not for hot paths.
    public func value(_ field: Field) -> [UInt8] {
        if field.form == .missing { return [] }
        return [UInt8](text(field))
    }

    /// Writes the token in a field of the row read last to `digits`, in lower case: the one judgement
    /// of a row's token.
    ///
    /// - Parameter digits: has room for `TokenText.maximumDigitCount` bytes.
    /// - Returns: why there is none; nil where there is one.
    @inline(__always)
    public func readToken(_ field: Field, into digits: inout OutputRawSpan) -> Reason? {
        guard field.isText else { return refusal(of: field) }
        return TokenText.canonicalize(text(field), into: &digits) ? nil : .malformedToken
    }

    /// Why a row without a token has none.
    public func refusal(of field: Field) -> Reason {
        switch field.form {
        case .missing: .missingColumn
        case .malformed: .malformedRow
        case .plain, .decoded, .unusable: .malformedToken
        }
    }

    /// Makes room for so many bytes behind the texts that were decoded.
    mutating func reserveDecoded(_ count: Int) {
        let needed = decodedCount + count
        if needed <= decodedRoom { return }
        let larger = max(needed, 2 * decodedRoom, 1_024)
        let memory = UnsafeMutableRawPointer.allocate(byteCount: larger, alignment: 8)
        // SAFETY: `decodedCount` bytes are set, and both memories have room for them.
        if let decoded = unsafe decoded {
            unsafe memory.copyMemory(from: decoded, byteCount: decodedCount)
            unsafe decoded.deallocate()
        }
        unsafe decoded = memory
        decodedRoom = larger
    }

    /// Decodes a text of the row behind the others.
    ///
    /// - Parameters:
    ///   - count: the bytes it is written as: a decoded text is never longer, so that a row's texts
    ///     fit into as much as the row has.
    ///   - decode: appends the text; false where it is none.
    /// - Returns: the text; nil where it is none.
    mutating func decode(_ count: Int, _ decode: (inout OutputRawSpan) -> Bool) -> Field? {
        reserveDecoded(count)
        // SAFETY: there is room for `count` bytes behind the first `decodedCount`; the span counts
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

    /// Makes all fields of a row that breaks the rules say so.
    mutating func setMalformed(_ start: Int, _ stop: Int) {
        setAll(Field(start: start, count: stop - start, form: .malformed))
    }

    /// Makes all fields the same.
    @inline(__always)
    mutating func setAll(_ field: Field) {
        for index in 0..<fieldCount { setField(index, field) }
    }

    /// The only row of a chunk that does not hold all of it.
    private mutating func nextOverlong() -> Row? {
        let row = Row(index: 0, number: 0, line: line, start: offset, count: end - offset)
        setMalformed(offset, end)
        offset = end
        return row
    }
}
