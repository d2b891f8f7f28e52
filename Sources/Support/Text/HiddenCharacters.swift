/// Characters that cannot be seen in a value: blanks outside ASCII, such as the no-break space that
/// spreadsheets and web forms write, and characters without a width, such as U+200B and a byte order
/// mark.
package enum HiddenCharacters {
    /// Returns the text without the hidden characters and ASCII blanks at both ends.
    @_lifetime(copy text)
    package static func trimmed(_ text: RawSpan) -> RawSpan {
        var (start, end) = (0, text.byteCount)
        while start < end {
            let length = count(in: text, at: start)
            guard length > 0 else { break }
            start += length
        }
        while end > start {
            let length = countBefore(end, in: text)
            guard length > 0 else { break }
            end -= length
        }
        return text.extracting(start..<end)
    }

    /// Returns whether a text has only hidden characters and ASCII blanks, or is empty.
    package static func areAll(of text: RawSpan) -> Bool {
        var offset = 0
        while offset < text.byteCount {
            let length = count(in: text, at: offset)
            guard length > 0 else { return false }
            offset += length
        }
        return true
    }

    /// Number of bytes of the hidden character, or ASCII blank, that ends before an offset; 0 if
    /// there is none.
    private static func countBefore(_ end: Int, in text: RawSpan) -> Int {
        for length in 1...3 where length <= end {
            if count(in: text, at: end - length) == length { return length }
        }
        return 0
    }

    /// Returns whether hidden characters may be at one end of a text.
    @inlinable
    package static func mayBeAtEnd(of text: RawSpan) -> Bool {
        text.byteCount > 1
            && (text.byte(at: 0) >= 0x80 || text.byte(at: text.byteCount - 1) >= 0x80)
    }

    /// Returns whether a text may contain hidden characters, or characters in another Unicode form
    /// than usual. Never true for ASCII.
    package static func mayBe(in text: RawSpan) -> Bool {
        for offset in 0..<text.byteCount where text.byte(at: offset) >= 0xc2 {
            guard count(in: text, at: offset) == 0 else { return true }
            guard offset + 1 < text.byteCount else { continue }
            let (first, second) = (text.byte(at: offset), text.byte(at: offset + 1))
            switch first {
            // Combining marks from U+0300, and letters of Hangul.
            case 0xcc, 0xcd: return true
            case 0xe1 where (0x84...0x87).contains(second): return true
            // Voiced marks of kana, U+3099 and U+309A.
            case 0xe3 where second == 0x82:
                let third = offset + 2 < text.byteCount ? text.byte(at: offset + 2) : 0
                if third == 0x99 || third == 0x9a { return true }
            // Variation selectors, and tags.
            case 0xef where second == 0xb8: return true
            case 0xf3 where second == 0xa0: return true
            default: break
            }
        }
        return false
    }

    /// Returns the text as a reader sees it: without characters that have no width, and with a
    /// blank in place of any other. Two such texts with different Unicode forms are equal.
    package static func visibleText(_ text: RawSpan) -> String {
        var visible = ""
        for scalar in String(decoding: [UInt8](text), as: UTF8.self).unicodeScalars {
            switch scalar.properties.generalCategory {
            case .format: break
            case .spaceSeparator: visible.unicodeScalars.append(" ")
            // A variation selector.
            case .nonspacingMark where (0xfe00...0xfe0f).contains(scalar.value): break
            default: visible.unicodeScalars.append(scalar)
            }
        }
        return visible
    }

    /// Returns a value for a message, with an escape for each hidden character, and for each
    /// accent that is a character of its own.
    package static func shown(_ value: String) -> String {
        var shown = ""
        for scalar in ForeignText.escapedName(value).unicodeScalars {
            if (0x300...0x36f).contains(scalar.value) {
                shown += "\\u{" + String(scalar.value, radix: 16) + "}"
            } else {
                shown.unicodeScalars.append(scalar)
            }
        }
        return shown
    }

    /// Number of bytes of the hidden character, or ASCII blank, at an offset; 0 if there is none.
    private static func count(in text: RawSpan, at offset: Int) -> Int {
        let first = text.byte(at: offset)
        if first <= 0x20 { return 1 }
        guard first >= 0xc2, offset + 1 < text.byteCount else { return 0 }
        let second = text.byte(at: offset + 1)
        switch (first, second) {
        // NEL, the no-break space and the soft hyphen; U+061C.
        case (0xc2, 0x85), (0xc2, 0xa0), (0xc2, 0xad), (0xd8, 0x9c): return 2
        default: break
        }
        guard offset + 2 < text.byteCount else { return 0 }
        let third = text.byte(at: offset + 2)
        switch (first, second) {
        // U+1680 and U+180E.
        case (0xe1, 0x9a): return third == 0x80 ? 3 : 0
        case (0xe1, 0xa0): return third == 0x8e ? 3 : 0
        // U+2000 to U+200F, U+2028 to U+202F, U+205F to U+206F.
        case (0xe2, 0x80): return third <= 0x8f || (0xa8...0xaf).contains(third) ? 3 : 0
        case (0xe2, 0x81): return (0x9f...0xaf).contains(third) ? 3 : 0
        // The ideographic space, and the byte order mark.
        case (0xe3, 0x80): return third == 0x80 ? 3 : 0
        case (0xef, 0xbb): return third == 0xbf ? 3 : 0
        default: return 0
        }
    }
}
