internal import BroadsideSupport

/// A word, letter or number for true or false, such as `yes`, `T`, `0` or `1.0`. Letters are upper
/// or lower case. Programs write the `.0` if a column can have fractions or missing values.
struct BooleanSpelling: Sendable {
    /// Whether the text means true.
    let isTrue: Bool
    /// Length of the text and its first byte, with a letter in lower case.
    private let count: Int
    private let first: UInt8

    /// - Returns: nil if the text, without surrounding blanks, is not such a spelling.
    init?(_ text: RawSpan) {
        guard let isTrue = Self.meaning(text) else { return nil }
        self.isTrue = isTrue
        count = text.byteCount
        first = text.byte(at: 0) | 0x20
    }

    /// Whether the text is a word such as `yes`, not a letter or number.
    var isWord: Bool { count > 1 && !isNumber }

    /// Whether the text is `0`, `1`, `0.0` or `1.0`.
    var isNumber: Bool { first == UInt8(ascii: "0") || first == UInt8(ascii: "1") }

    private var isLetter: Bool { !isWord && !isNumber }

    /// Whether this text and a text of the same meaning in a condition are spellings of a boolean
    /// in any column.
    ///
    /// A letter such as `f` may be a code instead, as in a column with `f`, `m` and `n`. So a letter
    /// in the condition suffices only for words that begin with this letter, and a number suffices
    /// only for words and for its other form.
    func isCertain(for literal: BooleanSpelling) -> Bool {
        assert(isTrue == literal.isTrue, "both texts have the same meaning")
        return literal.isWord || (literal.isNumber ? !isLetter : first == literal.first)
    }

    private static func meaning(_ text: RawSpan) -> Bool? {
        switch text.byteCount {
        case 1:
            switch text.byte(at: 0) {
            case UInt8(ascii: "1"), UInt8(ascii: "t"), UInt8(ascii: "T"), UInt8(ascii: "y"),
                UInt8(ascii: "Y"):
                return true
            case UInt8(ascii: "0"), UInt8(ascii: "f"), UInt8(ascii: "F"), UInt8(ascii: "n"),
                UInt8(ascii: "N"):
                return false
            default: return nil
            }
        case 2: return isWord(text, "on") ? true : isWord(text, "no") ? false : nil
        case 3:
            if isWord(text, "yes") || isWord(text, "1.0") { return true }
            return isWord(text, "off") || isWord(text, "0.0") ? false : nil
        case 4: return isWord(text, "true") ? true : nil
        case 5: return isWord(text, "false") ? false : nil
        default: return nil
        }
    }

    /// Whether a text is a word in any letter case. The text is as long as the word.
    private static func isWord(_ text: RawSpan, _ word: StaticString) -> Bool {
        assert(text.byteCount == word.utf8CodeUnitCount, "the caller compares the lengths")
        for offset in 0..<text.byteCount {
            // SAFETY: the offset is inside the static string; `| 0x20` makes a letter lower case.
            if unsafe text.byte(at: offset) | 0x20 != word.utf8Start[offset] { return false }
        }
        return true
    }
}
