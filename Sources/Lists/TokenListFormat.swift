package import BroadsideRows

/// How a token list is written, by the names that options use: one for each name of `ListFormat`.
public struct TokenListFormat: RawRepresentable, Sendable, Hashable, CaseIterable {
    /// The format; which separator a list that is called CSV has is found in the list.
    package let format: ListFormat

    /// One token a line.
    public static let lines = Self(.lines)
    /// Comma-separated values with a header (RFC 4180), or with semicolons.
    public static let csv = Self(.csv)
    /// The same with tabs.
    public static let tsv = Self(.tsv)
    /// A JSON object a line.
    public static let jsonl = Self(.jsonl)

    /// All formats, in the order in which help lists them.
    public static var allCases: [TokenListFormat] {
        ListFormat.allCases.filter { $0.name == $0.rawValue }.map { TokenListFormat($0) }
    }

    /// The format's name.
    public var rawValue: String { format.rawValue }

    /// The format of a name.
    ///
    /// - Parameter rawValue: Such as `csv`; nil for other names.
    public init?(rawValue: String) {
        guard let known = Self.allCases.first(where: { $0.rawValue == rawValue }) else {
            return nil
        }
        self = known
    }

    /// The format that a ledger names; its separator is found in the list again.
    ///
    /// - Parameter identity: As the ledger's manifest has it.
    package init?(identity: String) {
        guard let format = ListFormat(rawValue: identity) else { return nil }
        self.init(rawValue: format.name)
    }

    private init(_ format: ListFormat) { self.format = format }
}
