import Broadside

/// The options that name a list and say which of its rows are meant: the same in every run over one.
enum ListOptions {
    /// Which list, and how it is written.
    static let list: [OptionDescription] = [
        .init(
            "tokens", "FILE",
            "token list: a device token a line, CSV or TSV with a header, JSON Lines; .gz and .zst as they are; - for standard input"
        ),
        .init(
            "format", "lines|csv|tsv|jsonl",
            "how the list is written (default: as its name and first bytes say)"),
        .init("token-column", "NAME", "the column that holds the token (default: token)"),
    ]

    static let maxInvalid = OptionDescription(
        "max-invalid", "P",
        "stop when more than P percent of the rows read so far are invalid, looked at after 1,000 rows before anything is sent, then every 10,000 and at the end; 100: never (default: 10)"
    )

    static let limit = OptionDescription("limit", "N", "only the first N rows")

    static let whichRows = OptionSection(
        title: "Which rows",
        options: [
            .init("shard", "K/N", "only the Kth of N parts of the list, every row in exactly one"),
            .init(
                "suppress", "FILE",
                "opt-outs, a token list in any format: their rows end as skipped, Suppressed"),
            .init(
                "duplicates", "send|skip",
                "skip: later copies of a token end as skipped, Duplicate (default: send)"),
        ])

    /// What becomes of later copies of a token.
    private enum DuplicatePolicy: String, CaseIterable {
        case send
        case skip
    }

    /// Reads all but `--tokens`.
    static func read(
        _ arguments: ParsedArguments, into options: inout SendOptions
    ) throws(CommandFailure) {
        options.format = try arguments.choice("format", TokenListFormat.self)
        options.tokenColumn = arguments.string("token-column")
        options.limit = try arguments.integer("limit", in: 1...(1 << 40)).map { UInt64($0) }
        if let text = arguments.string("shard") {
            guard let shard = ListShard(text) else {
                throw .usage(
                    "--shard '\(text)' is no part: write K/N, the Kth of N parts, such as 1/4")
            }
            options.shard = shard
        }
        options.suppress = arguments.string("suppress")
        let duplicates = try arguments.choice("duplicates", DuplicatePolicy.self)
        options.skipsDuplicates = duplicates == .skip
    }
}
