import BroadsideAPNs
import BroadsidePrimitives
import BroadsideSupport

extension PayloadLint {
    // MARK: Placeholders

    /// Checks placeholders that are probably not meant as they are written: all of a broadcast's,
    /// defaults that are filters of another language or have blanks or quotes around them, braces
    /// that are escaped, and the placeholders of format strings.
    mutating func checkPlaceholders(_ payload: RawSpan) {
        var tokenizer = JSONTokenizer()
        var hasFilter = false
        while let token = try? tokenizer.next(in: payload) {
            guard token.kind == .string else { continue }
            if checkPlaceholders(token, payload) { hasFilter = true }
            if token.hasEscapes { checkBraces(token, payload) }
        }
        // A filter may have a format of its own, as for dates.
        if !hasFilter { checkFormats() }
    }

    /// Returns whether a placeholder has a filter of another language.
    private mutating func checkPlaceholders(
        _ token: JSONTokenizer.Token, _ payload: RawSpan
    ) -> Bool {
        var hasFilter = false
        let inside = token.range.map { payload.byte(at: $0) }
        // Invalid templates are reported when they are compiled.
        let pieces = (try? TemplatePiece.divide(inside[...], at: token.start, isJSON: true)) ?? []
        for case .placeholder(let placeholder) in pieces {
            guard !isBroadcast else {
                error(placeholder.offset, Self.unfilled(placeholder.column))
                continue
            }
            if let filter = ForeignFilter(placeholder, isJSON: true) {
                hasFilter = true
                if filter.isCertain {
                    error(placeholder.offset, filter.message)
                } else {
                    warn(placeholder.offset, filter.message)
                }
                continue
            }
            checkDefault(placeholder)
        }
        return hasFilter
    }

    /// Warns about a default with quotes or a bar, which belong to the syntax of other languages,
    /// or with blanks.
    private mutating func checkDefault(_ placeholder: Placeholder) {
        guard placeholder.kind.isText, let text = placeholder.fallback else { return }
        let (name, type) = (placeholder.column, placeholder.kind == .fit ? ":fit" : "")
        let decoded = JSONText.decoded(text)
        let form = "write {{\(name)\(type)|friend}} for the default 'friend'"
        if decoded.first == "|", decoded.dropFirst().contains(where: { $0 != " " && $0 != "|" }) {
            return warn(placeholder.offset, "the default of {{\(name)}} is sent with a |: \(form)")
        }
        let inner = ForeignFilter.trimmed(decoded[...])
        if inner.count >= 2, let quote = inner.first, quote == "'" || quote == "\"",
            inner.last == quote
        {
            return warn(
                placeholder.offset, "the default of {{\(name)}} is sent with its quotes: \(form)")
        }
        let blank = UInt8(ascii: " ")
        guard text.first == blank || text.last == blank, text.contains(where: { $0 != blank })
        else { return }
        warn(
            placeholder.offset,
            "the default of {{\(name)}} is sent with the blanks around it: remove "
                + "them if they are not meant")
    }

    /// Warns about a placeholder of a format string, such as `%@`, in a text that devices show as
    /// it is. Devices fill in only the app's own texts, which `loc-key` names.
    private mutating func checkFormats() {
        let keys = document.members(of: ["aps", "alert"]).map(\.key)
        guard !keys.contains(where: { $0.hasSuffix("loc-args") }) else { return }
        for member in document.alertTexts where member.kind == .string {
            guard let format = Self.format(in: member.text) else { continue }
            let advice = isBroadcast ? "the text itself" : "{{column}} for a row's value"
            warn(
                member.valueOffset,
                "devices show \(format) as it is: write \(advice), or use loc-key and loc-args for a "
                    + "text of the app")
        }
    }

    /// The first placeholder of a format string: `%@`, `%s`, `%d`, `%1$@`; nil if there is none. A
    /// percentage such as `50%` before a word is none.
    private static func format(in text: String) -> String? {
        let bytes = Array(text.utf8)
        func isDigit(_ byte: UInt8) -> Bool { byte >= 0x30 && byte <= 0x39 }
        for start in bytes.indices where bytes[start] == UInt8(ascii: "%") {
            guard start == 0 || !isDigit(bytes[start - 1]) && bytes[start - 1] != 0x25 else {
                continue
            }
            var end = start + 1
            if end + 1 < bytes.count, isDigit(bytes[end]), bytes[end + 1] == UInt8(ascii: "$") {
                end += 2
            }
            guard end < bytes.count, Array("@sd".utf8).contains(bytes[end]) else { continue }
            // `%s` is not the beginning of a word.
            let isWord =
                end + 1 < bytes.count && (isDigit(bytes[end + 1]) || bytes[end + 1] | 0x20 >= 0x61)
            guard bytes[end] == UInt8(ascii: "@") || !isWord else { continue }
            return String(decoding: bytes[start...end], as: UTF8.self)
        }
        return nil
    }

    /// Warns about two braces of which one is written as `\u007b`. They are sent as text.
    private mutating func checkBraces(_ token: JSONTokenizer.Token, _ payload: RawSpan) {
        let brace = UInt8(ascii: "{")
        var isAfterBrace = false
        var offset = token.start
        while offset < token.range.upperBound {
            let byte = payload.byte(at: offset)
            guard byte == UInt8(ascii: "\\") else {
                isAfterBrace = byte == brace
                offset += 1
                continue
            }
            guard payload.byte(at: offset + 1) == UInt8(ascii: "u") else {
                isAfterBrace = false
                offset += 2
                continue
            }
            let end = offset + 6
            let code = (offset + 2..<end).map { payload.byte(at: $0) | 0x20 }
            let isBrace = code.elementsEqual("007b".utf8)
            let isBeforeBrace = end < token.range.upperBound && payload.byte(at: end) == brace
            if isBrace, isAfterBrace || isBeforeBrace {
                warn(
                    offset,
                    "{{ with an escaped brace is sent as text: write {{ for a placeholder, or "
                        + "{{{{ for the text")
                return
            }
            isAfterBrace = isBrace
            offset = end
        }
    }
}
