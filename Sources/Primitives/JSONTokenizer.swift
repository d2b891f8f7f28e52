/// A strict pull tokenizer for JSON (RFC 8259) that reports ranges instead of values and never
/// allocates.
///
///     value ──▶ scalar ───────────────┐
///       │                             ▼
///       ├──▶ {  keyOrEnd ──key : ──▶ value … commaOrEnd ──▶ } ──▶ commaOrEnd, or end at depth 0
///       │                    ▲                  │ ,
///       │                    └──────────────────┘
///       └──▶ [  valueOrEnd ──▶ value … commaOrEnd ──▶ ]
///
/// The text is a parameter of each call, so the tokenizer itself is plain data.
public struct JSONTokenizer: Sendable {
    /// One token: its kind and the bytes it covers.
    public struct Token: Sendable, Equatable {
        /// The kinds of tokens.
        public enum Kind: Sendable, Equatable {
            case objectStart
            case objectEnd
            case arrayStart
            case arrayEnd
            /// A key of an object; its colon is consumed with it.
            case key
            case string
            case number
            case true_
            case false_
            case null
        }

        /// The kind of the token.
        public var kind: Kind
        /// Offset of the token; for keys and strings, of the byte after the opening quotation mark.
        public var start: Int
        /// Byte count of the token; for keys and strings, without the quotation marks.
        public var count: Int
        /// Whether a key or string contains escapes.
        public var hasEscapes: Bool

        /// Creates a token from its parts.
        public init(kind: Kind, start: Int, count: Int, hasEscapes: Bool) {
            self.kind = kind
            self.start = start
            self.count = count
            self.hasEscapes = hasEscapes
        }

        /// The range of bytes covered by the token.
        public var range: Range<Int> { start..<start + count }
    }

    /// Maximum nesting depth of arrays and objects.
    static let maximumDepth = 128

    private enum Expectation {
        case value
        case valueOrArrayEnd
        case key
        case keyOrObjectEnd
        case commaOrEnd
        case end
    }

    /// Offset at which the search for the next token begins.
    public private(set) var offset: Int
    /// The number of open arrays and objects.
    public private(set) var depth = 0
    private var expectation = Expectation.value
    /// One bit per open level, the innermost level in the lowest bit: 1 for an object, 0 for an
    /// array.
    private var levels: UInt128 = 0

    /// - Parameter offset: Start of the value in the text; whitespace may precede it.
    public init(at offset: Int = 0) {
        self.offset = offset
    }

    /// Returns the next token; nil at the end of the value and the text.
    ///
    /// - Throws: `JSONError` at the first byte that violates the grammar.
    public mutating func next(in text: RawSpan) throws(JSONError) -> Token? {
        skipBlanks(text)
        if expectation == .end {
            if offset < text.byteCount { throw JSONError(.trailingText, at: offset) }
            return nil
        }
        if expectation == .commaOrEnd {
            if let end = try closeOrComma(text) { return end }
            skipBlanks(text)
        }
        let byte = try peek(text)
        switch expectation {
        case .keyOrObjectEnd where byte == UInt8(ascii: "}"): return close(.objectEnd)
        case .valueOrArrayEnd where byte == UInt8(ascii: "]"): return close(.arrayEnd)
        case .key, .keyOrObjectEnd: return try key(text)
        default: return try value(text, byte)
        }
    }

    private mutating func closeOrComma(_ text: RawSpan) throws(JSONError) -> Token? {
        let isObject = levels & 1 == 1
        switch try peek(text) {
        case UInt8(ascii: ","):
            offset += 1
            expectation = isObject ? .key : .value
            return nil
        case UInt8(ascii: "}") where isObject: return close(.objectEnd)
        case UInt8(ascii: "]") where !isObject: return close(.arrayEnd)
        default: throw JSONError(.unexpectedCharacter, at: offset)
        }
    }

    private mutating func close(_ kind: Token.Kind) -> Token {
        assert(depth > 0, "only what is open is closed")
        assert((levels & 1 == 1) == (kind == .objectEnd), "the innermost level is closed")
        let token = Token(kind: kind, start: offset, count: 1, hasEscapes: false)
        offset += 1
        depth -= 1
        levels >>= 1
        valueEnded()
        return token
    }

    private mutating func open(_ kind: Token.Kind) throws(JSONError) -> Token {
        if depth == JSONTokenizer.maximumDepth { throw JSONError(.tooDeep, at: offset) }
        let token = Token(kind: kind, start: offset, count: 1, hasEscapes: false)
        offset += 1
        depth += 1
        levels = levels << 1 | (kind == .objectStart ? 1 : 0)
        expectation = kind == .objectStart ? .keyOrObjectEnd : .valueOrArrayEnd
        return token
    }

    private mutating func valueEnded() {
        expectation = depth == 0 ? .end : .commaOrEnd
    }

    private mutating func key(_ text: RawSpan) throws(JSONError) -> Token {
        if try peek(text) != UInt8(ascii: "\"") {
            throw JSONError(.unexpectedCharacter, at: offset)
        }
        let token = try string(text, kind: .key)
        skipBlanks(text)
        if try peek(text) != UInt8(ascii: ":") {
            throw JSONError(.unexpectedCharacter, at: offset)
        }
        offset += 1
        expectation = .value
        return token
    }

    private mutating func value(_ text: RawSpan, _ byte: UInt8) throws(JSONError) -> Token {
        let token: Token
        switch byte {
        case UInt8(ascii: "{"): return try open(.objectStart)
        case UInt8(ascii: "["): return try open(.arrayStart)
        case UInt8(ascii: "\""): token = try string(text, kind: .string)
        case UInt8(ascii: "t"): token = try word(text, "true", .true_)
        case UInt8(ascii: "f"): token = try word(text, "false", .false_)
        case UInt8(ascii: "n"): token = try word(text, "null", .null)
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): token = try number(text)
        default: throw JSONError(.unexpectedCharacter, at: offset)
        }
        valueEnded()
        return token
    }

    private mutating func word(
        _ text: RawSpan, _ literal: StaticString, _ kind: Token.Kind
    ) throws(JSONError) -> Token {
        let start = offset
        for position in 0..<literal.utf8CodeUnitCount {
            // SAFETY: the position is inside the static string.
            let expected = unsafe literal.utf8Start[position]
            if try peek(text) != expected { throw JSONError(.unexpectedCharacter, at: offset) }
            offset += 1
        }
        return Token(kind: kind, start: start, count: offset - start, hasEscapes: false)
    }

    private mutating func number(_ text: RawSpan) throws(JSONError) -> Token {
        let start = offset
        if text.byte(at: offset) == UInt8(ascii: "-") { offset += 1 }
        // RFC 8259 section 6: no leading zeros.
        if offset < text.byteCount, text.byte(at: offset) == UInt8(ascii: "0") {
            offset += 1
        } else {
            try digits(text)
        }
        if offset < text.byteCount, text.byte(at: offset) == UInt8(ascii: ".") {
            offset += 1
            try digits(text)
        }
        if offset < text.byteCount, text.byte(at: offset) | 0x20 == UInt8(ascii: "e") {
            offset += 1
            if offset < text.byteCount {
                let sign = text.byte(at: offset)
                if sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-") { offset += 1 }
            }
            try digits(text)
        }
        if offset < text.byteCount, isDigit(text.byte(at: offset)) {
            throw JSONError(.badNumber, at: offset)
        }
        return Token(kind: .number, start: start, count: offset - start, hasEscapes: false)
    }

    private mutating func digits(_ text: RawSpan) throws(JSONError) {
        let start = offset
        while offset < text.byteCount, isDigit(text.byte(at: offset)) { offset += 1 }
        if offset == start { throw JSONError(.badNumber, at: offset) }
    }

    private func isDigit(_ byte: UInt8) -> Bool { byte &- UInt8(ascii: "0") < 10 }

    private mutating func string(
        _ text: RawSpan, kind: Token.Kind
    ) throws(JSONError) -> Token {
        offset += 1
        let start = offset
        var hasEscapes = false
        while true {
            offset = ByteScan.endOfPlainASCII(in: text, from: offset)
            switch try peek(text) {
            case UInt8(ascii: "\""):
                offset += 1
                return Token(
                    kind: kind, start: start, count: offset - 1 - start, hasEscapes: hasEscapes)
            case UInt8(ascii: "\\"):
                hasEscapes = true
                try escape(text)
            case 0..<0x20: throw JSONError(.controlCharacter, at: offset)
            default: try skipNonASCII(text)
            }
        }
    }

    /// Skips a run of non-ASCII scalars, which are frequent in many languages.
    private mutating func skipNonASCII(_ text: RawSpan) throws(JSONError) {
        repeat {
            guard let count = UTF8Scalar.count(in: text, at: offset) else {
                throw JSONError(.badUTF8, at: offset)
            }
            offset += count
        } while offset < text.byteCount && text.byte(at: offset) >= 0x80
    }

    private mutating func escape(_ text: RawSpan) throws(JSONError) {
        let start = offset
        offset += 1
        switch try peek(text) {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"),
            UInt8(ascii: "f"), UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
            offset += 1
        case UInt8(ascii: "u"):
            offset += 1
            for _ in 0..<4 {
                guard HexDigits.value(try peek(text)) != HexDigits.none else {
                    throw JSONError(.badEscape, at: start)
                }
                offset += 1
            }
        default: throw JSONError(.badEscape, at: start)
        }
    }

    private func peek(_ text: RawSpan) throws(JSONError) -> UInt8 {
        if offset >= text.byteCount { throw JSONError(.unexpectedEnd, at: text.byteCount) }
        return text.byte(at: offset)
    }

    private mutating func skipBlanks(_ text: RawSpan) {
        while offset < text.byteCount {
            let byte = text.byte(at: offset)
            // Most texts have no whitespace here.
            if byte > 0x20 { return }
            switch byte {
            case 0x20, 0x09, 0x0a, 0x0d: offset += 1
            default: return
            }
        }
    }
}
