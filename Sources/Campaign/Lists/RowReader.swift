/// Goes through the rows of one chunk after another, without allocation.
///
/// The seam between formats: what differs lies in `RowReader+Lines.swift` and its neighbours; all
/// give rows with the same fields.
@safe public struct RowReader: ~Copyable {
    /// A row: its place in chunk and list.
    public struct Row: Sendable, Equatable {
        /// Its number in the chunk, from 0.
        public var index: Int
        /// Its number in the list, from 0.
        public var number: UInt64
        /// The line of the list on which it starts, from 1.
        public var line: UInt64
        /// Where its octets start in the chunk.
        public var start: Int
        /// Its octets, without the line end.
        public var count: Int
    }

    /// A field of the row read last: where its text lies in the chunk.
    public struct Field: Sendable, Equatable {
        /// Where its text starts, after an opening quote.
        public var start: Int
        /// Its octets, without quotes round them.
        public var count: Int
        /// How to read it.
        public var form: Form

        /// How a field is written.
        public enum Form: UInt8, Sendable {
            /// The row has no such column, or a JSON null there.
            case missing
            /// The text as it is; in JSON a number or a word.
            case plain
            /// In delimited formats: between quotes, with doubled quotes inside.
            case doubledQuotes
            /// In JSON: a string without escapes.
            case string
            /// In JSON: a string with escapes.
            case escapedString
            /// In JSON: an array or object, or the row is no JSON object.
            case unusable
        }

        static var missing: Field { Field(start: 0, count: 0, form: .missing) }
    }

    /// Which columns are read.
    public let layout: RowLayout

    var chunk: RowChunk?
    var octets: UnsafeRawPointer
    var end = 0
    var offset = 0
    var line: UInt64 = 0
    var index = 0
    var firstNumber: UInt64 = 0
    /// Whether the row is longer than a chunk: what lies beyond it can't be read.
    public private(set) var isOverlong = false
    let fields: UnsafeMutablePointer<Field>
    /// For delimited formats: for each place in a row, which field it is; -1 where none.
    let fieldAtPlace: UnsafeMutablePointer<Int32>
    let placeCount: Int
    /// For JSON Lines: the names' octets one after another, and where each ends.
    let names: UnsafeMutablePointer<UInt8>
    let nameEnds: UnsafeMutablePointer<Int>
    let fieldCount: Int

    /// A reader of lists with this layout; open a chunk next.
    public init(layout: RowLayout) {
        self.layout = layout
        fieldCount = layout.names.count
        unsafe fields = .allocate(capacity: fieldCount)
        unsafe fields.initialize(repeating: .missing, count: fieldCount)
        placeCount = (layout.places.max() ?? -1) + 1
        unsafe fieldAtPlace = .allocate(capacity: placeCount)
        unsafe fieldAtPlace.initialize(repeating: -1, count: placeCount)
        for (field, place) in layout.places.enumerated() {
            unsafe fieldAtPlace[place] = Int32(field)
        }
        let octetsOfNames = layout.names.flatMap { Array($0.utf8) }
        unsafe names = .allocate(capacity: octetsOfNames.count)
        unsafe nameEnds = .allocate(capacity: fieldCount)
        for (offset, octet) in octetsOfNames.enumerated() { unsafe names[offset] = octet }
        var nameEnd = 0
        for (field, name) in layout.names.enumerated() {
            nameEnd += name.utf8.count
            unsafe nameEnds[field] = nameEnd
        }
        unsafe octets = UnsafeRawPointer(fields)
    }

    deinit {
        // SAFETY: allocated in `init`, of trivial types, and reached only through here.
        unsafe fields.deallocate()
        unsafe fieldAtPlace.deallocate()
        unsafe names.deallocate()
        unsafe nameEnds.deallocate()
    }

    /// Where the row read last ends in the chunk, behind its line end.
    public var position: Int { offset }

    /// Starts at a chunk's first row; the chunk stays alive until `close`.
    public mutating func open(_ chunk: RowChunk) {
        self.chunk = chunk
        unsafe octets = UnsafeRawPointer(chunk.octets)
        end = chunk.storedCount
        offset = 0
        line = chunk.start.line
        firstNumber = chunk.start.row
        isOverlong = chunk.isOverlong
        index = 0
    }

    /// Starts at a row in octets that the caller keeps alive; what lies before `offset` may change.
    mutating func open(_ octets: UnsafeRawPointer, from start: Int, count: Int, line: UInt64) {
        chunk = nil
        unsafe self.octets = octets
        end = count
        offset = start
        self.line = line
        firstNumber = 0
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
            switch layout.format {
            case .lines: row = nextLine()
            case .csv: row = nextDelimited(separator: UInt8(ascii: ","))
            case .tsv: row = nextDelimited(separator: UInt8(ascii: "\t"))
            case .jsonl: row = nextJSONLine()
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
        // SAFETY: inside the fields allocated in `init`.
        return unsafe fields[index]
    }

    /// A field's text as it lies in the list, escapes as they are.
    @_lifetime(borrow self)
    public func text(_ field: Field) -> RawSpan {
        precondition(field.start >= 0 && field.count >= 0 && field.start + field.count <= end)
        // SAFETY: inside the chunk that `self` keeps alive, whose octets do not change.
        let span = unsafe RawSpan(_unsafeStart: octets + field.start, byteCount: field.count)
        return unsafe _overrideLifetime(span, borrowing: self)
    }

    /// A field's octets as they lie in the list; they last until the chunk is closed.
    func octets(of field: Field) -> UnsafeRawBufferPointer {
        precondition(field.start >= 0 && field.count >= 0 && field.start + field.count <= end)
        // SAFETY: inside the chunk that `self` keeps alive, whose octets do not change.
        return unsafe UnsafeRawBufferPointer(start: octets + field.start, count: field.count)
    }

    /// What a field of a delimited list says: its text with doubled quotes made single. Not for hot
    /// paths.
    public func value(_ field: Field) -> [UInt8] {
        let text = unsafe text(field).withUnsafeBytes { unsafe Array($0) }
        guard field.form == .doubledQuotes else { return text }
        var value: [UInt8] = []
        var isSecondQuote = false
        for octet in text {
            isSecondQuote = octet == UInt8(ascii: "\"") && !isSecondQuote
            // The first quote of each pair goes.
            if !isSecondQuote { value.append(octet) }
        }
        return value
    }
}
