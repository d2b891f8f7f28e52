/// Placeholder in another template language's spelling, which is sent as it is: `{name}`,
/// `${name}`, `{user.name}`, `{name|friend}`, `{$name}`, `$(name)`, `$name`, `%name%`, `%%name%%`,
/// `%(name)s`, `[[name]]`, `[name]`, `#name#`, `<name>`, `*|NAME|*`, `<%= name %>`,
/// `{% if name %}`.
///
/// `:name` is not among them: `:heart:` and `/users/:id` are texts that programs of the receiver
/// read.
public struct ForeignPlaceholder: Sendable, Equatable {
    /// The placeholder as it is written.
    public let text: String
    /// Name of the column.
    public let column: String

    /// Delimiters of a name.
    private struct Form {
        let start: [UInt8]
        let end: [UInt8]
        /// Whether a type or a default may follow the name, and an object's name precede it.
        let hasParts: Bool
        /// Whether ordinary texts also have these delimiters, such as a heading in brackets. The
        /// name must then be spelled like the column.
        let isOrdinary: Bool

        init(_ start: String, _ end: String, hasParts: Bool = false, isOrdinary: Bool = false) {
            self.start = Array(start.utf8)
            self.end = Array(end.utf8)
            self.hasParts = hasParts
            self.isOrdinary = isOrdinary
        }
    }

    /// All forms. Of two that begin alike, the longer is first. A `$` or `#` before a brace belongs
    /// to the placeholder, too.
    private static let forms = [
        Form("{$", "}", hasParts: true), Form("{", "}", hasParts: true),
        Form("%%", "%%"), Form("%(", ")s"), Form("%", "%"),
        Form("[[", "]]", hasParts: true), Form("[", "]", isOrdinary: true),
        Form("<", ">"), Form("*|", "|*"), Form("$(", ")"), Form("#", "#", isOrdinary: true),
    ]

    /// Delimiters of code that may contain a name.
    private static let tags: [(start: [UInt8], end: [UInt8])] = [
        (Array("{%".utf8), Array("%}".utf8)), (Array("<%".utf8), Array("%>".utf8)),
    ]

    /// Maximum number of bytes between the delimiters of a tag, or of a name with a default.
    private static let tagLimit = 256

    /// Finds the first placeholder that names a column.
    ///
    /// - Parameters:
    ///   - text: Text that is sent to each row.
    ///   - columns: Columns of the list. Upper and lower case are the same.
    public static func first(in text: [UInt8], columns: [String]) -> ForeignPlaceholder? {
        let names = Dictionary(
            columns.filter { !$0.isEmpty }.map { ($0.lowercased(), $0) },
            uniquingKeysWith: { first, _ in first })
        let nameLimit = names.keys.map(\.utf8.count).max() ?? 0
        for offset in text.indices {
            if let found = tag(text, at: offset, names) ?? variable(text, at: offset, names) {
                return found
            }
            for form in forms where text[offset...].starts(with: form.start) {
                let inside = text[(offset + form.start.count)...]
                    .prefix(form.hasParts ? tagLimit : nameLimit + 3)
                    .prefix { $0 != form.end[0] }
                // `{{{{name}}` is sent as `{{name}}`, so its inner braces are text.
                let isEscaped = offset > 0 && text[offset - 1] == form.start[0]
                guard !isEscaped, text[inside.endIndex...].starts(with: form.end),
                    let column = column(inside, form, names)
                else { continue }
                let signs = Array("$#".utf8)
                let isMarked =
                    offset > 0 && form.start == [0x7b] && signs.contains(text[offset - 1])
                let start = isMarked ? offset - 1 : offset
                let whole = text[start..<(inside.endIndex + form.end.count)]
                return .init(text: String(decoding: whole, as: UTF8.self), column: column)
            }
        }
        return nil
    }

    /// The column that is named between a form's delimiters.
    private static func column(
        _ inside: ArraySlice<UInt8>, _ form: Form, _ names: [String: String]
    ) -> String? {
        let whole = String(decoding: trimmed(inside), as: UTF8.self)
        if form.isOrdinary { return ordinaryColumn(whole, names) }
        if let column = names[whole.lowercased()] { return column }
        guard form.hasParts else { return nil }
        let bar = UInt8(ascii: "|")
        var name = String(decoding: trimmed(inside.prefix { $0 != bar }), as: UTF8.self)
        for type in [":int", ":bool", ":fit"] where name.hasSuffix(type) {
            name.removeLast(type.count)
        }
        if let column = names[name.lowercased()] { return column }
        // The delimiters of JSON are no part of a path.
        guard name.utf8.allSatisfy({ isWordByte($0) || $0 == UInt8(ascii: ".") }) else {
            return nil
        }
        return name.split(separator: ".").last.flatMap { names[$0.lowercased()] }
    }

    /// The column with exactly this name, if the name can't be a value of JSON.
    private static func ordinaryColumn(_ name: String, _ names: [String: String]) -> String? {
        guard let first = name.utf8.first, first == UInt8(ascii: "_") || first | 0x20 >= 0x61,
            !["true", "false", "null"].contains(name), names[name.lowercased()] == name
        else { return nil }
        return name
    }

    /// The variable `$name` at an offset, if it names a column. A key of JSON such as `"$name"` is
    /// not meant for Broadside.
    private static func variable(
        _ text: [UInt8], at offset: Int, _ names: [String: String]
    ) -> ForeignPlaceholder? {
        guard text[offset] == UInt8(ascii: "$") else { return nil }
        let word = text[(offset + 1)...].prefix { isWordByte($0) }
        if offset > 0 {
            let before = text[offset - 1]
            guard !isWordByte(before), before != UInt8(ascii: "$") else { return nil }
        }
        let behind = text[word.endIndex...]
        let isKey = behind.starts(with: "\":".utf8) || behind.starts(with: "\\\":".utf8)
        guard !isKey,
            let column = ordinaryColumn(String(decoding: word, as: UTF8.self), names)
        else { return nil }
        return .init(text: "$" + column, column: column)
    }

    private static func isWordByte(_ byte: UInt8) -> Bool {
        let letter = byte | 0x20
        return letter >= UInt8(ascii: "a") && letter <= UInt8(ascii: "z")
            || byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9") || byte == UInt8(ascii: "_")
    }

    /// The tag at an offset, if its code contains the name of a column.
    ///
    /// - Parameter names: Columns of the list, by their names in lower case.
    private static func tag(
        _ text: [UInt8], at offset: Int, _ names: [String: String]
    ) -> ForeignPlaceholder? {
        for (start, end) in tags where text[offset...].starts(with: start) {
            let behind = text[(offset + start.count)...].prefix(tagLimit + end.count)
            guard let close = behind.indices.first(where: { behind[$0...].starts(with: end) })
            else { continue }
            let code = String(decoding: behind[..<close], as: UTF8.self)
            guard let column = words(of: code).compactMap({ names[$0.lowercased()] }).first
            else { continue }
            let whole = text[offset..<(close + end.count)]
            return .init(text: String(decoding: whole, as: UTF8.self), column: column)
        }
        return nil
    }

    /// The words of a tag's code. `user.name` is one word, and also two.
    private static func words(of code: String) -> [Substring] {
        func isPart(_ character: Character) -> Bool {
            character.isLetter || character.isNumber || character == "_" || character == "-"
        }
        return code.split { !isPart($0) && $0 != "." } + code.split { !isPart($0) }
    }

    private static func trimmed(_ text: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var text = text.drop { $0 == 0x20 }
        while text.last == 0x20 { text.removeLast() }
        return text
    }
}

extension PayloadTemplate {
    /// The first placeholder in another spelling that names one of these columns; nil if there is
    /// none.
    public func foreignPlaceholder(columns: [String]) -> ForeignPlaceholder? {
        for text in segments.map(\.constant) + [tail] {
            if let found = ForeignPlaceholder.first(in: text, columns: columns) { return found }
        }
        return nil
    }
}
