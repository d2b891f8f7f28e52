import BroadsideAPNs
import BroadsidePrimitives
import BroadsideRows
import BroadsideSupport

/// Choice of a row's payload.
extension PayloadRenderer {
    /// Reason why a row can't be sent.
    struct Refusal: Error {
        var reason: Reason
    }

    /// Index of the row's payload. Looks for the row's value, then for the value's language, then
    /// for the part of the value before its last `-` or `_`, so that `pt-BR` finds `pt`. `pt_BR`
    /// finds `pt-BR` first. Blanks around the value are ignored.
    mutating func choose(_ reader: borrowing RowReader) -> Result<Int, Refusal> {
        guard let choiceField else { return .success(0) }
        let field = reader.field(choiceField)
        if field.form == .missing { return .failure(Refusal(reason: .missingColumn)) }
        guard field.isText else { return .failure(Refusal(reason: .badValue)) }
        let whole = reader.text(field)
        if let template = find(whole) { return .success(template) }
        let value = Self.trimmed(whole)
        if value.byteCount < whole.byteCount, let template = find(value) {
            return .success(template)
        }
        if let template = chooser.find(value) { return .success(template) }
        var end = value.byteCount
        while end > 0 {
            repeat {
                end -= 1
            } while end > 0 && value.byte(at: end) != UInt8(ascii: "-")
                && value.byte(at: end) != UInt8(ascii: "_")
            if let template = find(value.extracting(0..<end)) { return .success(template) }
        }
        if let template = chooser.findLanguage(of: value) { return .success(template) }
        fallbackSlot = fallbacks.slot(of: whole)
        guard let choiceFallback else { return .failure(Refusal(reason: .noPayload)) }
        return .success(choiceFallback)
    }

    /// A value without the blanks and hidden characters around it.
    @_lifetime(copy value)
    private static func trimmed(_ value: RawSpan) -> RawSpan {
        var (start, end) = (0, value.byteCount)
        while start < end, value.byte(at: start) <= 0x20 { start += 1 }
        while end > start, value.byte(at: end - 1) <= 0x20 { end -= 1 }
        let text = value.extracting(start..<end)
        return HiddenCharacters.mayBeAtEnd(of: text) ? HiddenCharacters.trimmed(text) : text
    }

    /// Index of the payload whose name equals a value. If no name equals the value, underscores in
    /// the value are read as hyphens. If there is still no name, case is ignored, too.
    private func find(_ value: RawSpan) -> Int? {
        guard value.byteCount > 0 else { return nil }
        return find(value, in: names, .exact) ?? find(value, in: names, .hyphens)
            ?? findFolded(value)
    }

    /// Looks up a value regardless of case. A value that is not ASCII is looked up in any Unicode
    /// form: macOS may store `é` in a file's name as `e` and an accent. Only this lookup allocates.
    private func findFolded(_ value: RawSpan) -> Int? {
        guard (0..<value.byteCount).contains(where: { value.byte(at: $0) >= 0x80 }) else {
            return find(value, in: caselessNames, .caseless)
        }
        guard !foldedNames.isEmpty else { return nil }
        let text = PayloadSet.Choice.folded(String(decoding: [UInt8](value), as: UTF8.self))
        return foldedNames[text] ?? foldedNames[text.lowercased()]
    }

    /// Form in which the bytes of a value are compared with names.
    private enum Form {
        case exact
        /// Underscores are read as hyphens.
        case hyphens
        /// Underscores are read as hyphens, and letters in lower case.
        case caseless

        func byte(_ byte: UInt8) -> UInt8 {
            if self == .exact { return byte }
            if byte == UInt8(ascii: "_") { return UInt8(ascii: "-") }
            let isUpper = byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z")
            return self == .caseless && isUpper ? byte | 0x20 : byte
        }
    }

    /// Looks up a value among sorted names.
    private func find(
        _ value: RawSpan, in names: borrowing FixedBuffer<Name>, _ form: Form
    ) -> Int? {
        var low = 0
        var high = names.count
        while low < high {
            let middle = (low + high) / 2
            switch Self.order(text(names[middle].bytes), value, form) {
            case 0: return Int(names[middle].template)
            case ..<0: low = middle + 1
            default: high = middle
            }
        }
        return nil
    }

    /// Order of a name and a value: below 0 if the name comes first, 0 if they are equal.
    private static func order(_ name: RawSpan, _ value: RawSpan, _ form: Form) -> Int {
        for offset in 0..<min(name.byteCount, value.byteCount) {
            let byte = form.byte(value.byte(at: offset))
            let difference = Int(name.byte(at: offset)) - Int(byte)
            if difference != 0 { return difference }
        }
        return name.byteCount - value.byteCount
    }
}
