import APNs
import Support

extension PayloadLint {
    // MARK: Escapes in texts

    /// What is wrong with escapes: halves of characters, texts that were escaped twice, and characters that
    /// are longer than they need to be.
    mutating func checkText(_ payload: RawSpan) {
        var tokenizer = JSONTokenizer()
        var needless = NeedlessEscapes()
        while let token = try? tokenizer.next(in: payload) {
            guard token.kind == .string || token.kind == .key, token.hasEscapes else { continue }
            check(token, payload, &needless)
        }
        guard let first = needless.first else { return }
        let escape = String(
            decoding: (first..<first + 6).map { payload.byte(at: $0) }, as: UTF8.self)
        warn(
            first,
            "escapes such as \(escape) make the payload \(needless.byteCount) bytes larger than the "
                + "characters themselves are in UTF-8: write those")
    }

    /// Escapes in place of characters that JSON takes as they are.
    private struct NeedlessEscapes {
        var first: Int?
        /// The bytes that they are longer.
        var byteCount = 0

        mutating func add(at offset: Int, byteCount: Int) {
            first = first ?? offset
            self.byteCount += byteCount
        }
    }

    private mutating func check(
        _ token: JSONTokenizer.Token, _ payload: RawSpan, _ needless: inout NeedlessEscapes
    ) {
        let isShown = document.members.contains {
            $0.valueOffset == token.start - 1 && $0.path.first == "aps"
        }
        var isTold = false
        var offset = token.start
        let end = token.range.upperBound
        while offset < end {
            guard payload.byte(at: offset) == UInt8(ascii: "\\") else {
                offset += 1
                continue
            }
            // The tokenizer has seen that each escape is whole.
            switch payload.byte(at: offset + 1) {
            case UInt8(ascii: "u"):
                offset += checkUnit(at: offset, end: end, payload, &needless)
            case UInt8(ascii: "\\"):
                // Two backslashes in the text are meant.
                if offset + 3 < end, payload.byte(at: offset + 2) == UInt8(ascii: "\\"),
                    payload.byte(at: offset + 3) == UInt8(ascii: "\\")
                {
                    offset += 4
                    continue
                }
                if !isTold, let message = Self.doubled(payload, offset + 2, end, isShown: isShown) {
                    warn(offset, message)
                    isTold = true
                }
                offset += 2
            default: offset += 2
            }
        }
    }

    /// Looks at `\uXXXX`, or two of them that are one character.
    ///
    /// - Returns: The bytes that belong together.
    private mutating func checkUnit(
        at offset: Int, end: Int, _ payload: RawSpan, _ needless: inout NeedlessEscapes
    ) -> Int {
        guard let unit = Self.unit(payload, offset, end) else { return 2 }
        if unit >= 0xd800, unit < 0xdc00, let low = Self.unit(payload, offset + 6, end),
            low >= 0xdc00, low < 0xe000
        {
            needless.add(at: offset, byteCount: 12 - 4)
            return 12
        }
        guard unit < 0xd800 || unit > 0xdfff, let scalar = Unicode.Scalar(unit) else {
            let text = String(
                decoding: (offset..<offset + 6).map { payload.byte(at: $0) }, as: UTF8.self)
            error(
                offset,
                "\(text) alone is half of a character: write both halves (a surrogate pair), or the "
                    + "character itself in UTF-8")
            return 6
        }
        // What has to be escaped, or can't be seen, is written so on purpose.
        if scalar != "\"", scalar != "\\", !ForeignText.isInvisible(scalar) {
            needless.add(at: offset, byteCount: 6 - UTF8.width(scalar))
        }
        return 6
    }

    /// What stands in `\uXXXX`; nil if there is no such escape at the offset.
    private static func unit(_ payload: RawSpan, _ offset: Int, _ end: Int) -> UInt32? {
        guard offset + 6 <= end, payload.byte(at: offset) == UInt8(ascii: "\\"),
            payload.byte(at: offset + 1) == UInt8(ascii: "u")
        else { return nil }
        return digits(payload, offset + 2, end)
    }

    /// Four hexadecimal digits.
    private static func digits(_ payload: RawSpan, _ offset: Int, _ end: Int) -> UInt32? {
        guard offset + 4 <= end else { return nil }
        var value: UInt32 = 0
        for place in offset..<offset + 4 {
            guard let digit = Character(Unicode.Scalar(payload.byte(at: place))).hexDigitValue
            else {
                return nil
            }
            value = value << 4 | UInt32(digit)
        }
        return value
    }

    /// What the text behind an escaped backslash shows of an escape that was escaped once more; nil: nothing.
    ///
    /// - Parameter isShown: Whether devices show the text. A path elsewhere may have such letters.
    private static func doubled(
        _ payload: RawSpan, _ offset: Int, _ end: Int, isShown: Bool
    ) -> String? {
        guard offset < end else { return nil }
        let letter = payload.byte(at: offset)
        if letter == UInt8(ascii: "u"), digits(payload, offset + 1, end) != nil {
            let code = String(
                decoding: (offset..<offset + 5).map { payload.byte(at: $0) }, as: UTF8.self)
            return
                "\\\\\(code) shows \\\(code) and not its character: the text was escaped twice, write "
                + "one backslash or the character itself"
        }
        guard isShown, letter == UInt8(ascii: "n") || letter == UInt8(ascii: "r") else {
            return nil
        }
        let name = letter == UInt8(ascii: "n") ? "n" : "r"
        return "\\\\\(name) shows a backslash and the letter \(name), no line break: the text was "
            + "escaped twice, write one backslash"
    }
}
