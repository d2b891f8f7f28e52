import BroadsideAPNs
import BroadsidePrimitives
import BroadsideSupport

extension PayloadLint {
    /// Checks escapes for three problems: unpaired surrogates, texts that were escaped twice, and
    /// escapes that take more bytes than the character itself.
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
            "escapes such as \(escape) make the payload \(needless.byteCount) bytes larger than "
                + "UTF-8 does: write the characters themselves")
    }

    /// Warns about the first U+FFFD, verbatim or as an escape. A program writes it in place of a
    /// character that it could not read.
    mutating func checkLostCharacters(_ payload: RawSpan) {
        let character = Array("\u{fffd}".utf8)
        var tokenizer = JSONTokenizer()
        while let token = try? tokenizer.next(in: payload) {
            guard token.kind == .string || token.kind == .key else { continue }
            let end = token.range.upperBound
            var offset = token.start
            while offset < end {
                let isVerbatim =
                    payload.byte(at: offset) == character[0] && offset + character.count <= end
                    && character.indices.allSatisfy {
                        payload.byte(at: offset + $0) == character[$0]
                    }
                if isVerbatim || Self.unit(payload, offset, end) == 0xfffd {
                    return warn(
                        offset,
                        "U+FFFD (\u{fffd}) is in place of a character that a program could not "
                            + "read: write the character")
                }
                offset += payload.byte(at: offset) == UInt8(ascii: "\\") ? 2 : 1
            }
        }
    }

    /// Checks that an alert is not an object that was encoded as a text. If a row's value makes it
    /// so, other rows may be right, so this is a warning.
    mutating func checkEncodedAlert(_ payload: RawSpan, isFilledIn: Bool) {
        // The text of a member lacks placeholders, and an object may contain some.
        guard let alert = document.member(["aps"], "alert"), alert.kind == .string,
            Self.isEncodedAlert(JSONText.decoded(payload, stringAt: alert.valueOffset))
        else { return }
        let message =
            "'alert' is a text that contains a JSON object, so devices show its braces and keys: "
            + "write the object itself, without quotes around it and backslashes in it"
        if isFilledIn {
            warn(alert.valueOffset, message)
        } else {
            error(alert.valueOffset, message)
        }
    }

    /// Whether a text is a JSON object with the keys of an alert.
    private static func isEncodedAlert(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        guard text.contains("{"), PayloadCheck.syntaxProblem(bytes.rawSpan) == nil,
            let object = try? PayloadDocument(bytes.rawSpan)
        else { return false }
        return (textKeys + ["loc-key", "title-loc-key", "aps"])
            .contains { object.member([], $0) != nil }
    }

    /// The escapes of characters that need none in JSON.
    private struct NeedlessEscapes {
        var first: Int?
        /// Number of bytes by which the escapes are longer than their characters in UTF-8.
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
        var isReported = false
        var offset = token.start
        let end = token.range.upperBound
        while offset < end {
            guard payload.byte(at: offset) == UInt8(ascii: "\\") else {
                offset += 1
                continue
            }
            // The tokenizer has checked that each escape is complete.
            switch payload.byte(at: offset + 1) {
            case UInt8(ascii: "u"):
                offset += checkUnit(at: offset, end: end, payload, &needless)
            case UInt8(ascii: "\\"):
                // Two escaped backslashes in a row are intended.
                if offset + 3 < end, payload.byte(at: offset + 2) == UInt8(ascii: "\\"),
                    payload.byte(at: offset + 3) == UInt8(ascii: "\\")
                {
                    offset += 4
                    continue
                }
                if !isReported,
                    let message = Self.doubled(payload, offset + 2, end, isShown: isShown)
                {
                    warn(offset, message)
                    isReported = true
                }
                offset += 2
            default: offset += 2
            }
        }
    }

    /// Checks an escape `\uXXXX`, or two that are a surrogate pair.
    ///
    /// - Returns: Number of bytes of the escape or pair.
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
        // Characters that must be escaped or are invisible are escaped on purpose.
        if scalar != "\"", scalar != "\\", scalar != "\u{fffd}", !ForeignText.isInvisible(scalar) {
            needless.add(at: offset, byteCount: 6 - UTF8.width(scalar))
        }
        return 6
    }

    /// Value of `\uXXXX`; nil if there is no such escape at the offset.
    private static func unit(_ payload: RawSpan, _ offset: Int, _ end: Int) -> UInt32? {
        guard offset + 6 <= end, payload.byte(at: offset) == UInt8(ascii: "\\"),
            payload.byte(at: offset + 1) == UInt8(ascii: "u")
        else { return nil }
        return digits(payload, offset + 2, end)
    }

    /// Value of four hexadecimal digits; nil if there are fewer.
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

    /// Message if a text was escaped twice, as in `\\n`; otherwise nil. `offset` is the offset of
    /// the byte after an escaped backslash.
    ///
    /// - Parameter isShown: Whether devices show the text. Other texts, such as paths, may contain
    ///   the same letters on purpose.
    private static func doubled(
        _ payload: RawSpan, _ offset: Int, _ end: Int, isShown: Bool
    ) -> String? {
        guard offset < end else { return nil }
        let letter = payload.byte(at: offset)
        if letter == UInt8(ascii: "u"), digits(payload, offset + 1, end) != nil {
            let code = String(
                decoding: (offset..<offset + 5).map { payload.byte(at: $0) }, as: UTF8.self)
            return
                "\\\\\(code) shows \\\(code) and not its character: the text was escaped twice; write "
                + "one backslash or the character itself"
        }
        guard isShown, letter == UInt8(ascii: "n") || letter == UInt8(ascii: "r") else {
            return nil
        }
        let name = letter == UInt8(ascii: "n") ? "n" : "r"
        return "\\\\\(name) shows a backslash and the letter \(name), no line break: the text was "
            + "escaped twice; write one backslash"
    }
}
