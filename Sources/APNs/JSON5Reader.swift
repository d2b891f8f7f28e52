/// Reads a whole JSON5 text: comments, names without quotes, single quotes, trailing commas,
/// hexadecimal numbers, lines continued in strings. A name that occurs twice is an error.
public struct JSON5Reader {
    /// How deeply arrays and objects may be nested.
    public static let maximumDepth = 32

    private let text: [Unicode.Scalar]
    private var offset = 0
    private var line = 1
    private var lineStart = 0
    private var depth = 0

    private init(_ scalars: [Unicode.Scalar]) { text = scalars }

    /// The value of a text in UTF-8, of which nothing may be left.
    public static func read(_ octets: [UInt8]) throws(JSON5Error) -> JSON5Value {
        guard let string = String(validating: octets, as: UTF8.self) else {
            throw JSON5Error(
                message: "this is no UTF-8 text: save it as UTF-8",
                position: JSON5Position(line: 1, column: 1))
        }
        var scalars = Array(string.unicodeScalars)
        if scalars.first == "\u{feff}" { scalars.removeFirst() }
        var reader = JSON5Reader(scalars)
        try reader.skipBlanks()
        let value = try reader.value()
        try reader.skipBlanks()
        if reader.offset < reader.text.count { throw reader.error("text after the value's end") }
        return value
    }

    // MARK: The text

    var position: JSON5Position {
        JSON5Position(line: line, column: offset - lineStart + 1)
    }

    func error(_ message: String, at place: JSON5Position? = nil) -> JSON5Error {
        JSON5Error(message: message, position: place ?? position)
    }

    var current: Unicode.Scalar? { offset < text.count ? text[offset] : nil }

    mutating func advance() {
        let scalar = text[offset]
        offset += 1
        // A carriage return and its line feed are one line's end.
        let isLineEnd = scalar == "\n" || (scalar == "\r" && current != "\n")
        if isLineEnd || scalar == "\u{2028}" || scalar == "\u{2029}" {
            line += 1
            lineStart = offset
        }
    }

    mutating func take(_ scalar: Unicode.Scalar) -> Bool {
        guard current == scalar else { return false }
        advance()
        return true
    }

    private mutating func skipBlanks() throws(JSON5Error) {
        while let scalar = current {
            if scalar == "/" {
                try skipComment()
            } else if scalar == "\u{feff}" || scalar.properties.isWhitespace {
                advance()
            } else {
                return
            }
        }
    }

    private mutating func skipComment() throws(JSON5Error) {
        let start = position
        advance()
        if take("/") {
            while let scalar = current, scalar != "\n", scalar != "\r" { advance() }
        } else if take("*") {
            while true {
                guard let scalar = current else {
                    throw error("a comment without its end: add */", at: start)
                }
                advance()
                if scalar == "*", take("/") { return }
            }
        } else {
            throw error("'/' starts no comment: write // or /*", at: start)
        }
    }

    // MARK: Values

    private mutating func value() throws(JSON5Error) -> JSON5Value {
        let start = position
        guard let scalar = current else { throw error("the text ends where a value is expected") }
        let content: JSON5Value.Content
        switch scalar {
        case "{": content = .object(try members())
        case "[": content = .array(try elements())
        case "\"", "'": content = .string(try string())
        case "+", "-", ".", "0"..."9": content = .number(try number())
        default: content = try word()
        }
        return JSON5Value(content: content, position: start)
    }

    private mutating func word() throws(JSON5Error) -> JSON5Value.Content {
        let start = position
        guard let name = identifier() else { throw error("no value starts like this") }
        switch name {
        case "null": return .null
        case "true": return .boolean(true)
        case "false": return .boolean(false)
        case "Infinity": return .number(.infinity)
        case "NaN": return .number(.nan)
        default:
            throw error("'\(name)' is no value: texts stand in quotes, \"\(name)\"", at: start)
        }
    }

    private mutating func enter() throws(JSON5Error) {
        depth += 1
        if depth > Self.maximumDepth { throw error("nested too deeply") }
        advance()
    }

    private mutating func elements() throws(JSON5Error) -> [JSON5Value] {
        try enter()
        var elements: [JSON5Value] = []
        while true {
            try skipBlanks()
            if take("]") { break }
            elements.append(try value())
            try skipBlanks()
            if take(",") { continue }
            guard take("]") else { throw error("an array goes on with ',' or ends with ']'") }
            break
        }
        depth -= 1
        return elements
    }

    private mutating func members() throws(JSON5Error) -> [JSON5Value.Member] {
        try enter()
        var members: [JSON5Value.Member] = []
        while true {
            try skipBlanks()
            if take("}") { break }
            let start = position
            let name = try memberName()
            if members.contains(where: { $0.name == name }) {
                throw error("'\(name)' stands here twice: keep one", at: start)
            }
            try skipBlanks()
            guard take(":") else { throw error("a ':' is missing behind the name '\(name)'") }
            try skipBlanks()
            members.append(.init(name: name, position: start, value: try value()))
            try skipBlanks()
            if take(",") { continue }
            guard take("}") else { throw error("an object goes on with ',' or ends with '}'") }
            break
        }
        depth -= 1
        return members
    }

    private mutating func memberName() throws(JSON5Error) -> String {
        if current == "\"" || current == "'" { return try string() }
        guard let name = identifier() else {
            throw error("a name is expected here: letters and digits, or a text in quotes")
        }
        return name
    }

    /// Letters, digits, `_` and `$`, not beginning with a digit; nil where none stands here.
    private mutating func identifier() -> String? {
        var name = String.UnicodeScalarView()
        while let scalar = current {
            let isLetter = scalar.properties.isIDStart || scalar == "_" || scalar == "$"
            guard isLetter || (!name.isEmpty && scalar.properties.isIDContinue) else { break }
            name.append(scalar)
            advance()
        }
        return name.isEmpty ? nil : String(name)
    }

    private mutating func number() throws(JSON5Error) -> Double {
        let start = position
        var letters = ""
        while let scalar = current {
            let isPart =
                scalar.properties.isIDContinue || scalar == "." || scalar == "+" || scalar == "-"
            guard isPart, scalar.isASCII else { break }
            letters.unicodeScalars.append(scalar)
            advance()
        }
        var digits = letters[...]
        var sign = 1.0
        if let first = digits.first, first == "+" || first == "-" {
            if first == "-" { sign = -1 }
            digits = digits.dropFirst()
        }
        if digits == "Infinity" { return sign * .infinity }
        if digits == "NaN" { return .nan }
        if digits.hasPrefix("0x") || digits.hasPrefix("0X") {
            if let value = UInt64(digits.dropFirst(2), radix: 16), digits.dropFirst(2).first != "+" {
                return sign * Double(value)
            }
        } else if let value = Self.decimal(digits) {
            return sign * value
        }
        throw error("'\(letters)' is no number", at: start)
    }

    /// Digits with at most one point, of which one side may be empty, and an exponent.
    private static func decimal(_ text: Substring) -> Double? {
        func isDigit(_ octet: UInt8) -> Bool { octet >= 0x30 && octet <= 0x39 }
        let parts = text.utf8.split(
            maxSplits: 1, omittingEmptySubsequences: false, whereSeparator: { $0 | 0x20 == 0x65 })
        let mantissa = parts[0].split(separator: 0x2e, omittingEmptySubsequences: false)
        guard mantissa.count <= 2, mantissa.contains(where: { !$0.isEmpty }),
            mantissa.allSatisfy({ $0.allSatisfy(isDigit) }),
            // As in JSON, no zero leads.
            mantissa[0].count <= 1 || mantissa[0].first != 0x30
        else { return nil }
        let fraction = mantissa.count == 2 && !mantissa[1].isEmpty ? String(mantissa[1])! : "0"
        let whole = mantissa[0].isEmpty ? "0" : String(mantissa[0])!
        var exponent = ""
        if parts.count == 2 {
            var digits = parts[1]
            if digits.first == 0x2b || digits.first == 0x2d { digits = digits.dropFirst() }
            guard !digits.isEmpty, digits.allSatisfy(isDigit) else { return nil }
            exponent = "e" + String(parts[1])!
        }
        return Double("\(whole).\(fraction)\(exponent)")
    }
}
