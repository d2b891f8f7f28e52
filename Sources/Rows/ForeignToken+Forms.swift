extension ForeignToken {
    /// Typographic quotes that people or text editors put around a token.
    private static let textQuotes = ["“", "”", "„", "‘", "’", "«", "»"].map { Array($0.utf8) }

    static func isQuoted(_ word: [UInt8]) -> Bool {
        if let first = word.first, Array("\"'`".utf8).contains(first), word.count > 2,
            word.last == first
        {
            return isToken(word[1..<word.count - 1])
        }
        guard let opening = textQuotes.first(where: { word.starts(with: $0) }),
            let closing = textQuotes.first(where: { word.suffix($0.count).elementsEqual($0) }),
            word.count > opening.count + closing.count
        else { return false }
        return isLongToken(word[opening.count..<word.count - closing.count])
    }

    static func isPrefixed(_ word: [UInt8]) -> Bool {
        word.count > 2 && word[0] == UInt8(ascii: "0") && word[1] | 0x20 == UInt8(ascii: "x")
            && isToken(word[2...])
    }

    /// Whether a word is a device token after `\x` or `\\x`. `COPY` of PostgreSQL doubles the
    /// backslash.
    static func isBackslashed(_ word: [UInt8]) -> Bool {
        let rest = word.drop { $0 == UInt8(ascii: "\\") }
        return rest.count < word.count && rest.first == UInt8(ascii: "x")
            && isLongToken(rest.dropFirst())
    }

    /// The contents of `b'…'` or `b"…"`.
    private static func insideOfBytes(_ word: [UInt8]) -> ArraySlice<UInt8>? {
        guard word.count > 3, word[0] == UInt8(ascii: "b"),
            Array("'\"".utf8).contains(word[1]), word[1] == word[word.count - 1]
        else { return nil }
        return word[2..<word.count - 1]
    }

    static func isBytesLiteral(_ word: [UInt8]) -> Bool {
        insideOfBytes(word).map(isLongToken) ?? false
    }

    static func isEscapedBytes(_ word: [UInt8]) -> Bool {
        insideOfBytes(word).map { inside in
            zip(inside, inside.dropFirst()).contains {
                $0 == UInt8(ascii: "\\") && $1 == UInt8(ascii: "x")
            }
        } ?? false
    }

    /// Whether a text begins like the description of an NSData, which is not JSON.
    static func startsLikeDescription(_ text: some Collection<UInt8>) -> Bool {
        text.starts(with: "{length =".utf8) || text.starts(with: "{ length =".utf8)
    }

    /// The digits of `{length = 8, bytes = 0xc60f415d a240c4f4}`; nil for any other text.
    private static func described(_ word: [UInt8]) -> ArraySlice<UInt8>? {
        guard startsLikeDescription(word), word.last == UInt8(ascii: "}"),
            let mark = word.lastIndex(of: UInt8(ascii: "x"))
        else { return nil }
        return word[(mark + 1)..<word.count - 1]
    }

    static func isDescription(_ word: [UInt8]) -> Bool {
        described(word).map { isToken($0.filter { $0 != 0x20 }[...]) } ?? false
    }

    static func isShortenedDescription(_ word: [UInt8]) -> Bool {
        let dot = UInt8(ascii: ".")
        return described(word).map { digits in
            digits.contains(dot)
                && digits.allSatisfy { isDigit($0) || $0 == 0x20 || $0 == dot }
        } ?? false
    }

    static func isPercentEncoded(_ word: [UInt8]) -> Bool {
        var digits: [UInt8] = []
        var offset = 0
        var escapes = 0
        while offset < word.count {
            switch word[offset] {
            case UInt8(ascii: "%"):
                let code = String(decoding: word[offset...].prefix(3), as: UTF8.self).uppercased()
                guard ["%3C", "%3E", "%20", "%22", "%27"].contains(code) else { return false }
                offset += 3
                escapes += 1
                continue
            case UInt8(ascii: "+"): break
            case let byte: digits.append(byte)
            }
            offset += 1
        }
        return escapes > 0 && isLongToken(digits)
    }

    static func isUUID(_ word: [UInt8]) -> Bool {
        let hyphens: Set = [8, 13, 18, 23]
        return word.count == 36
            && word.enumerated().allSatisfy { place, byte in
                hyphens.contains(place) ? byte == UInt8(ascii: "-") : isDigit(byte)
            }
    }

    /// Number of device tokens that make up a line; 0 if it contains anything else.
    public static func countTokens(_ line: some Collection<UInt8>) -> Int {
        let words = Array(line).split { Array(",;| \t\r\n\"'".utf8).contains($0) }
        return words.allSatisfy { isLongToken($0) } ? words.count : 0
    }

    /// Maximum number of columns of a table without a header. A line with more tokens is not a row.
    private static let columnLimit = 8

    /// Whether the first line of a list is a series of device tokens instead of one row with
    /// columns. This is the case if the line has too many tokens for a row, or if the line has
    /// several tokens and is the only line.
    ///
    /// - Parameters:
    ///   - firstBytes: Beginning of the decoded list.
    ///   - isCut: Whether more bytes follow.
    public static func areOnFirstLine(_ firstBytes: [UInt8], isCut: Bool) -> Bool {
        var text = firstBytes[...]
        if text.starts(with: ListFormat.byteOrderMark) { text = text.dropFirst(3) }
        text = text.drop { $0 <= 0x20 }
        var line = text.prefix { $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") }
        let isAlone = text[line.endIndex...].allSatisfy { $0 <= 0x20 }
        if isCut, line.endIndex == text.endIndex {
            // The last token may be cut off.
            line = line[..<(line.lastIndex { !isDigit($0) } ?? line.startIndex)]
        }
        let tokens = countTokens(line)
        return tokens > columnLimit || tokens > 1 && isAlone
    }

    static func isSeveral(_ word: [UInt8]) -> Bool { countTokens(withoutCutToken(word)) > 1 }

    /// Whether a text is an array of one or more device tokens.
    static func isArray(_ word: [UInt8]) -> Bool {
        let isCut = word.count >= excerptByteCount
        for (opening, closing) in ["{}", "[]"].map({ ($0.utf8.first, $0.utf8.last) })
        where word.first == opening && (isCut || word.last == closing) {
            let inside = withoutCutToken(word).dropFirst()
            return countTokens(inside.last == closing ? inside.dropLast() : inside) > 0
        }
        return false
    }

    /// A text without its last token if it is an excerpt, in which this token may be cut off.
    private static func withoutCutToken(_ word: [UInt8]) -> ArraySlice<UInt8> {
        word.count >= excerptByteCount
            ? word[...(word.lastIndex { !isDigit($0) } ?? 0)] : word[...]
    }

    /// Kind of the description of an NSData in a row; nil if there is none. Without quotes, its
    /// comma divides it into two fields.
    public static func description(in row: [UInt8]) -> ForeignToken? {
        for start in row.indices where row[start] == UInt8(ascii: "{") {
            guard startsLikeDescription(row[start...]),
                let end = row[start...].firstIndex(of: UInt8(ascii: "}"))
            else { continue }
            if let kind = detect(row[start...end]) { return kind }
        }
        return nil
    }

    /// Whether a token is split into eight or more groups of digits. A UUID has five groups.
    static func isGrouped(_ word: [UInt8], by separator: Unicode.Scalar) -> Bool {
        let groups = word.split(
            separator: UInt8(ascii: separator), omittingEmptySubsequences: false)
        return groups.count >= 8 && groups.allSatisfy { (1...16).contains($0.count) }
            && isLongToken(groups.joined().map { $0 })
    }

    /// Whether a word is a name, a colon and a device token. A registration token of Firebase has
    /// other letters than hexadecimal digits after its colon.
    static func isLabeled(_ word: [UInt8]) -> Bool {
        guard let colon = word.firstIndex(of: UInt8(ascii: ":")), colon > 0 else { return false }
        return word[..<colon].allSatisfy { isLetterOrDigit($0) || Array("-_".utf8).contains($0) }
            && isLongToken(word[(colon + 1)...])
    }

    /// Whether a text is an instance name, a colon, and far more characters than a device token
    /// has.
    static func isFirebase(_ word: [UInt8]) -> Bool {
        guard word.count >= 100, let colon = word.firstIndex(of: UInt8(ascii: ":")), colon > 0
        else {
            return false
        }
        return word.allSatisfy { byte in
            isLetterOrDigit(byte) || Array("-_:".utf8).contains(byte)
        }
    }

    /// Whether a text has 43 base64 digits: 32 bytes and two surplus bits.
    static func isBase64(_ word: [UInt8]) -> Bool {
        isAnyBase64(word) && word.prefix { $0 != UInt8(ascii: "=") }.count == 43
    }

    static func isOtherBase64(_ word: [UInt8]) -> Bool { isAnyBase64(word) }

    private static func isAnyBase64(_ word: [UInt8]) -> Bool {
        let digits = word.prefix { $0 != UInt8(ascii: "=") }
        guard digits.count >= 40, word.count - digits.count <= 2,
            word.count == digits.count || word.count.isMultiple(of: 4), digits.count % 4 != 1,
            word[digits.count...].allSatisfy({ $0 == UInt8(ascii: "=") })
        else { return false }
        return digits.allSatisfy { isLetterOrDigit($0) || Array("+/-_".utf8).contains($0) }
            // Digits and hyphens alone are not base64.
            && digits.contains { isLetterOrDigit($0) && !isDigit($0) }
    }

    static func isAmongInvisible(_ word: [UInt8]) -> Bool {
        let digits = word.filter(isDigit)
        guard digits.count < word.count, isLongToken(digits) else { return false }
        return String(decoding: word, as: UTF8.self).unicodeScalars.allSatisfy { scalar in
            if scalar.isASCII { return isDigit(UInt8(ascii: scalar)) }
            switch scalar.properties.generalCategory {
            case .spaceSeparator, .lineSeparator, .paragraphSeparator, .format: return true
            default: return false
            }
        }
    }

    static func isSpreadsheetText(_ word: [UInt8]) -> Bool {
        if word.starts(with: "=\"".utf8), word.last == UInt8(ascii: "\"") {
            return isLongToken(word.dropFirst(2).dropLast())
        }
        return word.first == UInt8(ascii: "'") && isLongToken(word.dropFirst())
    }

    /// Whether a text is a decimal number with a positive exponent. The exponent must have a sign,
    /// so that no device token matches.
    static func isRoundedNumber(_ word: [UInt8]) -> Bool {
        guard let plus = word.firstIndex(of: UInt8(ascii: "+")), plus > 1,
            word[plus - 1] | 0x20 == UInt8(ascii: "e")
        else { return false }
        let isDecimal: (UInt8) -> Bool = { (0x30...0x39).contains($0) }
        let exponent = word[(plus + 1)...]
        let parts = word[..<(plus - 1)].split(
            omittingEmptySubsequences: false
        ) { Array(".,".utf8).contains($0) }
        return (1...3).contains(exponent.count) && exponent.allSatisfy(isDecimal)
            && parts.count <= 2 && parts.allSatisfy { !$0.isEmpty && $0.allSatisfy(isDecimal) }
    }

    static func isOptional(_ word: [UInt8]) -> Bool {
        let (start, end) = ("Optional(".utf8, UInt8(ascii: ")"))
        guard word.starts(with: start), word.last == end else { return false }
        let inside = Array(word.dropFirst(start.count).dropLast())
        return isLongToken(inside) || isQuoted(inside)
    }

    /// Whether a text is a line of a table that is drawn with characters. The line is either a row
    /// with a device token in a column, or a separator of rows.
    static func isTableRow(_ word: [UInt8]) -> Bool {
        let bar = UInt8(ascii: "|")
        if word.allSatisfy({ Array("-+|".utf8).contains($0) }) {
            return word.contains { $0 != UInt8(ascii: "-") } && word.contains(UInt8(ascii: "-"))
        }
        return word.contains(bar)
            && word.split(separator: bar).contains { field in
                isLongToken(field.filter { $0 != 0x20 })
            }
    }

    // MARK: Commands

    /// Program that converts lines of this kind to device tokens; nil if there is none.
    ///
    /// The program must leave all other lines unchanged, so that no other text becomes a device
    /// token.
    var filter: String? {
        let digits = "[[:xdigit:]]{\(Self.longDigitCount),}"
        switch self {
        case .base64:
            // Surplus padding does no harm.
            return #"python3 -c 'import base64,re; "#
                + #"[print(base64.b64decode(t.translate({45:43,95:47})+"==").hex() "#
                + #"if re.fullmatch("[A-Za-z0-9+/_-]{43}=?",t) else t) "#
                + #"for t in map(str.strip,open(0,errors="replace"))]'"#
        case .quoted, .spreadsheetText:
            return #"LC_ALL=C sed -E "s/^[^[:alnum:]]*(\#(digits))[^[:alnum:]]*\$/\\1/""#
        case .prefixed:
            return "sed -E 's/^[[:space:]]*0[xX](\(digits))[[:space:]]*$/\\1/'"
        case .backslashed:
            return #"sed -E 's/^[[:space:]]*\\+x(\#(digits))[[:space:]]*$/\1/'"#
        case .labeled:
            return "sed -E 's/^[[:space:]]*[[:alnum:]_-]+:(\(digits))[[:space:]]*$/\\1/'"
        case .hyphenated: return Self.withoutSeparators("-")
        case .spaced: return Self.withoutSeparators("[ :]")
        case .bytesLiteral:
            return #"sed -E "s/^[[:space:]]*b[\"'](\#(digits))[\"'][[:space:]]*\$/\\1/""#
        case .escapedBytes:
            return #"python3 -c 'import ast; [print(ast.literal_eval(t).hex() "#
                + #"if t[:2] in ("b\x27","b\x22") else t) "#
                + #"for t in map(str.strip,open(0,errors="replace"))]'"#
        case .dataDescription:
            return "sed -E '/^[[:space:]]*\\{ *length *=.*bytes *= *0x[[:xdigit:] ]+\\}/"
                + "{s/.*0x//;s/[ }]//g;}'"
        case .percentEncoded:
            return "sed -E '/^[[:space:]]*[[:xdigit:]%+]{\(Self.longDigitCount),}[[:space:]]*$/"
                + "s/%(3[CEce]|2[027])|\\+//g'"
        case .several: return ListCommand.onePerLine
        case .invisible:
            return "LC_ALL=C sed -E '/^[[:blank:]]*([[:xdigit:]]|[^[:print:][:cntrl:]])"
                + "{\(Self.longDigitCount),}[[:space:]]*$/s/[^[:xdigit:]]//g'"
        case .optional:
            return
                #"sed -E "s/^[[:space:]]*Optional\([\"']?(\#(digits))[\"']?\)[[:space:]]*\$/\\1/""#
        case .array, .otherBase64, .firebase, .expo, .shortenedDescription, .uuid, .roundedNumber,
            .tableRow:
            return nil
        }
    }

    private static func withoutSeparators(_ separator: String) -> String {
        let group = "[[:xdigit:]]{1,16}"
        return "sed -E '/^[[:space:]]*\(group)(\(separator)\(group)){7,}[[:space:]]*$/"
            + "s/\(separator)//g'"
    }
}
