import BroadsideAPNs
import BroadsidePrimitives
import BroadsideRows
import BroadsideSupport

/// The values of a row, appended to its pieces.
extension PayloadRenderer {
    /// Appends the value of a step's field, as JSON or unchanged.
    mutating func append(
        _ step: Step, isJSON: Bool, _ reader: borrowing RowReader
    ) -> Reason? {
        let field = reader.field(Int(step.field))
        if let fallback = step.fallback, Self.isBlank(field, reader) {
            if step.kind == .fit { return nil }
            return appendConstant(fallback) ? nil : .payloadTooLarge
        }
        if field.form == .missing { return .missingColumn }
        guard field.isText else { return .badValue }
        let text = reader.text(field)
        switch step.kind {
        case .text: return isJSON ? appendEscaped(text) : appendPlain(text)
        // Appended later, when the length of the other values is known.
        case .fit: return nil
        case .integer:
            guard let value = TypedValue.integer(text) else { return .badValue }
            return append(value)
        case .badge:
            guard let value = TypedValue.integer(text), value >= 0 else { return .badValue }
            return append(value)
        case .interruptionLevel:
            return TypedValue.isInterruptionLevel(text) ? appendPlain(text) : .badValue
        case .boolean:
            guard let value = TypedValue.boolean(text) else { return .badValue }
            return append(value ? "true" : "false")
        }
    }

    /// Whether a field is missing, empty or blank. In a table, an empty field represents a missing
    /// value, and some databases fill such a field with blanks. Characters that cannot be seen count
    /// as blanks.
    static func isBlank(_ field: RowReader.Field, _ reader: borrowing RowReader) -> Bool {
        if field.form == .missing { return true }
        guard field.isText else { return false }
        return HiddenCharacters.areAll(of: reader.text(field))
    }

    mutating func appendConstant(_ range: Range<Int32>) -> Bool {
        guard count + range.count <= room else { return false }
        for offset in range { append(bytes[Int(offset)]) }
        return true
    }

    @inline(__always)
    mutating func append(_ byte: UInt8) {
        pieces[count] = byte
        count += 1
    }

    private mutating func append(_ text: StaticString) -> Reason? {
        guard count + text.utf8CodeUnitCount <= room else { return .payloadTooLarge }
        // SAFETY: the offset is below the number of bytes of the static string.
        for offset in 0..<text.utf8CodeUnitCount { append(unsafe text.utf8Start[offset]) }
        return nil
    }

    private mutating func append(_ value: Int64) -> Reason? {
        guard count + 20 <= room else { return .payloadTooLarge }
        if value < 0 { append(UInt8(ascii: "-")) }
        var divisor: UInt64 = 1
        while value.magnitude / divisor >= 10 { divisor *= 10 }
        while divisor > 0 {
            append(UInt8(ascii: "0") + UInt8(value.magnitude / divisor % 10))
            divisor /= 10
        }
        assert(count <= room, "a number has 20 characters at most")
        return nil
    }

    /// Appends the text of a header: bytes unchanged, if they are UTF-8.
    private mutating func appendPlain(_ text: RawSpan) -> Reason? {
        guard count + text.byteCount <= room else { return .payloadTooLarge }
        var offset = 0
        while offset < text.byteCount {
            guard let length = UTF8Scalar.count(in: text, at: offset) else { return .badValue }
            for _ in 0..<length {
                append(text.byte(at: offset))
                offset += 1
            }
        }
        return nil
    }

    /// Appends the contents of a JSON string (RFC 8259 section 7), with only the required escapes.
    private mutating func appendEscaped(_ text: RawSpan) -> Reason? {
        var offset = 0
        while offset < text.byteCount {
            guard count + 6 <= room else { return .payloadTooLarge }
            let byte = text.byte(at: offset)
            if byte >= 0x80 {
                guard let length = UTF8Scalar.count(in: text, at: offset) else { return .badValue }
                for place in offset..<offset + length { append(text.byte(at: place)) }
                offset += length
                continue
            }
            offset += 1
            appendEscaped(byte)
        }
        assert(count <= room, "an escape has six bytes at most")
        return nil
    }

    /// Appends an ASCII byte, escaped if necessary; six bytes must be available.
    @inline(__always)
    mutating func appendEscaped(_ byte: UInt8) {
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"):
            append(UInt8(ascii: "\\"))
            append(byte)
        case 0x08: appendEscape("b")
        case 0x09: appendEscape("t")
        case 0x0a: appendEscape("n")
        case 0x0c: appendEscape("f")
        case 0x0d: appendEscape("r")
        case 0..<0x20:
            appendEscape("u")
            append(UInt8(ascii: "0"))
            append(UInt8(ascii: "0"))
            append(UInt8(ascii: "0") + byte >> 4)
            let low = byte & 15
            append(low < 10 ? UInt8(ascii: "0") + low : UInt8(ascii: "a") + low - 10)
        default: append(byte)
        }
    }

    private mutating func appendEscape(_ letter: Unicode.Scalar) {
        append(UInt8(ascii: "\\"))
        append(UInt8(ascii: letter))
    }
}
