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
    /// finds `pt-BR` first.
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

    /// Index of the payload whose name equals a value. If no name equals the value, underscores in
    /// the value are read as hyphens.
    private func find(_ value: RawSpan) -> Int? {
        guard value.byteCount > 0 else { return nil }
        return find(value, asHyphens: false) ?? find(value, asHyphens: true) ?? findFolded(value)
    }

    /// Looks up a value that is not ASCII in any Unicode form: macOS may store `é` in a file's name
    /// as `e` and an accent. Only this lookup allocates.
    private func findFolded(_ value: RawSpan) -> Int? {
        guard !foldedNames.isEmpty,
            (0..<value.byteCount).contains(where: { value.byte(at: $0) >= 0x80 })
        else { return nil }
        return foldedNames[
            PayloadSet.Choice.folded(String(decoding: [UInt8](value), as: UTF8.self))]
    }

    /// Looks up a value among the sorted names.
    ///
    /// - Parameter asHyphens: Whether to read underscores as hyphens.
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

    /// Order of a name and a value: below 0 if the name comes first, 0 if they are equal.
    private static func order(_ name: RawSpan, _ value: RawSpan, _ asHyphens: Bool) -> Int {
        for offset in 0..<min(name.byteCount, value.byteCount) {
            var byte = value.byte(at: offset)
            if asHyphens, byte == UInt8(ascii: "_") { byte = UInt8(ascii: "-") }
            let difference = Int(name.byte(at: offset)) - Int(byte)
            if difference != 0 { return difference }
        }
        return name.byteCount - value.byteCount
    }
}
