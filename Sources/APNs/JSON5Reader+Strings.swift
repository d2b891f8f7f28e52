extension JSON5Reader {
    /// The text in quotes that starts here, its escapes resolved.
    mutating func string() throws(JSON5Error) -> String {
        let start = position
        guard let quote = current else { throw error("a text is expected here") }
        advance()
        var result = String.UnicodeScalarView()
        while let scalar = current {
            if scalar == quote {
                advance()
                return String(result)
            }
            if scalar == "\n" || scalar == "\r" { break }
            if scalar == "\\" {
                try escape(into: &result)
            } else {
                result.append(scalar)
                advance()
            }
        }
        throw error("a text without its closing quote", at: start)
    }

    private mutating func escape(into result: inout String.UnicodeScalarView) throws(JSON5Error) {
        let start = position
        advance()
        guard let scalar = current else { throw error("the text ends in an escape", at: start) }
        advance()
        switch scalar {
        case "b": result.append("\u{8}")
        case "f": result.append("\u{c}")
        case "n": result.append("\n")
        case "r": result.append("\r")
        case "t": result.append("\t")
        case "v": result.append("\u{b}")
        case "0": result.append("\0")
        case "x": result.append(try self.scalar(hexadecimal(2, start), start))
        case "u": result.append(try codeUnits(start))
        // A line goes on behind a backslash at its end.
        case "\r": _ = take("\n")
        case "\n", "\u{2028}", "\u{2029}": break
        case "1"..."9": throw error("this escape does not exist", at: start)
        default: result.append(scalar)
        }
    }

    private mutating func codeUnits(_ start: JSON5Position) throws(JSON5Error) -> Unicode.Scalar {
        let first = try hexadecimal(4, start)
        guard first >= 0xd800, first < 0xdc00 else { return try scalar(first, start) }
        guard take("\\"), take("u") else { throw error("half a surrogate pair", at: start) }
        let second = try hexadecimal(4, start)
        guard second >= 0xdc00, second < 0xe000 else {
            throw error("half a surrogate pair", at: start)
        }
        return try scalar(0x10000 + (first - 0xd800) << 10 + (second - 0xdc00), start)
    }

    private func scalar(
        _ value: UInt32, _ start: JSON5Position
    ) throws(JSON5Error) -> Unicode.Scalar {
        guard let scalar = Unicode.Scalar(value) else {
            throw error("half a surrogate pair", at: start)
        }
        return scalar
    }

    private mutating func hexadecimal(
        _ count: Int, _ start: JSON5Position
    ) throws(JSON5Error) -> UInt32 {
        var value: UInt32 = 0
        for _ in 0..<count {
            guard let digit = current.flatMap({ Character($0).hexDigitValue }), digit < 16 else {
                throw error("this escape wants \(count) hexadecimal digits", at: start)
            }
            value = value << 4 | UInt32(digit)
            advance()
        }
        return value
    }
}
