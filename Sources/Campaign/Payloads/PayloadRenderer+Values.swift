import APNs
import Support

extension PayloadRenderer {
    /// Why a row can't be sent.
    struct Refusal: Error {
        var reason: Reason
    }

    // MARK: Which payload

    /// The place of the row's payload: by its value; by the language that the value names; or by what
    /// stands before its last `-` or `_`, so that `pt-BR` finds `pt`; `pt_BR` finds `pt-BR` first.
    mutating func choose(_ reader: borrowing RowReader) -> Result<Int, Refusal> {
        guard let choiceField else { return .success(0) }
        let field = reader.field(choiceField)
        if field.form == .missing { return .failure(Refusal(reason: .missingColumn)) }
        guard field.isText else { return .failure(Refusal(reason: .badValue)) }
        let value = reader.text(field)
        if let template = find(value) { return .success(template) }
        if let template = chooser.find(value) { return .success(template) }
        var end = value.byteCount
        while end > 0, value.byte(at: end - 1) <= 0x20 { end -= 1 }
        while end > 0 {
            if let template = find(value.extracting(0..<end)) { return .success(template) }
            repeat {
                end -= 1
            } while end > 0 && value.byte(at: end) != UInt8(ascii: "-")
                && value.byte(at: end) != UInt8(ascii: "_")
        }
        if let template = chooser.findLanguage(of: value) { return .success(template) }
        fallbackSlot = fallbacks.slot(of: value)
        guard let choiceFallback else { return .failure(Refusal(reason: .noPayload)) }
        return .success(choiceFallback)
    }

    /// The payload that is named like a value, or like it with hyphens for its underscores.
    private func find(_ value: RawSpan) -> Int? {
        guard value.byteCount > 0 else { return nil }
        return find(value, asHyphens: false) ?? find(value, asHyphens: true)
    }

    /// Looks a value up among the sorted names.
    ///
    /// - Parameter asHyphens: Whether its underscores stand for hyphens.
    private func find(_ value: RawSpan, asHyphens: Bool) -> Int? {
        var low = 0
        var high = names.count
        while low < high {
            let middle = (low + high) / 2
            switch Self.order(text(names[middle].bytes), value, asHyphens) {
            case 0: return Int(names[middle].template)
            case ..<0: low = middle + 1
            default: high = middle
            }
        }
        return nil
    }

    /// Below 0 where the name comes before the value, 0 where it is the same.
    private static func order(_ name: RawSpan, _ value: RawSpan, _ asHyphens: Bool) -> Int {
        for offset in 0..<min(name.byteCount, value.byteCount) {
            var byte = value.byte(at: offset)
            if asHyphens, byte == UInt8(ascii: "_") { byte = UInt8(ascii: "-") }
            let difference = Int(name.byte(at: offset)) - Int(byte)
            if difference != 0 { return difference }
        }
        return name.byteCount - value.byteCount
    }

    // MARK: Pieces

    /// Appends the value of a step's field, as JSON or as it is.
    mutating func append(
        _ step: Step, isJSON: Bool, _ reader: borrowing RowReader
    ) -> Reason? {
        let field = reader.field(Int(step.field))
        // An empty field of a table is how it says that there is no value.
        if field.form == .missing || (field.isText && field.count == 0) {
            if let fallback = step.fallback {
                return appendConstant(fallback) ? nil : .payloadTooLarge
            }
            if field.form == .missing { return .missingColumn }
        }
        guard field.isText else { return .badValue }
        let text = reader.text(field)
        switch step.kind {
        case .text: return isJSON ? appendEscaped(text) : appendPlain(text)
        case .integer:
            guard let value = TypedValue.integer(text) else { return .badValue }
            return append(value)
        case .boolean:
            guard let value = TypedValue.boolean(text) else { return .badValue }
            return append(value ? "true" : "false")
        }
    }

    mutating func appendConstant(_ range: Range<Int32>) -> Bool {
        guard count + range.count <= room else { return false }
        for offset in range { append(bytes[Int(offset)]) }
        return true
    }

    private mutating func append(_ byte: UInt8) {
        pieces[count] = byte
        count += 1
    }

    private mutating func append(_ text: StaticString) -> Reason? {
        guard count + text.utf8CodeUnitCount <= room else { return .payloadTooLarge }
        // SAFETY: a static string has as many bytes as it says.
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
        return nil
    }

    /// The text of a header: bytes as they are, so long as they are UTF-8.
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

    /// The inside of a JSON string (RFC 8259 section 7): only what must be escaped is.
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
        return nil
    }

    private mutating func appendEscape(_ letter: Unicode.Scalar) {
        append(UInt8(ascii: "\\"))
        append(UInt8(ascii: letter))
    }
}
