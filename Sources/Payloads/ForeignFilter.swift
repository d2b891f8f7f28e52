import BroadsideSupport

/// A default that is a filter of Liquid, Jinja or a similar language, such as `default: 'friend'`
/// or `upcase`. Placeholders have no filters, so the filter's own text is sent.
struct ForeignFilter: Equatable {
    /// Column of the placeholder, with `:fit` if the placeholder has this type.
    let name: String
    /// The filter as it is written, at most `textLimit` characters.
    let text: String
    /// Quoted argument of a filter `default`; nil if there is none.
    let argument: String?
    /// Whether the default can't be meant as text.
    let isCertain: Bool

    /// Maximum number of characters of a filter and its argument in a message.
    private static let textLimit = 40

    /// Recognizes a filter.
    ///
    /// - Parameter isJSON: Whether the default has JSON escapes.
    /// - Returns: nil if the default is an ordinary text.
    init?(_ placeholder: Placeholder, isJSON: Bool) {
        guard placeholder.kind.isText, let fallback = placeholder.fallback else { return nil }
        let whole = isJSON ? JSONText.decoded(fallback) : String(decoding: fallback, as: UTF8.self)
        let parts = whole.split(separator: "|").map { Self.trimmed($0) }
        let filter = parts.first { Self.isFilter($0) }
        if filter == nil {
            guard parts.count == 1, Self.ambiguousNames.contains(String(parts[0])) else {
                return nil
            }
        }
        name = placeholder.column + (placeholder.kind == .fit ? ":fit" : "")
        text = printable(String(filter ?? parts[0]), limit: Self.textLimit)
        argument = parts.compactMap { Self.argument($0) }.first
        isCertain = filter != nil
    }

    /// Description of the problem and its fix.
    var message: String {
        guard isCertain else {
            return "'\(text)' is sent as text to rows without a value, because placeholders have "
                + "no filters: write {{\(name)}} if a filter is meant"
        }
        let problem =
            "the filter \(text) would be sent as text to rows without a value, because "
            + "placeholders have no filters: write "
        if let argument { return problem + "{{\(name)|\(argument)}}" }
        return text.hasPrefix("default")
            ? problem + "{{\(name)|friend}} for the default 'friend'"
            : problem + "{{\(name)}}, or {{\(name)|friend}} for the default 'friend'"
    }

    // MARK: Names

    /// Filters that need an argument, which is the default.
    private static let defaultNames: Set<String> = ["default", "default_if_none"]

    /// Filters whose names are never meant as text.
    private static let certainNames: Set<String> = [
        "capitalize", "capitalise", "capfirst", "downcase", "escape", "escape_once", "escapejs",
        "humanize", "lowercase", "lstrip", "newline_to_br", "rstrip", "strip", "strip_html",
        "strip_newlines", "striptags", "titlecase", "titleize", "trim", "truncate",
        "truncatechars", "truncatewords", "ucfirst", "upcase", "uppercase", "url_decode",
        "url_encode", "urlencode",
    ]

    /// Filters whose names could be meant as text.
    private static let ambiguousNames: Set<String> = ["lower", "safe", "title", "upper"]

    /// Further filters, which are recognized by a quoted argument.
    private static let furtherNames: Set<String> = [
        "append", "currency", "date", "first", "format", "join", "last", "number", "prepend",
        "remove", "replace", "round", "slice", "split", "translate",
    ]

    /// Closing quotes, by their opening quotes.
    private static let quotes: [Character: Character] = [
        "'": "'", "\"": "\"", "‘": "’", "“": "”",
    ]

    // MARK: Parts

    /// Whether a text is a filter and can't be meant otherwise: `upcase`, `default: 'friend'`,
    /// `truncate(20)`.
    private static func isFilter(_ text: Substring) -> Bool {
        let letters = text.prefix { $0 == "_" || $0.isASCII && $0.isLetter }
        let (name, rest) = (String(letters), text[letters.endIndex...])
        let next = trimmed(rest)
        let isCall = next.first == ":" || next.first == "("
        let value = isCall ? trimmed(next.dropFirst()) : next
        let isQuoted = value.first.map { quotes[$0] != nil } ?? false
        // `default (see below)` may be a text, `default(` and `default:` are not.
        let isDirect = rest.first == ":" || rest.first == "("
        if defaultNames.contains(name) { return isDirect || isQuoted }
        if certainNames.contains(name) { return rest.isEmpty || isDirect || isQuoted }
        guard ambiguousNames.contains(name) || furtherNames.contains(name) else { return false }
        return isCall && (isQuoted || next == "()")
    }

    /// Quoted argument of a filter `default`, if a default can be written like this.
    private static func argument(_ text: Substring) -> String? {
        guard text.hasPrefix("default"), let start = text.firstIndex(where: { quotes[$0] != nil }),
            let closing = quotes[text[start]]
        else { return nil }
        let inside = text[text.index(after: start)...].prefix { $0 != closing }
        guard inside.endIndex < text.endIndex, inside.count <= textLimit,
            !inside.contains(where: { $0 == "\\" || $0 == "\"" })
        else { return nil }
        return printable(String(inside))
    }

    /// A text without the blanks around it.
    static func trimmed(_ text: Substring) -> Substring {
        var text = text.drop { $0.isWhitespace }
        while let last = text.last, last.isWhitespace { text.removeLast() }
        return text
    }
}
