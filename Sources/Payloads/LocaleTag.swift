internal import BroadsideSupport

/// Language tag (BCP 47), reduced to the subtags that choose a payload: language, script and
/// region, regardless of case and of hyphens or underscores as separators.
struct LocaleTag: Equatable, Sendable {
    /// Up to four letters or digits, in lower case, the first one in the lowest byte; 0: none.
    typealias Subtag = UInt32

    var language: Subtag
    var script: Subtag = 0
    var region: Subtag = 0

    /// Parses a value; nil if it is not a tag.
    ///
    /// - Parameters:
    ///   - text: Text such as `pt-BR`, `zh_Hant_TW`, `de_DE.UTF-8`,
    ///     `zh_TW_#Hant`, `pt-BR,pt;q=0.9`; surrounding blanks, variants
    ///     and extensions are ignored.
    ///   - namesCountries: Whether two upper-case letters alone may be a country. If so, they are
    ///     not replaced, even if they are a deprecated language code.
    ///   - isWhole: Whether to reject a text with more than the three subtags.
    init?(_ text: RawSpan, namesCountries: Bool = false, isWhole: Bool = false) {
        var tag = LocaleTag(language: 0)
        var (start, end) = (0, text.byteCount)
        while start < end, text.byte(at: start) <= 0x20 { start += 1 }
        while end > start, text.byte(at: end - 1) <= 0x20 { end -= 1 }
        let first = start
        var hasRest = false
        while start < end {
            var subtag: Subtag = 0
            var count = 0
            var hasDigits = false
            var hasLetters = false
            var separator: UInt8 = 0
            var isMarked = false
            while start < end {
                let byte = text.byte(at: start)
                start += 1
                if byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_") || Self.isEnd(byte) {
                    separator = byte
                    break
                }
                // Java writes the script last: `zh_TW_#Hant`.
                if byte == UInt8(ascii: "#"), count == 0, !isMarked, tag.language != 0 {
                    isMarked = true
                    continue
                }
                let letter = byte | 0x20
                let isLetter = letter >= UInt8(ascii: "a") && letter <= UInt8(ascii: "z")
                let isDigit = byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9")
                guard isLetter || isDigit else { return nil }
                hasLetters = hasLetters || isLetter
                hasDigits = hasDigits || isDigit
                if count < 4 { subtag |= UInt32(isLetter ? letter : byte) << UInt32(8 * count) }
                count += 1
            }
            if tag.language == 0 {
                guard count == 2 || count == 3, !hasDigits else { return nil }
                tag.language = subtag
            } else if count == 4, !hasDigits, tag.script == 0, tag.region == 0 || isMarked {
                tag.script = subtag
            } else if count == 0, !isMarked, tag.region == 0, separator == UInt8(ascii: "_") {
                // Java leaves the region empty: `zh__#Hans`.
            } else if tag.region == 0,
                count == 2 && !hasDigits || count == 3 && !hasLetters
            {
                tag.region = subtag
            } else {
                hasRest = hasRest || count > 0
                break
            }
            if Self.isEnd(separator) {
                hasRest = true
                break
            }
        }
        guard tag.language != 0, !(isWhole && hasRest) else { return nil }
        let isCountry =
            namesCountries && end - first == 2 && text.byte(at: first) < 0x60
            && text.byte(at: first + 1) < 0x60
        self = isCountry ? tag : tag.canonical
    }

    /// Whether a tag ends at a byte. `.` and `@` are before an encoding and a currency (POSIX), `,`
    /// and `;` before other languages and a weight (`Accept-Language`).
    private static func isEnd(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: ".") || byte == UInt8(ascii: "@") || byte == UInt8(ascii: ",")
            || byte == UInt8(ascii: ";")
    }

    /// Parses a well-formed tag of the tables.
    init(_ text: String) {
        let parts = text.split(separator: "-").map { part in
            part.utf8.enumerated().reduce(Subtag(0)) { subtag, byte in
                subtag | UInt32(byte.element | 0x20) << UInt32(8 * byte.offset)
            }
        }
        self.init(
            language: parts[0], script: parts.count > 1 ? parts[1] : 0,
            region: parts.count > 2 ? parts[2] : 0)
    }

    private init(language: Subtag, script: Subtag = 0, region: Subtag = 0) {
        self.language = language
        self.script = script
        self.region = region
    }

    /// The tag without its region.
    var withoutRegion: LocaleTag { LocaleTag(language: language, script: script) }
}
