package import BroadsideRows

/// Format of a token list, by the name that options use for it.
public struct TokenListFormat: RawRepresentable, Sendable, Hashable, CaseIterable {
    /// The format; for CSV the separator is detected in the list.
    package let format: ListFormat

    /// One token per line.
    public static let lines = Self(.lines)
    /// Values separated by commas (RFC 4180) or semicolons, with a header.
    public static let csv = Self(.csv)
    /// Tab-separated values with a header.
    public static let tsv = Self(.tsv)
    /// One JSON object per line.
    public static let jsonl = Self(.jsonl)

    /// All formats, in the order of the help.
    public static var allCases: [TokenListFormat] {
        ListFormat.allCases.filter { $0.name == $0.rawValue }.map { TokenListFormat($0) }
    }

    /// Name of the format.
    public var rawValue: String { format.rawValue }

    /// Creates the format with a name.
    ///
    /// - Parameter rawValue: A name such as `csv`; nil for other names.
    public init?(rawValue: String) {
        guard let known = Self.allCases.first(where: { $0.rawValue == rawValue }) else {
            return nil
        }
        self = known
    }

    /// Creates the format that a ledger names. The separator is detected in the list again.
    ///
    /// - Parameter identity: Name of the format in the ledger's manifest.
    package init?(identity: String) {
        guard let format = ListFormat(rawValue: identity) else { return nil }
        self.init(rawValue: format.name)
    }

    private init(_ format: ListFormat) { self.format = format }

    /// Returns advice on how a list gets this format.
    ///
    /// - Parameter hasOption: Whether the option `--format` applies to the list. Otherwise, its
    ///   name decides.
    func advice(hasOption: Bool) -> String {
        hasOption
            ? "add --format \(rawValue)"
            : "let the file's name end in .\(self == .lines ? "txt" : rawValue)"
    }
}
