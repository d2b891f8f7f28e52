/// A part of a template that is filled in per row.
struct Placeholder: Sendable, Equatable {
    /// Type of the value.
    enum Kind: UInt8, Sendable {
        /// Text inside a string.
        case text
        /// Text inside a string, shortened so that the payload does not exceed its limit.
        case fit
        /// A JSON number in place of a string: a 64-bit integer.
        case integer
        /// The number of `aps.badge`: an integer, 0 or above. `PayloadTemplate` determines it.
        case badge
        /// The word of `aps.interruption-level`, as a whole string. `PayloadTemplate` determines it.
        case interruptionLevel
        /// `true` or `false` in place of a string.
        case boolean

        /// Whether the value is inside a string, perhaps with other text before and after it.
        var isText: Bool { self == .text || self == .fit || self == .interruptionLevel }
    }

    /// Column with the value.
    var column: String
    /// Type of the value.
    var kind: Kind
    /// Default for a row without a value, as written to the payload; nil if such a row is invalid.
    var fallback: [UInt8]?
    /// Offset of the opening braces in the template's file.
    var offset: Int
}

/// Part of a template's text, split at `{{` and `}}`.
enum TemplatePiece {
    case constant([UInt8])
    case placeholder(Placeholder)
}

/// An error in a template, and its byte offset.
struct TemplateError: Error {
    var offset: Int
    var message: String
}

extension TemplatePiece {
    /// Maximum number of bytes of a column's name in a template.
    static let nameLimit = 256

    /// Splits a text into constants and placeholders.
    ///
    ///     {{name}}   {{badge:int}}   {{x:bool}}   {{text:fit}}   {{name|friend}}   {{{{ means {{
    ///
    /// - Parameters:
    ///   - text: Contents of a JSON string with its escapes, or plain text.
    ///   - base: Offset of the text in its file.
    ///   - isJSON: Whether names have JSON escapes.
    static func divide(
        _ text: ArraySlice<UInt8>, at base: Int, isJSON: Bool
    ) throws(TemplateError) -> [TemplatePiece] {
        let brace = UInt8(ascii: "{")
        var pieces: [TemplatePiece] = []
        var constant: [UInt8] = []
        var offset = text.startIndex
        func isDouble(_ byte: UInt8, _ offset: Int) -> Bool {
            offset + 1 < text.endIndex && text[offset] == byte && text[offset + 1] == byte
        }
        while offset < text.endIndex {
            guard isDouble(brace, offset) else {
                constant.append(text[offset])
                offset += 1
                continue
            }
            if isDouble(brace, offset + 2) {
                constant += [brace, brace]
                offset += 4
                continue
            }
            let position = base + offset - text.startIndex
            var end = offset + 2
            while end < text.endIndex, !isDouble(UInt8(ascii: "}"), end) { end += 1 }
            guard end < text.endIndex else {
                throw TemplateError(
                    offset: position,
                    message: "{{ is not closed: close it with }}, or write {{{{ for {{")
            }
            if !constant.isEmpty { pieces.append(.constant(constant)) }
            constant = []
            let inside = text[(offset + 2)..<end]
            pieces.append(.placeholder(try placeholder(inside, at: position, isJSON: isJSON)))
            offset = end + 2
        }
        if !constant.isEmpty { pieces.append(.constant(constant)) }
        return pieces
    }

    private static func placeholder(
        _ inside: ArraySlice<UInt8>, at position: Int, isJSON: Bool
    ) throws(TemplateError) -> Placeholder {
        let bar = inside.firstIndex(of: UInt8(ascii: "|"))
        var name = trimmed(inside[..<(bar ?? inside.endIndex)])
        var kind = Placeholder.Kind.text
        if let colon = name.lastIndex(of: UInt8(ascii: ":")) {
            switch String(decoding: trimmed(name[(colon + 1)...]), as: UTF8.self) {
            case "int": kind = .integer
            case "bool": kind = .boolean
            case "fit": kind = .fit
            case let other:
                throw TemplateError(
                    offset: position,
                    message: "':\(other)' is not a type: use :int, :bool, :fit or none. If the "
                        + "colon is part of the column's name, rename the column in the list")
            }
            name = trimmed(name[..<colon])
        }
        if name.isEmpty {
            throw TemplateError(
                offset: position, message: "{{ names no column: write {{column}}, or {{{{ for {{")
        }
        let brace = UInt8(ascii: "{")
        let rest = inside.dropFirst()
        if inside.first == brace, !trimmed(rest).isEmpty, !rest.contains(brace),
            rest.count <= nameLimit
        {
            throw TemplateError(
                offset: position,
                message: "{{{ is not a placeholder: write "
                    + "{{\(String(decoding: rest, as: UTF8.self))}}")
        }
        if name.contains(brace) || name.count > nameLimit {
            throw TemplateError(
                offset: position,
                message: "{{ is not followed by a column's name: write {{{{ for {{")
        }
        var fallback = bar.map { Array(inside[($0 + 1)...]) }
        if let fallback,
            zip(fallback, fallback.dropFirst()).contains(where: { $0 == brace && $1 == brace })
        {
            throw TemplateError(
                offset: position,
                message:
                    "the default of {{\(String(decoding: name, as: UTF8.self))}} "
                    + "contains {{, which would be sent as text: a default is "
                    + "plain text, without placeholders")
        }
        if let text = fallback, !kind.isText {
            fallback = TypedValue.written(text, as: kind)
            if fallback == nil {
                let words = kind == .integer ? "a whole number" : "true or false"
                throw TemplateError(
                    offset: position,
                    message: "the default '\(String(decoding: text, as: UTF8.self))' is not "
                        + "\(words): fix it")
            }
        }
        let column =
            isJSON ? JSONText.decoded(Array(name)) : String(decoding: name, as: UTF8.self)
        return Placeholder(column: column, kind: kind, fallback: fallback, offset: position)
    }

    private static func trimmed(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var text = text
        while text.first == UInt8(ascii: " ") { text.removeFirst() }
        while text.last == UInt8(ascii: " ") { text.removeLast() }
        return text
    }
}
