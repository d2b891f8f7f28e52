extension JSON5Reader {
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

    mutating func key() throws(JSON5Error) -> String {
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

    mutating func string() throws(JSON5Error) -> String {
        let start = problem("a string is not closed: its closing quote is missing")
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

    /// Reads an escape and returns its scalar; nil for a line continuation.
    private mutating func escape() throws(JSON5Error) -> Unicode.Scalar? {
        let start = problem("this is not an escape: write \\\\ for a backslash")
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
        _ count: Int, _ failure: JSON5Error
    ) throws(JSON5Error) -> UInt32 {
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
