public import BroadsideAPNs
public import BroadsideLists

/// What one prune is asked to do: the values of the command's options.
public struct PruneOptions: Sendable {
    /// Directories of the ledgers whose verdicts count.
    public var ledgers: [String]
    /// The list to be pruned.
    public var tokens: String
    /// nil: as the list's name and first bytes say.
    public var format: TokenListFormat?
    /// nil: `token`.
    public var tokenColumn: String?
    /// Where the pruned list goes.
    public var output: String
    /// The option that named it, without dashes.
    public var outputOption = "output"
    /// Where the rows go that are taken out; nil: nowhere.
    public var removed: String?
    /// The reasons that call a token dead.
    public var reasons: Set<Reason> = PruneOptions.defaultReasons
    /// The column that says when a row's token was registered.
    public var registeredColumn: String?
    /// The most percent of the rows that may go, for lists of `guardedRowCount` rows or more.
    public var maxRemovedPercent = PruneOptions.defaultMaxRemovedPercent

    /// Whether rows are only counted: nothing is written, and no output is named.
    public var isDryRun = false

    /// What to do where more rows would go.
    public var moreAdvice = "--max-removed allows more"

    /// Names what every prune needs.
    public init(ledgers: [String], tokens: String, output: String) {
        self.ledgers = ledgers
        self.tokens = tokens
        self.output = output
    }

    /// The reasons that come with status 410: the device token is not active any more.
    public static let defaultReasons: Set<Reason> = [.unregistered, .expiredToken]

    /// `--max-removed` where none is given.
    public static let defaultMaxRemovedPercent = 50.0

    /// Shorter lists are not guarded: a list of three with two dead tokens is nothing strange.
    public static let guardedRowCount: UInt64 = 1_000
}
