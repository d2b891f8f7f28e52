public import APNs
internal import Support

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
        var count: Int
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
            /// The row breaks the rules of its format; the text is the row's beginning.
            case malformed
        }

        /// Whether it says something.
        public var isText: Bool { form == .plain || form == .decoded }

        static var missing: Field { Field(start: 0, count: 0, form: .missing) }
    }

    /// Which columns are read.
    let layout: RowLayout

    var chunk: RowChunk?
    // SAFETY: `end` bytes, alive until `close` or the next `open`: the storage of `chunk`, or what
    // a caller of `open` vouches for. Before that, and after `close`, `end` is 0 and nothing of it
    // is read.
    var bytes: UnsafeRawPointer
    var end = 0
    var offset = 0
    var line: UInt64 = 0
    var index = 0
    var firstNumber: UInt64 = 0
    /// Whether the row read last was open at the end of the text.
    var isRowOpen = false
    /// How rows are read now.
    private var mode: Mode
    /// How rows are read where they are no longer than they may be.
    private let usualMode: Mode
    let separator: UInt8
    // SAFETY: this one, `fieldAtPlace`, `names` and `nameEnds` are allocated and set in `init`,
    // with `fieldCount`, `placeCount`, all bytes of the names, and `fieldCount` elements; freed in
    // `deinit`, known to nobody else.
    let fields: UnsafeMutablePointer<Field>
    /// For delimited formats: for each place in a row, which field it is; -1 where none.
    // SAFETY: see `fields`.
    let fieldAtPlace: UnsafeMutablePointer<Int32>
    let placeCount: Int
    /// For JSON Lines: the names' bytes one after another, and where each ends.
    // SAFETY: see `fields`.
    let names: UnsafeMutablePointer<UInt8>
    let nameEnds: UnsafeMutablePointer<Int>
    let fieldCount: Int
    /// For JSON Lines: keys that lead to columns inside objects; empty where there are none.
    let paths: JSONPaths?
    /// The texts of the row that had to be decoded, one after another.
    // SAFETY: `decodedRoom` bytes of this reader's own, of which `decodedCount` are set; freed when
    // they are replaced, and in `deinit`.
    var decoded: UnsafeMutableRawPointer?
    var decodedRoom = 0
    var decodedCount = 0

    private enum Mode {
        case lines
        case delimited
        case jsonLines
        /// One row that is too long.
        case overlong
    }

    /// A reader of lists with this layout; open a chunk next.
    public init(layout: RowLayout) {
        self.layout = layout
        fieldCount = layout.names.count
        // SAFETY: each memory has as many elements as the loops that set it go through: `layout`
        // has one place for each name, or none, and places are below `placeCount`.
        unsafe fields = .allocate(capacity: fieldCount)
        unsafe fields.initialize(repeating: .missing, count: fieldCount)
        placeCount = (layout.places.max() ?? -1) + 1
        unsafe fieldAtPlace = .allocate(capacity: placeCount)
        unsafe fieldAtPlace.initialize(repeating: -1, count: placeCount)
        for (field, place) in layout.places.enumerated() {
            unsafe fieldAtPlace[place] = Int32(field)
        }
        let bytesOfNames = layout.names.flatMap { Array($0.utf8) }
        unsafe names = .allocate(capacity: bytesOfNames.count)
        unsafe nameEnds = .allocate(capacity: fieldCount)
        for (offset, byte) in bytesOfNames.enumerated() { unsafe names[offset] = byte }
        var nameEnd = 0
        for (field, name) in layout.names.enumerated() {
            nameEnd += name.utf8.count
            unsafe nameEnds[field] = nameEnd
        }
        unsafe bytes = UnsafeRawPointer(fields)
        separator = layout.format.separator ?? 0
        switch layout.format {
        case .lines: usualMode = .lines
        case .csv, .semicolonCSV, .tsv: usualMode = .delimited
        case .jsonl: usualMode = .jsonLines
        }
        mode = usualMode
        paths = layout.format == .jsonl ? JSONPaths(layout.names) : nil
    }

    deinit {
        // SAFETY: allocated in `init`, of trivial types, and reached only through here.
        unsafe fields.deallocate()
        unsafe fieldAtPlace.deallocate()
        unsafe names.deallocate()
        unsafe nameEnds.deallocate()
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
    mutating func open(_ bytes: UnsafeRawPointer, from start: Int, count: Int, line: UInt64) {
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

    /// A field's text, without the escapes of its format; it lasts until the next row is read.
    @_lifetime(borrow self)
    public func text(_ field: Field) -> RawSpan {
        // SAFETY: inside the text, see `bytes`, or the decoded texts, neither of which changes
        // before the next row is read.
        let span = unsafe RawSpan(_unsafeBytes: bytes(of: field))
        return unsafe _overrideLifetime(span, borrowing: self)
    }

    /// The bytes of `text`; they last until the next row is read.
    @inline(__always)
    func bytes(of field: Field) -> UnsafeRawBufferPointer {
        // SAFETY: either is checked to be inside its text, which does not change before the next
        // row.
        if field.form == .decoded { return unsafe decodedBytes(of: field) }
        precondition(field.start >= 0 && field.count >= 0 && field.start + field.count <= end)
        return unsafe UnsafeRawBufferPointer(start: bytes + field.start, count: field.count)
    }

    @inline(never)
    private func decodedBytes(of field: Field) -> UnsafeRawBufferPointer {
        precondition(field.start >= 0 && field.count >= 0)
        precondition(field.start + field.count <= decodedCount)
        // SAFETY: so many bytes of the decoded texts are set.
        return unsafe UnsafeRawBufferPointer(
            start: decoded.map { unsafe UnsafeRawPointer($0) + field.start }, count: field.count)
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

    /// Room for so many bytes behind the texts that were decoded; `decodedCount` says how many are.
    ///
    /// A decoded text is never longer than what it was written as, so that a row's texts fit into
    /// as much as the row has.
    mutating func roomToDecode(_ count: Int) -> UnsafeMutableRawPointer {
        let needed = decodedCount + count
        // SAFETY: `decodedCount` bytes are set, and both memories have room for them; what is
        // returned has room for `count` more, until the next call that has to grow.
        if let decoded = unsafe decoded, needed <= decodedRoom {
            return unsafe decoded + decodedCount
        }
        let larger = max(needed, 2 * decodedRoom, 1_024)
        let memory = UnsafeMutableRawPointer.allocate(byteCount: larger, alignment: 8)
        if let decoded = unsafe decoded {
            unsafe memory.copyMemory(from: decoded, byteCount: decodedCount)
            unsafe decoded.deallocate()
        }
        unsafe decoded = memory
        decodedRoom = larger
        return unsafe memory + decodedCount
    }

    /// Makes all fields of a row that breaks the rules say so.
    mutating func setMalformed(_ start: Int, _ stop: Int) {
        let whole = Field(start: start, count: stop - start, form: .malformed)
        // SAFETY: `fields` has `fieldCount` elements.
        for index in 0..<fieldCount { unsafe fields[index] = whole }
    }

    /// The only row of a chunk that does not hold all of it.
    private mutating func nextOverlong() -> Row? {
        let row = Row(index: 0, number: 0, line: line, start: offset, count: end - offset)
        setMalformed(offset, end)
        offset = end
        return row
    }
}
