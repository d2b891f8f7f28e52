import APNs

/// Reads JSON5 (spec.json5.org) strictly, and knows where each value stands.
///
/// JSON with comments, commas at the end, keys without quotes, single quotes, lines that go on after
/// a backslash, hexadecimal numbers, and signs before numbers. Not for hot paths.
public struct JSON5Reader {
    /// How deeply arrays and objects may be nested.
    public static let maximumDepth = 32

    private var text: [Unicode.Scalar]
    private var offset = 0
    private var depth = 0
    private var place = JSON5Value.Place(line: 1, column: 1)

    /// Reads a whole text: one value.
    public static func read(_ octets: [UInt8]) throws(JSON5Value.Problem) -> JSON5Value {
        var reader = JSON5Reader(String(decoding: octets, as: UTF8.self))
        try reader.checkEncoding(octets)
        let value = try reader.value()
        try reader.skipBlanks()
        if reader.current != nil {
            throw reader.problem("something follows the value: take it out")
        }
        return value
    }

    private init(_ string: String) {
        text = Array(string.unicodeScalars)
    }

    private func checkEncoding(_ octets: [UInt8]) throws(JSON5Value.Problem) {
        var line = 1
        var offset = 0
        while offset < octets.count {
            guard let count = unsafe UTF8Scalar.count(in: octets.span.bytes, at: offset) else {
                throw .init(
                    place: .init(line: line, column: 1), message: "this line is not UTF-8: mend it")
            }
            if octets[offset] == 0x0a { line += 1 }
            offset += count
        }
    }

    // MARK: Characters

    var current: Unicode.Scalar? { offset < text.count ? text[offset] : nil }

    func next(_ distance: Int) -> Unicode.Scalar? {
        offset + distance < text.count ? text[offset + distance] : nil
    }

    func problem(_ message: String) -> JSON5Value.Problem {
        .init(place: place, message: message)
    }

    mutating func advance() {
        let scalar = text[offset]
        offset += 1
        // A carriage return and the line feed behind it end one line.
        if scalar == "\r", current == "\n" { return }
        if Self.isLineEnd(scalar) {
            place = .init(line: place.line + 1, column: 1)
        } else {
            place.column += 1
        }
    }

    private static func isLineEnd(_ scalar: Unicode.Scalar) -> Bool {
        scalar == "\n" || scalar == "\r" || scalar == "\u{2028}" || scalar == "\u{2029}"
    }

    private static func isBlank(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar {
        case "\t", "\u{b}", "\u{c}", " ", "\u{a0}", "\u{feff}": true
        default: isLineEnd(scalar) || scalar.properties.generalCategory == .spaceSeparator
        }
    }

    /// Goes over blanks and comments.
    private mutating func skipBlanks() throws(JSON5Value.Problem) {
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

    private mutating func value() throws(JSON5Value.Problem) -> JSON5Value {
        try skipBlanks()
        let start = place
        guard let scalar = current else { throw problem("a value is missing here") }
        switch scalar {
        case "{": return JSON5Value(kind: .object(try members()), place: start)
        case "[": return JSON5Value(kind: .array(try elements()), place: start)
        case "\"", "'": return JSON5Value(kind: .string(try string()), place: start)
        case "+", "-", ".", "0"..."9", "I", "N":
            return JSON5Value(kind: .number(try number()), place: start)
        default: break
        }
        switch identifierAhead() {
        case "true": return word("true", .boolean(true))
        case "false": return word("false", .boolean(false))
        case "null": return word("null", .null)
        case "": throw problem("'\(scalar)' begins no value")
        case let other: throw problem("'\(other)' is no value: put text between quotes")
        }
    }

    private func identifierAhead() -> String {
        var result = ""
        var end = offset
        while end < text.count, Self.isIdentifierPart(text[end]) {
            result.unicodeScalars.append(text[end])
            end += 1
        }
        return result
    }

    private mutating func word(_ text: String, _ kind: JSON5Value.Kind) -> JSON5Value {
        let start = place
        for _ in text.unicodeScalars { advance() }
        return JSON5Value(kind: kind, place: start)
    }

    private mutating func open() throws(JSON5Value.Problem) {
        depth += 1
        if depth > Self.maximumDepth { throw problem("values are nested too deeply") }
        advance()
        try skipBlanks()
    }

    private mutating func members() throws(JSON5Value.Problem) -> [JSON5Value.Member] {
        var members: [JSON5Value.Member] = []
        try open()
        while current != "}" {
            let place = self.place
            let key = try key()
            try skipBlanks()
            if current != ":" { throw problem("a colon is missing behind the key '\(key)'") }
            advance()
            members.append(.init(key: key, place: place, value: try value()))
            try comma(before: "}")
        }
        advance()
        depth -= 1
        return members
    }

    private mutating func elements() throws(JSON5Value.Problem) -> [JSON5Value] {
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

    private mutating func comma(before end: Unicode.Scalar) throws(JSON5Value.Problem) {
        try skipBlanks()
        if current == end { return }
        if current == nil { throw problem("the text ends here: '\(end)' is missing") }
        if current != "," { throw problem("a comma or '\(end)' is missing here") }
        advance()
        try skipBlanks()
    }

    // MARK: Keys and strings

    static func isIdentifierPart(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar {
        case "a"..."z", "A"..."Z", "0"..."9", "$", "_", "\u{200c}", "\u{200d}": return true
        default: break
        }
        guard !scalar.isASCII else { return false }
        switch scalar.properties.generalCategory {
        case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .otherLetter,
            .letterNumber, .nonspacingMark, .spacingMark, .decimalNumber, .connectorPunctuation:
            return true
        default: return false
        }
    }

    private mutating func key() throws(JSON5Value.Problem) -> String {
        if current == "\"" || current == "'" { return try string() }
        let name = identifierAhead()
        if name.isEmpty || name.unicodeScalars.first!.properties.numericType != nil {
            throw problem("a key is missing here: write a name or a string")
        }
        for _ in name.unicodeScalars { advance() }
        if current == "-" {
            throw problem("a key with a dash needs quotes: write \"\(name)-...\"")
        }
        return name
    }

    private mutating func string() throws(JSON5Value.Problem) -> String {
        let start = problem("a string is not closed: its quote is missing")
        let quote = current
        var result = String.UnicodeScalarView()
        advance()
        while let scalar = current, scalar != quote {
            if scalar == "\n" || scalar == "\r" { throw start }
            if scalar != "\\" {
                result.append(scalar)
                advance()
                continue
            }
            if let escaped = try escape() { result.append(escaped) }
        }
        guard current != nil else { throw start }
        advance()
        return String(result)
    }

    /// What an escape stands for; nil for a line that goes on.
    private mutating func escape() throws(JSON5Value.Problem) -> Unicode.Scalar? {
        let start = problem("this is no escape: write \\\\ for a backslash")
        advance()
        guard let letter = current else { throw start }
        if letter == "\r", next(1) == "\n" { advance() }
        advance()
        switch letter {
        case "b": return "\u{8}"
        case "f": return "\u{c}"
        case "n": return "\n"
        case "r": return "\r"
        case "t": return "\t"
        case "v": return "\u{b}"
        case "0":
            if let digit = current, ("0"..."9").contains(digit) { throw start }
            return "\0"
        case "1"..."9": throw start
        case "x": return Unicode.Scalar(try hexadecimal(2, start))
        case "u":
            var value = try hexadecimal(4, start)
            if value >> 10 == 0x36 {
                guard current == "\\", next(1) == "u" else { throw start }
                advance()
                advance()
                let second = try hexadecimal(4, start)
                guard second >> 10 == 0x37 else { throw start }
                value = 0x10000 + ((value & 0x3ff) << 10) + (second & 0x3ff)
            }
            guard let scalar = Unicode.Scalar(value) else { throw start }
            return scalar
        default: return Self.isLineEnd(letter) ? nil : letter
        }
    }

    private mutating func hexadecimal(
        _ count: Int, _ failure: JSON5Value.Problem
    ) throws(JSON5Value.Problem) -> UInt32 {
        var value: UInt32 = 0
        for _ in 0..<count {
            guard let digit = current.flatMap({ Character($0).hexDigitValue }) else {
                throw failure
            }
            value = value << 4 | UInt32(digit)
            advance()
        }
        return value
    }
}
