import BroadsidePrimitives
import BroadsideSupport

extension RowReader {
    /// Returns the next line as a JSON object; nil if it is blank.
    mutating func nextJSONLine() -> Row? {
        let start = offset
        if paths == nil, let stop = readFlatObject(start) {
            let line = self.line
            self.line += 1
            return Row(index: 0, number: 0, line: line, start: start, count: stop - start)
        }
        // SAFETY: nothing is opened or closed here.
        let text = unsafe openText
        let newline = find(UInt8(ascii: "\n"), in: text, start, end)
        var stop = newline ?? end
        offset = newline.map { $0 + 1 } ?? end
        let line = self.line
        self.line += 1
        if isBlank(text, start, stop, .jsonl) { return nil }
        stop = withoutCarriageReturn(start, stop)
        if !readObject(start, text.extracting(0..<stop)) {
            setAll(Field(start: start, count: stop - start, form: .unusable))
        }
        return Row(index: 0, number: 0, line: line, start: start, count: stop - start)
    }

    /// Sets the wanted fields of the line from `start` to the text's end; false if the line is not
    /// a JSON object. The last of equal keys counts, even if they are escaped differently.
    private mutating func readObject(_ start: Int, _ text: RawSpan) -> Bool {
        setAll(.missing)
        decodedCount = 0
        var tokenizer = JSONTokenizer(at: start)
        do throws(JSONError) {
            guard try tokenizer.next(in: text)?.kind == .objectStart else { return false }
            if let paths {
                paths.begin()
                return try readPaths(paths, &tokenizer, text)
            }
            while let key = try tokenizer.next(in: text) {
                guard key.kind == .key, tokenizer.depth == 1 else { continue }
                guard let value = try tokenizer.next(in: text) else { return false }
                take(value, of: key, text) { (name, reader) in
                    let index = reader.columns.field(named: name)
                    if index >= 0 { reader.setField(index, reader.field(value, text)) }
                }
            }
            return true
        } catch {
            return false
        }
    }

    /// Sets the wanted fields if a column's name may be a path of keys, such as `device.token`.
    /// Reads keys inside objects, too.
    @inline(never)
    private mutating func readPaths(
        _ paths: JSONPaths, _ tokenizer: inout JSONTokenizer, _ text: RawSpan
    ) throws(JSONError) -> Bool {
        while let token = try tokenizer.next(in: text) {
            let depth = tokenizer.depth
            if token.kind == .objectEnd || token.kind == .arrayEnd { paths.left(depth: depth + 1) }
            guard token.kind == .key, depth <= paths.depthMax else { continue }
            guard let value = try tokenizer.next(in: text) else { return false }
            take(value, of: token, text) { (name, reader) in
                reader.take(value, named: name, depth: depth, paths, text)
            }
        }
        return true
    }

    /// Calls `body` with the decoded text of a key.
    @inline(__always)
    private mutating func take(
        _ value: JSONTokenizer.Token, of key: JSONTokenizer.Token, _ text: RawSpan,
        _ body: (RawSpan, inout RowReader) -> Void
    ) {
        let name = text.extracting(key.start..<key.start + key.count)
        guard key.hasEscapes else {
            body(name, &self)
            return
        }
        // Space for key and value, so that the key does not move while the value is decoded.
        reserveDecoded(key.count + value.count)
        // A key that is not valid text names no column.
        guard
            let decoded = decode(key.count, { JSONEscapes.decode(name, into: &$0) == nil })
        else { return }
        // SAFETY: only the value is decoded meanwhile, and it needs no more than what is reserved.
        let all = unsafe decodedText
        body(all.extracting(decoded.start..<decoded.start + decoded.count), &self)
    }

    /// Sets each field that gets the value of a key. The key either equals the field's name, or is
    /// the last key of the field's path.
    private mutating func take(
        _ value: JSONTokenizer.Token, named name: RawSpan, depth: Int, _ paths: JSONPaths,
        _ text: RawSpan
    ) {
        var made: Field?
        let literal = depth == 1 ? columns.field(named: name) : -1
        for index in 0..<fieldCount {
            if index == literal {
                let field = made ?? field(value, text)
                made = field
                paths.isLiteral[index] = true
                setField(index, field)
                continue
            }
            guard let isLast = paths.step(index, name, depth: depth) else { continue }
            if isLast, !paths.isLiteral[index] {
                let field = made ?? field(value, text)
                made = field
                setField(index, field)
            } else if !isLast {
                // The value replaces the value of an earlier equal key.
                if !paths.isLiteral[index] { setField(index, .missing) }
                if value.kind == .objectStart { paths.entered(index) }
            }
        }
    }

    /// Returns the field for a value.
    mutating func field(_ value: JSONTokenizer.Token, _ text: RawSpan) -> Field {
        switch value.kind {
        case .string where value.hasEscapes:
            let inside = text.extracting(value.start..<value.start + value.count)
            return decode(value.count) { JSONEscapes.decode(inside, into: &$0) == nil }
                ?? Field(start: value.start, count: value.count, form: .unusable)
        case .string, .number, .true_, .false_:
            return Field(start: value.start, count: value.count, form: .plain)
        case .null: return .missing
        default: return Field(start: value.start, count: value.count, form: .unusable)
        }
    }
}

/// Columns of JSON Lines that are keys inside objects. `device.token` is the key `token` of the
/// object under the key `device`. If the row has a key `device.token` itself, that key takes
/// precedence.
///
/// The state of the current row is kept here, too, so that reading a row allocates nothing.
final class JSONPaths {
    private let segments: [[[UInt8]]]
    /// For each field, the number of segments of its path that match the keys of the open objects.
    private var matched: [Int]
    /// For each field, whether the row has a key equal to the field's full name, such as `a.b`. If
    /// so, the name is not a path.
    var isLiteral: [Bool]
    /// Maximum number of segments of a path. Keys at a greater depth name no column.
    let depthMax: Int

    /// - Returns: nil if no name is a path.
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

    /// Returns whether a key completes a field's path; nil if the key does not continue the path.
    func step(_ field: Int, _ key: RawSpan, depth: Int) -> Bool? {
        let path = segments[field]
        guard depth == matched[field] + 1, depth <= path.count else { return nil }
        let segment = path[depth - 1]
        guard segment.rawSpan.holdsSame(as: key) else { return nil }
        return depth == path.count
    }

    /// Records that the object under the last matched key was opened.
    func entered(_ field: Int) {
        assert(matched[field] + 1 < segments[field].count, "the last name of a path has the value")
        matched[field] += 1
    }

    /// Records that an object or array at this depth was closed.
    func left(depth: Int) {
        for index in matched.indices where matched[index] == depth - 1 && depth > 1 {
            matched[index] -= 1
        }
    }
}
