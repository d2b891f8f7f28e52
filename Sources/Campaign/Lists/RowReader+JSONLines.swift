import APNs
import Support

extension RowReader {
    /// The next line as a JSON object; nil where it is blank.
    mutating func nextJSONLine() -> Row? {
        let start = offset
        if paths == nil, let stop = readFlatObject(start) {
            let line = self.line
            self.line += 1
            return Row(index: 0, number: 0, line: line, start: start, count: stop - start)
        }
        // SAFETY: `start` is below `end`, up to where the text is set, and `stop` lies between
        // them; `fields` has `fieldCount` elements.
        let newline = unsafe find(UInt8(ascii: "\n"), bytes, start, end)
        var stop = newline ?? end
        offset = newline.map { $0 + 1 } ?? end
        let line = self.line
        self.line += 1
        if unsafe isBlank(bytes, start, stop, .jsonl) { return nil }
        stop = withoutCarriageReturn(start, stop)
        if !readObject(start, stop) {
            let whole = Field(start: start, count: stop - start, form: .unusable)
            for index in 0..<fieldCount { unsafe fields[index] = whole }
        }
        return Row(index: 0, number: 0, line: line, start: start, count: stop - start)
    }

    /// Sets the wanted fields; false where the line is not a JSON object. The last of equal keys wins,
    /// however they are written.
    private mutating func readObject(_ start: Int, _ stop: Int) -> Bool {
        // SAFETY: `stop` bytes of the text are set and stay during this call; `wantedField` gives
        // an index of `fields`, or -1; a token's range lies inside the text that the tokenizer was
        // given.
        for index in 0..<fieldCount { unsafe fields[index] = .missing }
        decodedCount = 0
        let bytes = unsafe bytes
        let text = unsafe RawSpan(_unsafeStart: bytes, byteCount: stop)
        var tokenizer = JSONTokenizer(at: start)
        do throws(APNsError) {
            guard try tokenizer.next(in: text)?.kind == .objectStart else { return false }
            if let paths {
                paths.begin()
                return try unsafe readPaths(paths, &tokenizer, text, bytes)
            }
            while let key = try tokenizer.next(in: text) {
                guard key.kind == .key, tokenizer.depth == 1 else { continue }
                guard let value = try tokenizer.next(in: text) else { return false }
                unsafe take(value, of: key, bytes) { (name, reader) in
                    let index = unsafe reader.wantedField(name)
                    if index >= 0 { unsafe reader.fields[index] = reader.field(value, bytes) }
                }
            }
            return true
        } catch {
            return false
        }
    }

    /// The same where names may be paths: keys inside objects are looked at, too.
    @inline(never)
    private mutating func readPaths(
        _ paths: JSONPaths, _ tokenizer: inout JSONTokenizer, _ text: RawSpan,
        _ bytes: UnsafeRawPointer
    ) throws(APNsError) -> Bool {
        while let token = try tokenizer.next(in: text) {
            let depth = tokenizer.depth
            if token.kind == .objectEnd || token.kind == .arrayEnd { paths.left(depth: depth + 1) }
            guard token.kind == .key, depth <= paths.depthMax else { continue }
            guard let value = try tokenizer.next(in: text) else { return false }
            // SAFETY: the tokens lie inside `text`, which begins at `bytes`; the caller keeps it
            // alive.
            unsafe take(value, of: token, bytes) { (name, reader) in
                unsafe reader.take(value, named: name, depth: depth, paths, bytes)
            }
        }
        return true
    }

    /// Hands out a key's text.
    @inline(__always)
    private mutating func take(
        _ value: JSONTokenizer.Token, of key: JSONTokenizer.Token, _ bytes: UnsafeRawPointer,
        _ body: (UnsafeRawBufferPointer, inout RowReader) -> Void
    ) {
        // SAFETY: the caller vouches for the tokens' ranges. A decoded text has no more bytes than
        // what it is decoded from, and the key's does not move: its value needs no more than what
        // is left of the room.
        let name = unsafe UnsafeRawBufferPointer(start: bytes + key.start, count: key.count)
        guard key.hasEscapes else {
            unsafe body(name, &self)
            return
        }
        // Room for both, so that the key stays where it is while the value is decoded.
        let room = unsafe roomToDecode(key.count + value.count)
        // What is not text names no column.
        guard let count = unsafe JSONEscapes.decode(name, into: room) else { return }
        decodedCount += count
        unsafe body(UnsafeRawBufferPointer(start: room, count: count), &self)
    }

    /// Sets the fields that a key names, or that it is the end of a path to.
    private mutating func take(
        _ value: JSONTokenizer.Token, named name: UnsafeRawBufferPointer, depth: Int,
        _ paths: JSONPaths, _ bytes: UnsafeRawPointer
    ) {
        var made: Field?
        // SAFETY: every index is below `fieldCount`; the caller keeps the name and the token's
        // bytes alive.
        let literal = depth == 1 ? unsafe wantedField(name) : -1
        for index in 0..<fieldCount {
            if index == literal {
                let field = unsafe made ?? field(value, bytes)
                made = field
                paths.isLiteral[index] = true
                unsafe fields[index] = field
                continue
            }
            guard let isLast = unsafe paths.step(index, name, depth: depth) else { continue }
            if isLast, !paths.isLiteral[index] {
                let field = unsafe made ?? field(value, bytes)
                made = field
                unsafe fields[index] = field
            } else if !isLast {
                // What the key leads to replaces what an equal key led to before.
                if !paths.isLiteral[index] { unsafe fields[index] = .missing }
                if value.kind == .objectStart { paths.entered(index) }
            }
        }
    }

    @inline(__always)
    func wantedField(_ key: UnsafeRawBufferPointer) -> Int {
        var start = 0
        for index in 0..<fieldCount {
            // SAFETY: `nameEnds` has `fieldCount` elements, each at most the count of `names` and
            // none before the last; both counts are the same where bytes are compared.
            let end = unsafe nameEnds[index]
            if end - start == key.count {
                var same = 0
                while unsafe same < key.count && names[start + same] == key[same] { same += 1 }
                if same == key.count { return index }
            }
            start = end
        }
        return -1
    }

    mutating func field(
        _ value: JSONTokenizer.Token, _ bytes: UnsafeRawPointer
    ) -> Field {
        switch value.kind {
        case .string where value.hasEscapes:
            // SAFETY: the tokenizer found the string's range in the text, and passed its escapes;
            // its decoded text has no more bytes, for which `roomToDecode` made room.
            let text = unsafe UnsafeRawBufferPointer(
                start: bytes + value.start, count: value.count)
            let room = unsafe roomToDecode(value.count)
            guard let count = unsafe JSONEscapes.decode(text, into: room) else {
                return Field(start: value.start, count: value.count, form: .unusable)
            }
            defer { decodedCount += count }
            return Field(start: decodedCount, count: count, form: .decoded)
        case .string, .number, .true_, .false_:
            return Field(start: value.start, count: value.count, form: .plain)
        case .null: return .missing
        default: return Field(start: value.start, count: value.count, form: .unusable)
        }
    }
}

/// Columns of JSON Lines that lie inside objects: `device.token` is the key `token` of the object
/// under the key `device`, unless the row has a key `device.token`, which comes first.
///
/// What is known of the row in work lies here too, so that no row allocates.
final class JSONPaths {
    private let segments: [[[UInt8]]]
    /// For each field, how many segments lead to the object that is open now.
    private var matched: [Int]
    /// For each field, whether a key of just its name was there.
    var isLiteral: [Bool]
    /// Keys that lie deeper name no column.
    let depthMax: Int

    /// - Returns: nil where no name is a path.
    init?(_ names: [String]) {
        segments = names.map { name in
            let parts = name.utf8.split(
                separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
            return parts.count > 1 ? parts.map { Array($0) } : []
        }
        depthMax = segments.map(\.count).max() ?? 0
        matched = Array(repeating: 0, count: names.count)
        isLiteral = Array(repeating: false, count: names.count)
        if depthMax == 0 { return nil }
    }

    func begin() {
        for index in matched.indices {
            matched[index] = 0
            isLiteral[index] = false
        }
    }

    /// Whether a key goes on with a field's path, and whether it is its last segment.
    func step(_ field: Int, _ key: UnsafeRawBufferPointer, depth: Int) -> Bool? {
        let path = segments[field]
        guard depth == matched[field] + 1, depth <= path.count,
            // SAFETY: the caller keeps the key alive; the comparison ends with the shorter one.
            unsafe key.elementsEqual(path[depth - 1])
        else { return nil }
        return depth == path.count
    }

    /// The object under the key that was met last is open.
    func entered(_ field: Int) { matched[field] += 1 }

    /// An object or array at this depth was closed.
    func left(depth: Int) {
        for index in matched.indices where matched[index] == depth - 1 && depth > 1 {
            matched[index] -= 1
        }
    }
}

/// The escapes of JSON strings (RFC 8259 section 7).
enum JSONEscapes {
    /// Writes a string's text; an escape is longer than what it stands for.
    ///
    /// - Parameters:
    ///   - bytes: the inside of a string that the tokenizer passed.
    ///   - output: room for as many bytes.
    /// - Returns: how many it has; nil where a surrogate stands alone, which is not text.
    static func decode(
        _ bytes: UnsafeRawBufferPointer, into output: UnsafeMutableRawPointer
    ) -> Int? {
        var length = 0
        var offset = 0
        func put(_ byte: UInt8) {
            // SAFETY: the caller vouches for room for as many bytes as it decodes, and an escape is
            // longer than its text, so that `length` never passes `offset`.
            unsafe output.storeBytes(of: byte, toByteOffset: length, as: UInt8.self)
            length += 1
        }
        while offset < bytes.count {
            // SAFETY: `offset` is below the count; behind a backslash the tokenizer has found a
            // whole escape.
            let byte = unsafe bytes[offset]
            guard byte == UInt8(ascii: "\\") else {
                put(byte)
                offset += 1
                continue
            }
            let letter = unsafe bytes[offset + 1]
            offset += 2
            switch letter {
            case UInt8(ascii: "b"): put(0x08)
            case UInt8(ascii: "f"): put(0x0c)
            case UInt8(ascii: "n"): put(0x0a)
            case UInt8(ascii: "r"): put(0x0d)
            case UInt8(ascii: "t"): put(0x09)
            case UInt8(ascii: "u"):
                var value = unsafe unit(bytes, at: offset)
                offset += 4
                if value >> 10 == 0x36, offset + 6 <= bytes.count,
                    unsafe bytes[offset] == UInt8(ascii: "\\"),
                    unsafe bytes[offset + 1] == UInt8(ascii: "u")
                {
                    let second = unsafe unit(bytes, at: offset + 2)
                    guard second >> 10 == 0x37 else { return nil }
                    value = 0x10000 + ((value & 0x3ff) << 10) + (second & 0x3ff)
                    offset += 6
                }
                guard let scalar = Unicode.Scalar(value) else { return nil }
                for byte in String(scalar).utf8 { put(byte) }
            default: put(letter)
            }
        }
        return length
    }

    private static func unit(_ bytes: UnsafeRawBufferPointer, at start: Int) -> UInt32 {
        var unit: UInt32 = 0
        // SAFETY: `\u` comes before, which the tokenizer passes only with four hexadecimal digits.
        for place in start..<start + 4 {
            let byte = unsafe bytes[place]
            let digit = byte <= UInt8(ascii: "9") ? byte - 0x30 : (byte | 0x20) - 0x57
            unit = unit << 4 | UInt32(digit)
        }
        return unit
    }
}
