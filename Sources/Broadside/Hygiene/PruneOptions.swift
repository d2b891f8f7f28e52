public import BroadsideAPNs
public import BroadsideLists

/// Options of `broadside prune`.
public struct PruneOptions: Sendable {
    /// Directories of the ledgers whose verdicts decide which tokens are dead.
    public var ledgers: [String]
    /// The list to prune.
    public var tokens: String
    /// Format of the list; nil: detected from its name and first bytes.
    public var format: TokenListFormat?
    /// Column of the tokens; nil: `token`.
    public var tokenColumn: String?
    /// Path of the pruned list.
    public var output: String
    /// Option that names the output, without dashes.
    public var outputOption = "output"
    /// Path of the removed rows; nil: they are not written.
    public var removed: String?
    /// Reasons that make a token a dead token.
    public var reasons: Set<Reason> = PruneOptions.defaultReasons
    /// Topic of the list's rows, or a template with columns of the list; nil: the template of the
    /// ledgers, or any topic if they have no template.
    public var topic: String?
    /// Column with the time of a token's registration. Times without an offset are read as UTC.
    public var registeredColumn: String?
    /// Limit on removed rows, in percent of the list's rows. It applies to lists with at least
    /// `guardedRowCount` rows.
    public var maxRemovedPercent = PruneOptions.defaultMaxRemovedPercent

    /// Whether rows are only counted, without output.
    public var isDryRun = false

    /// Advice for the error if more rows than permitted would be removed.
    public var moreAdvice = "--max-removed allows more"

    /// Creates options with the values that every prune needs.
    public init(ledgers: [String], tokens: String, output: String) {
        self.ledgers = ledgers
        self.tokens = tokens
        self.output = output
    }

    /// Reasons with status 410: the device token is no longer active.
    public static let defaultReasons: Set<Reason> = [.unregistered, .expiredToken]

    /// Default of `--max-removed`.
    public static let defaultMaxRemovedPercent = 50.0

    /// A list with fewer rows than this has no limit on removed rows. Two dead tokens in a list of
    /// three are not unusual.
    public static let guardedRowCount: UInt64 = 1_000
}
