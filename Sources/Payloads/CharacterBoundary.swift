import BroadsidePrimitives
import BroadsideSupport

/// Where a text may be cut: between characters as people see them, which are extended grapheme clusters
/// (Unicode Standard Annex 29). No emoji sequence and no letter with its accents is divided.
enum CharacterBoundary {
    /// The last boundary at an offset or before it; without allocation.
    ///
    /// - Parameters:
    ///   - text: well-formed UTF-8.
    ///   - end: Where one of its scalars begins.
    static func last(in text: RawSpan, upTo end: Int) -> Int {
        precondition(end < text.byteCount, "a scalar begins there")
        var offset = end
        while offset > 0, !isBoundaryInASCII(text, before: offset) { offset -= 1 }
        var recognizer = Unicode._CharacterRecognizer()
        var boundary = offset
        while offset <= end {
            let (scalar, length) = scalar(text, at: offset)
            // The first one begins a character for sure.
            if recognizer.hasBreak(before: scalar) { boundary = offset }
            offset += length
        }
        assert(boundary <= end, "a boundary before the end was found")
        return boundary
    }

    /// Between two characters of ASCII is a boundary, but not between carriage return and line feed.
    private static func isBoundaryInASCII(_ text: RawSpan, before offset: Int) -> Bool {
        let (before, behind) = (text.byte(at: offset - 1), text.byte(at: offset))
        return before < 0x80 && behind < 0x80 && !(before == 0x0d && behind == 0x0a)
    }

    /// The scalar at an offset, and its bytes.
    private static func scalar(_ text: RawSpan, at offset: Int) -> (Unicode.Scalar, Int) {
        guard let length = UTF8Scalar.count(in: text, at: offset) else {
            preconditionFailure("the text is UTF-8")
        }
        let first = UInt32(text.byte(at: offset))
        // Behind the marks of a first byte of two, three or four.
        var value = length == 1 ? first : first & (0x7f >> UInt32(length))
        for index in offset + 1..<offset + length {
            value = value << 6 | UInt32(text.byte(at: index) & 0x3f)
        }
        guard let scalar = Unicode.Scalar(value) else {
            preconditionFailure("well-formed UTF-8 has scalars only")
        }
        return (scalar, length)
    }
}
