/// A strict reader of JSON5 (spec.json5.org) that records the position of each value.
///
/// JSON5 is JSON with comments, trailing commas, unquoted keys, single quotes, line continuations,
/// hexadecimal numbers and explicit signs. A duplicate key is an error. The reader is meant for
/// files that people write, such as campaigns and scenarios, not for hot paths.
public struct JSON5Reader {
    /// Maximum nesting depth of arrays and objects.
    public static let maximumDepth = 32

    private var text: [Unicode.Scalar]
    private var offset = 0
    private var depth = 0
    private var position = JSON5Position(line: 1, column: 1)

    /// Reads a whole text, which is one value.
    public static func read(_ bytes: [UInt8]) throws(JSON5Error) -> JSON5Value {
        var reader = JSON5Reader(String(decoding: bytes, as: UTF8.self))
        try reader.checkEncoding(bytes)
        let value = try reader.value()
        try reader.skipBlanks()
        if reader.current != nil {
            throw reader.problem("something follows the value: remove it")
        }
        assert(reader.depth == 0, "each level ends")
        return value
    }

    private init(_ string: String) {
        text = Array(string.unicodeScalars)
        // A byte order mark at the beginning is not part of the text.
        if text.first == "\u{feff}" { text.removeFirst() }
    }

    private func checkEncoding(_ bytes: [UInt8]) throws(JSON5Error) {
        var line = 1
        var offset = 0
        while offset < bytes.count {
            // SAFETY: bytes have no padding; the span ends with the statement.
            guard let count = unsafe UTF8Scalar.count(in: bytes.span.bytes, at: offset) else {
                throw .init(
                    message: "this line is not UTF-8: fix it",
                    position: .init(line: line, column: 1))
            }
            if bytes[offset] == 0x0a { line += 1 }
            offset += count
        }
    }

    // MARK: Characters

    var current: Unicode.Scalar? { offset < text.count ? text[offset] : nil }

    func next(_ distance: Int) -> Unicode.Scalar? {
        offset + distance < text.count ? text[offset + distance] : nil
    }

    func problem(_ message: String) -> JSON5Error {
        .init(message: message, position: position)
    }

    mutating func advance() {
        let scalar = text[offset]
        offset += 1
        // A carriage return followed by a line feed is one line end.
        if scalar == "\r", current == "\n" { return }
        if Self.isLineEnd(scalar) {
            position = .init(line: position.line + 1, column: 1)
        } else {
            position.column += 1
        }
    }

    static func isLineEnd(_ scalar: Unicode.Scalar) -> Bool {
        scalar == "\n" || scalar == "\r" || scalar == "\u{2028}" || scalar == "\u{2029}"
    }

    private static func isBlank(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar {
        case "\t", "\u{b}", "\u{c}", " ", "\u{a0}", "\u{feff}": true
        default: isLineEnd(scalar) || scalar.properties.generalCategory == .spaceSeparator
        }
    }

    /// Skips whitespace and comments.
    private mutating func skipBlanks() throws(JSON5Error) {
        while let scalar = current {
            if Self.isBlank(scalar) {
                advance()
            } else if scalar == "/", next(1) == "/" {
                while let other = current, !Self.isLineEnd(other) { advance() }
            } else if scalar == "/", next(1) == "*" {
                let start = problem("a comment is not closed: write */ at its end")
                advance()
                advance()
                while !(current == "*" && next(1) == "/") {
                    if current == nil { throw start }
                    advance()
                }
                advance()
                advance()
            } else {
                return
            }
        }
    }

    // MARK: Values

    private mutating func value() throws(JSON5Error) -> JSON5Value {
        try skipBlanks()
        let start = position
        guard let scalar = current else { throw problem("a value is missing here") }
        switch scalar {
        case "{": return JSON5Value(content: .object(try members()), position: start)
        case "[": return JSON5Value(content: .array(try elements()), position: start)
        case "\"", "'": return JSON5Value(content: .string(try string()), position: start)
        case "+", "-", ".", "0"..."9", "I", "N":
            return JSON5Value(content: .number(try number()), position: start)
        default: break
        }
        switch identifierAhead() {
        case "true": return word("true", .boolean(true))
        case "false": return word("false", .boolean(false))
        case "null": return word("null", .null)
        case "": throw problem("a value can't begin with '\(scalar)'")
        // The text may be a secret, so the message does not show it.
        default: throw problem("this is not a value: put text in quotes")
        }
    }

    func identifierAhead() -> String {
        var result = ""
        var end = offset
        while end < text.count, Self.isIdentifierPart(text[end]) {
            result.unicodeScalars.append(text[end])
            end += 1
        }
        return result
    }

    private mutating func word(_ text: String, _ kind: JSON5Value.Content) -> JSON5Value {
        let start = position
        for _ in text.unicodeScalars { advance() }
        return JSON5Value(content: kind, position: start)
    }

    private mutating func open() throws(JSON5Error) {
        depth += 1
        if depth > Self.maximumDepth { throw problem("values are nested too deeply") }
        advance()
        try skipBlanks()
    }

    private mutating func members() throws(JSON5Error) -> [JSON5Value.Member] {
        var members: [JSON5Value.Member] = []
        try open()
        while current != "}" {
            let start = position
            let key = try key()
            if members.contains(where: { $0.name == key }) {
                throw .init(
                    message: "the key '\(key)' occurs twice: keep one", position: start)
            }
            try skipBlanks()
            if current != ":" { throw problem("a colon is missing after the key '\(key)'") }
            advance()
            members.append(.init(name: key, position: start, value: try value()))
            try comma(before: "}")
        }
        advance()
        depth -= 1
        return members
    }

    private mutating func elements() throws(JSON5Error) -> [JSON5Value] {
        var elements: [JSON5Value] = []
        try open()
        while current != "]" {
            elements.append(try value())
            try comma(before: "]")
        }
        advance()
        depth -= 1
        return elements
    }

    private mutating func comma(before end: Unicode.Scalar) throws(JSON5Error) {
        try skipBlanks()
        if current == end { return }
        if current == nil { throw problem("the text ends here, but '\(end)' is missing") }
        if current != "," { throw problem("a comma or '\(end)' is missing here") }
        advance()
        try skipBlanks()
    }
}
