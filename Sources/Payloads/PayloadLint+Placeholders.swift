import BroadsidePrimitives
import BroadsideSupport

extension PayloadLint {
    // MARK: Placeholders

    /// Checks placeholders that are probably not meant as they are written: all of a broadcast's,
    /// defaults that are filters of another language or have blanks around them, and braces that
    /// are escaped.
    mutating func checkPlaceholders(_ payload: RawSpan) {
        var tokenizer = JSONTokenizer()
        while let token = try? tokenizer.next(in: payload) {
            guard token.kind == .string else { continue }
            checkPlaceholders(token, payload)
            if token.hasEscapes { checkBraces(token, payload) }
        }
    }

    private mutating func checkPlaceholders(
        _ token: JSONTokenizer.Token, _ payload: RawSpan
    ) {
        let inside = token.range.map { payload.byte(at: $0) }
        // Invalid templates are reported when they are compiled.
        let pieces = (try? TemplatePiece.divide(inside[...], at: token.start, isJSON: true)) ?? []
        for case .placeholder(let placeholder) in pieces {
            guard !isBroadcast else {
                error(placeholder.offset, Self.unfilled(placeholder.column))
                continue
            }
            if let filter = ForeignFilter(placeholder, isJSON: true) {
                if filter.isCertain {
                    error(placeholder.offset, filter.message)
                } else {
                    warn(placeholder.offset, filter.message)
                }
                continue
            }
            let blank = UInt8(ascii: " ")
            guard placeholder.kind.isText, let text = placeholder.fallback,
                text.first == blank || text.last == blank, text.contains(where: { $0 != blank })
            else { continue }
            warn(
                placeholder.offset,
                "the default of {{\(placeholder.column)}} is sent with the blanks around it: remove "
                    + "them if they are not meant")
        }
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
