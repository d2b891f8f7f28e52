import BroadsideSupport

/// Parsing of texts that represent numbers and booleans.
enum TypedValue {
    /// Parses a 64-bit integer: digits, optionally with a sign before them and `.0` after them.
    /// Programs write the `.0` if a column can have fractions. Surrounding blanks are ignored.
    static func integer(_ text: RawSpan) -> Int64? {
        let (blankEnd, end) = trimmed(text)
        var start = blankEnd
        guard start < end else { return nil }
        let first = text.byte(at: start)
        let isNegative = first == UInt8(ascii: "-")
        if isNegative || first == UInt8(ascii: "+") { start += 1 }
        guard start < end else { return nil }
        var value: Int64 = 0
        var hasDigits = false
        while start < end {
            let byte = text.byte(at: start)
            if byte == UInt8(ascii: ".") {
                return isZeroFraction(text, start + 1, end) && hasDigits ? value : nil
            }
            let digit = byte &- UInt8(ascii: "0")
            guard digit < 10 else { return nil }
            hasDigits = true
            let (product, overflow) = value.multipliedReportingOverflow(by: 10)
            let (sum, overflowToo) =
                isNegative
                ? product.subtractingReportingOverflow(Int64(digit))
                : product.addingReportingOverflow(Int64(digit))
            guard !overflow, !overflowToo else { return nil }
            value = sum
            start += 1
        }
        return value
    }

    /// Whether a range contains one or more zeros and nothing else.
    private static func isZeroFraction(_ text: RawSpan, _ start: Int, _ end: Int) -> Bool {
        for offset in start..<max(start, end) where text.byte(at: offset) != UInt8(ascii: "0") {
            return false
        }
        return start < end
    }

    /// Parses a boolean: `true` or `false` in any letter case, `t` or `f` as databases write them,
    /// or `1` or `0`.
    static func boolean(_ text: RawSpan) -> Bool? {
        let (start, end) = trimmed(text)
        if end - start == 1 {
            switch text.byte(at: start) {
            case UInt8(ascii: "1"), UInt8(ascii: "t"), UInt8(ascii: "T"): return true
            case UInt8(ascii: "0"), UInt8(ascii: "f"), UInt8(ascii: "F"): return false
            default: return nil
            }
        }
        if isWord(text, start, end, "true") { return true }
        if isWord(text, start, end, "false") { return false }
        return nil
    }

    /// Whether a text is one of Apple's interruption levels.
    static func isInterruptionLevel(_ text: RawSpan) -> Bool {
        // Each level has another length.
        switch text.byteCount {
        case 6: isText(text, "active")
        case 7: isText(text, "passive")
        case 8: isText(text, "critical")
        case 14: isText(text, "time-sensitive")
        default: false
        }
    }

    /// Returns a value in JSON syntax; nil if the text is not a value of the given kind.
    static func written(_ text: [UInt8], as kind: Placeholder.Kind) -> [UInt8]? {
        let bytes = text.rawSpan
        switch kind {
        case .text, .fit, .interruptionLevel: return text
        case .integer, .badge: return integer(bytes).map { Array("\($0)".utf8) }
        case .boolean: return boolean(bytes).map { Array("\($0)".utf8) }
        }
    }

    private static func trimmed(_ text: RawSpan) -> (start: Int, end: Int) {
        var start = 0
        var end = text.byteCount
        while start < end, text.byte(at: start) == UInt8(ascii: " ") { start += 1 }
        while end > start, text.byte(at: end - 1) == UInt8(ascii: " ") { end -= 1 }
        return (start, end)
    }

    private static func isText(_ text: RawSpan, _ expected: StaticString) -> Bool {
        guard text.byteCount == expected.utf8CodeUnitCount else { return false }
        for offset in 0..<text.byteCount {
            // SAFETY: the offset is below the number of bytes of the static string.
            if unsafe text.byte(at: offset) != expected.utf8Start[offset] { return false }
        }
        return true
    }

    private static func isWord(
        _ text: RawSpan, _ start: Int, _ end: Int, _ word: StaticString
    ) -> Bool {
        guard end - start == word.utf8CodeUnitCount else { return false }
        for offset in 0..<word.utf8CodeUnitCount {
            // SAFETY: the offset is inside the static string; `| 0x20` makes a letter lower case.
            if unsafe text.byte(at: start + offset) | 0x20 != word.utf8Start[offset] {
                return false
            }
        }
        return true
    }
}
