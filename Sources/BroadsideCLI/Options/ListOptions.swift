import BroadsideCampaigns
import BroadsideSupport

/// The values of commands that read one list.
protocol ListValues: OptionValues {
    var format: TokenListFormat? { get set }
    var tokenColumn: String? { get set }
}

extension SendOptions: ListValues {}

extension Option where Values: ListValues {
    static var format: Option {
        .choice(
            "format", \.format,
            "format of the list (default: from its name and first bytes)")
    }

    static var tokenColumn: Option {
        .text(
            "token-column", "NAME", \.tokenColumn,
            "column or key that holds the token, or the path of a key, such as device.token (default: token)"
        )
    }
}

/// Options that select a list and its rows, shared by all runs over a list.
enum ListOptions {
    /// Options for the path and format of the list.
    static let list: [Option<SendOptions>] = [
        .custom(
            "tokens", .file(.read), "FILE",
            "token list: one device token per line, CSV or TSV with a header, JSON Lines; also compressed as .gz or .zst; - for standard input"
        ) { (text, options) throws(BroadsideError) in
            guard options.tokens == nil else {
                throw .usage("tokens", "and --to exclude each other: remove one")
            }
            options.tokens = .file(text)
        },
        .format,
        .tokenColumn,
    ]

    static let limit = Option<SendOptions>.integer(
        "limit", SendOptions.limitRange, \.limit, "only the first N rows")

    static let whichRows = OptionGroup<SendOptions>(
        title: "Which rows",
        options: [
            .custom(
                "shard", .text, "K/N",
                "send the Kth of N shares of this list, for N runs over one list; every row is in exactly one share; N is at most \(grouped(UInt64(ListShard.countMax)))"
            ) { (text, options) throws(BroadsideError) in
                guard let shard = ListShard(text) else {
                    throw .usage(
                        "shard",
                        "'\(text)' is not a share: write K/N, the Kth of N shares, such as 1/4; a list has "
                            + "at most \(grouped(UInt64(ListShard.countMax))) shares")
                }
                options.shard = shard
            },
            FleetOptions.part,
            FleetOptions.campaignID,
            filter,
            .file(
                "suppress", \.suppress,
                "suppression list, in any list format: rows with these tokens end as skipped (Suppressed)"
            ),
            duplicates,
        ])

    private static let filter = Option<SendOptions>(
        OptionDescription(
            "where", .text, "'COLUMN OP VALUES'",
            "send only rows that meet this condition, such as 'country = FR,BE' or 'version >= 5.2.0'; other rows end as skipped (Filtered); OP is =, !=, <, <=, > or >=; may be repeated, and a row must then meet all conditions",
            isRepeatable: true)
    ) { (arguments, options) throws(BroadsideError) in
        let conditions = arguments.strings("where")
        guard !conditions.isEmpty else { return }
        do throws(RowFilter.Problem) {
            options.rules.filter = try RowFilter(conditions)
        } catch {
            throw .usage("where", error.message)
        }
    }

    /// Handling of duplicates of a token.
    private enum DuplicatePolicy: String, CaseIterable {
        case send
        case skip
    }

    private static let duplicates = Option<SendOptions>(
        OptionDescription(
            "duplicates", .choice(DuplicatePolicy.allCases.map(\.rawValue)), "send|skip",
            "skip: later rows with the same token end as skipped (Duplicate); send: they are sent (default: send)"
        )
    ) { (arguments, options) throws(BroadsideError) in
        if let policy = try arguments.choice("duplicates", DuplicatePolicy.self) {
            options.skipsDuplicates = policy == .skip
            options.sendsDuplicates = policy == .send
        }
    }
}
