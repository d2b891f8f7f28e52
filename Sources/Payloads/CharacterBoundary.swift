import BroadsidePrimitives
import BroadsideSupport

/// Boundaries at which a text may be shortened: between extended grapheme clusters (Unicode
/// Standard Annex 29), so that no emoji sequence and no letter with accents is divided.
enum CharacterBoundary {
    /// Returns the last boundary at or before an offset; does not allocate.
    ///
    /// - Parameters:
    ///   - text: Well-formed UTF-8.
    ///   - end: Offset of the beginning of a scalar.
    static func last(in text: RawSpan, upTo end: Int) -> Int {
        precondition(end < text.byteCount, "a scalar begins there")
        var offset = end
        while offset > 0, !isBoundaryInASCII(text, before: offset) { offset -= 1 }
        var recognizer = Unicode._CharacterRecognizer()
        var boundary = offset
        while offset <= end {
            let (scalar, length) = scalar(text, at: offset)
            // The first scalar certainly begins a character.
            if recognizer.hasBreak(before: scalar) { boundary = offset }
            offset += length
        }
        assert(boundary <= end, "a boundary before the end was found")
        return boundary
    }

    /// Whether an offset is between two ASCII characters, except between carriage return and line
    /// feed.
    private static func isBoundaryInASCII(_ text: RawSpan, before offset: Int) -> Bool {
        let (before, behind) = (text.byte(at: offset - 1), text.byte(at: offset))
        return before < 0x80 && behind < 0x80 && !(before == 0x0d && behind == 0x0a)
    }

    /// Scalar at an offset, and its number of bytes.
    private static func scalar(_ text: RawSpan, at offset: Int) -> (Unicode.Scalar, Int) {
        guard let length = UTF8Scalar.count(in: text, at: offset) else {
            preconditionFailure("the text is UTF-8")
        }
        let first = UInt32(text.byte(at: offset))
        // In the first of two, three or four bytes, the value bits follow the length bits.
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
