/// A value of a JSON text, read as a whole.
indirect enum JSONValue {
    case null
    case boolean(Bool)
    /// A number as written.
    case number(String)
    case string(String)
    case array([JSONValue])
    /// Of members with the same name, the first.
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
        var bytes: [UInt8] = []
        var offset = token.start
        while offset < token.start + token.count {
            guard text[offset] == UInt8(ascii: "\\") else {
                bytes.append(text[offset])
                offset += 1
                continue
            }
            let escape = text[offset + 1]
            let start = offset
            offset += 2
            switch escape {
            case UInt8(ascii: "b"): bytes.append(0x08)
            case UInt8(ascii: "f"): bytes.append(0x0c)
            case UInt8(ascii: "n"): bytes.append(0x0a)
            case UInt8(ascii: "r"): bytes.append(0x0d)
            case UInt8(ascii: "t"): bytes.append(0x09)
            case UInt8(ascii: "u"):
                var value = unit(text, offset)
                offset += 4
                if value & 0xfc00 == 0xd800, offset + 6 <= token.start + token.count,
                    text[offset] == UInt8(ascii: "\\"), text[offset + 1] == UInt8(ascii: "u"),
                    unit(text, offset + 2) & 0xfc00 == 0xdc00
                {
                    value = 0x1_0000 + (value & 0x3ff) << 10 + unit(text, offset + 2) & 0x3ff
                    offset += 6
                }
                // Half of a pair alone is no character.
                guard let scalar = Unicode.Scalar(value) else {
                    throw JSONError(.badEscape, at: start)
                }
                bytes += String(Character(scalar)).utf8
            default: bytes.append(escape)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Four hexadecimal digits.
    private static func unit(_ text: [UInt8], _ offset: Int) -> UInt32 {
        UInt32(String(decoding: text[offset..<(offset + 4)], as: UTF8.self), radix: 16) ?? 0
    }
}
