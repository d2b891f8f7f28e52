/// Placeholder in another template language's spelling, which is sent as it is: `{name}`,
/// `${name}`, `$(name)`, `%name%`, `%%name%%`, `[[name]]`, `<name>`, `*|NAME|*`, `<%= name %>`,
/// `{% if name %}`.
public struct ForeignPlaceholder: Sendable, Equatable {
    /// The placeholder as it is written.
    public let text: String
    /// Name of the column.
    public let column: String

    /// Delimiters of a name. Of two forms that begin alike, the longer is first. A `$` or `#`
    /// before a brace belongs to the placeholder, too.
    private static let forms: [(start: [UInt8], end: [UInt8])] = [
        (Array("{".utf8), Array("}".utf8)), (Array("%%".utf8), Array("%%".utf8)),
        (Array("%".utf8), Array("%".utf8)), (Array("[[".utf8), Array("]]".utf8)),
        (Array("<".utf8), Array(">".utf8)), (Array("*|".utf8), Array("|*".utf8)),
        (Array("$(".utf8), Array(")".utf8)),
    ]

    /// Delimiters of code that may contain a name.
    private static let tags: [(start: [UInt8], end: [UInt8])] = [
        (Array("{%".utf8), Array("%}".utf8)), (Array("<%".utf8), Array("%>".utf8)),
    ]

    /// Maximum number of bytes between the delimiters of a tag.
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
            if let found = tag(text, at: offset, names) { return found }
            for (start, end) in forms where text[offset...].starts(with: start) {
                let name = text[(offset + start.count)...].prefix { $0 != end[0] }
                    .prefix(nameLimit + 3)
                // `{{{{name}}` is sent as `{{name}}`, so its inner braces are text.
                let isEscaped = offset > 0 && text[offset - 1] == start[0]
                guard !isEscaped, text[name.endIndex...].starts(with: end) else { continue }
                let word = String(decoding: trimmed(name), as: UTF8.self)
                guard let column = names[word.lowercased()] else { continue }
                let signs = Array("$#".utf8)
                let isMarked = offset > 0 && start == [0x7b] && signs.contains(text[offset - 1])
                let whole = text[(isMarked ? offset - 1 : offset)..<(name.endIndex + end.count)]
                return .init(text: String(decoding: whole, as: UTF8.self), column: column)
            }
        }
        return nil
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
