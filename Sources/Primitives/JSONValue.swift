/// A value of a JSON text, read as a whole.
indirect enum JSONValue {
    case null
    case boolean(Bool)
    /// A number as written.
    case number(String)
    case string(String)
    case array([JSONValue])
    /// An object. If several members have the same name, only the first one is kept.
    case object([String: JSONValue])

    /// Reads a whole text.
    init(reading text: [UInt8]) throws(JSONError) {
        var tokenizer = JSONTokenizer()
        let first = try Self.next(&tokenizer, text)
        self = try Self.value(first, &tokenizer, text)
        // Throws if anything follows.
        _ = try Self.token(&tokenizer, text)
    }

    private static func token(
        _ tokenizer: inout JSONTokenizer, _ text: [UInt8]
    ) throws(JSONError) -> JSONTokenizer.Token? {
        // SAFETY: bytes have no padding; the span ends with the statement.
        try unsafe tokenizer.next(in: text.span.bytes)
    }

    private static func next(
        _ tokenizer: inout JSONTokenizer, _ text: [UInt8]
    ) throws(JSONError) -> JSONTokenizer.Token {
        guard let token = try token(&tokenizer, text) else {
            throw JSONError(.unexpectedEnd, at: text.count)
        }
        return token
    }

    private static func value(
        _ token: JSONTokenizer.Token, _ tokenizer: inout JSONTokenizer, _ text: [UInt8]
    ) throws(JSONError) -> JSONValue {
        switch token.kind {
        case .null: return .null
        case .true_: return .boolean(true)
        case .false_: return .boolean(false)
        case .number: return .number(String(decoding: text[token.range], as: UTF8.self))
        case .string: return .string(try string(token, text))
        case .arrayStart:
            var elements: [JSONValue] = []
            while true {
                let token = try next(&tokenizer, text)
                if token.kind == .arrayEnd { return .array(elements) }
                elements.append(try value(token, &tokenizer, text))
            }
        case .objectStart:
            var members: [String: JSONValue] = [:]
            while true {
                let token = try next(&tokenizer, text)
                if token.kind == .objectEnd { return .object(members) }
                let name = try string(token, text)
                let value = try value(next(&tokenizer, text), &tokenizer, text)
                if members[name] == nil { members[name] = value }
            }
        case .key, .objectEnd, .arrayEnd:
            preconditionFailure("the tokenizer returns these only where they belong")
        }
    }

    /// Resolves the escapes of a key or string, which the tokenizer has checked.
    private static func string(
        _ token: JSONTokenizer.Token, _ text: [UInt8]
    ) throws(JSONError) -> String {
        guard token.hasEscapes else { return String(decoding: text[token.range], as: UTF8.self) }
        var value = ""
        var problem: Int?
        // SAFETY: only the output accesses the temporary storage, within the closure; it counts the
        // bytes that are set, which are no more than the escaped form has.
        unsafe withUnsafeTemporaryAllocation(byteCount: token.count, alignment: 1) { storage in
            var output = unsafe OutputRawSpan(buffer: storage, initializedCount: 0)
            let inside = unsafe text.span.bytes.extracting(token.range)
            problem = JSONEscapes.decode(inside, into: &output)
            value = unsafe output.bytes.withUnsafeBytes {
                unsafe String(decoding: $0, as: UTF8.self)
            }
        }
        // Half of a pair alone is not a character.
        if let problem { throw JSONError(.badEscape, at: token.start + problem) }
        return value
    }
}
