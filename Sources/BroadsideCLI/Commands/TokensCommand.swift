import BroadsideCampaigns
import BroadsideSupport

/// `broadside tokens`: checks a list before the campaign.
enum TokensCommand: Command {
    static let name = "tokens"

    static let description: CommandDescription = CommandDescription(
        name: name,
        summary: "check | dedupe: check a token list before it is sent",
        usage: "check|dedupe --tokens FILE [OPTIONS]",
        discussion: """
            check   reads a list once, as send does, and reports rows, tokens, digits, capitals, and
                    invalid rows with their line numbers; warns of words such as NULL, and of a token
                    that may be two tokens joined
            dedupe  writes the list with one row per token, or with --by one per user: the first or the
                    newest row; keeps the order, all bytes, and rows without a token

            Nothing is sent. Exit codes: 0 done; 2 the list can't be read, or send would refuse it: no
            valid row, or more than --max-invalid percent invalid rows; 5 a file or disk error.
            """,
        sections: [group.section.adding([CampaignOptions.file("the list", of: "check")])],
        examples: [
            .init(
                "Check a list, and count duplicates",
                "broadside tokens check --tokens tokens.csv --duplicates"),
            .init(
                "Keep the newest row of each token",
                #"""
                broadside tokens dedupe --tokens tokens.csv \
                    --output tokens.once.csv --registered-column registered_at
                """#),
            .init(
                "Keep the newest device of each user",
                #"""
                broadside tokens dedupe --tokens tokens.csv --by user_id \
                    --newest registered_at --output one-per-user.csv
                """#),
        ],
        subcommands: ["check", "dedupe"],
        subcommandOptions: ownOptions,
        campaignKeys: ["tokens", "format", "token-column", "max-invalid"],
        run: { (arguments) throws(BroadsideError) in
            let word = try arguments.expectSubcommand(of: description)
            try arguments.rejectOtherOptions(than: word, of: description)
            try arguments.require(word == "dedupe" ? [.list, .output] : [.list])
            var values = Values()
            try group.read(arguments, into: &values)
            do throws(BroadsideError) {
                if word == "dedupe" { try dedupe(values) } else { try check(values) }
            } catch {
                throw error.ofRepeatableCommand
            }
            return 0
        })

    /// Options of each subcommand.
    private static let ownOptions: [String: Set<String>] = [
        "check": [
            "tokens", "format", "token-column", "duplicates", "max-invalid", "json", "campaign",
        ],
        "dedupe": [
            "tokens", "format", "token-column", "output", "registered-column", "by", "newest",
        ],
    ]

    private static func dedupe(_ values: Values) throws(BroadsideError) {
        standardError(
            try TokensDedupe.run(
                values.list, output: values.output ?? "-", rule: try values.rule()))
    }

    private static func check(_ values: Values) throws(BroadsideError) {
        let check = try TokensCheck(values.list, countsDuplicates: values.countsDuplicates)
        let report = check.report
        print(values.isJSON ? report.json : report.text, terminator: "")
        if let refusal = check.refusal { throw refusal }
    }

    /// The values of the command's options.
    private struct Values: ListValues {
        var list = TokensOptions(tokens: "")
        var output: String?
        var registeredColumn: String?
        var newestColumn: String?
        var byColumn: String?
        var countsDuplicates = false
        var isJSON = false

        var format: TokenListFormat? {
            get { list.format }
            set { list.format = newValue }
        }
        var tokenColumn: String? {
            get { list.tokenColumn }
            set { list.tokenColumn = newValue }
        }
        var maxInvalid: Double {
            get { list.maxInvalid }
            set { list.maxInvalid = newValue }
        }

        static var defaults: Values { Values() }

        /// The rule of `dedupe`.
        func rule() throws(BroadsideError) -> TokensDedupe.Rule {
            guard registeredColumn == nil || newestColumn == nil else {
                throw .usage("newest", "and --registered-column mean the same: use one of them")
            }
            return TokensDedupe.Rule(
                column: byColumn, newestColumn: newestColumn ?? registeredColumn,
                newestOption: newestColumn == nil ? "registered-column" : "newest")
        }
    }

    private static let group = OptionGroup<Values>(
        title: "Options",
        options: [
            .custom("tokens", .file(.read), "FILE", "the token list") {
                (text, values) throws(BroadsideError) in values.list.tokens = text
            },
            .format,
            .tokenColumn,
            .flag(
                "duplicates", \.countsDuplicates,
                "check: count duplicate tokens exactly; above a million tokens this writes 32 bytes per row to TMPDIR (default: /var/tmp)"
            ),
            .percentage(
                "max-invalid", \.maxInvalid,
                "check: exit 2 if more than P percent of the rows are invalid, checked as in send; 100: never"
            ),
            .file(
                "output", \.output, use: .written,
                "dedupe: write the list here, completely or not at all"),
            .text(
                "registered-column", "NAME", \.registeredColumn,
                "dedupe: column with the time of registration (Unix time in seconds to nanoseconds, or ISO 8601, read as UTC if it has no offset); keep the newest row of each token; unreadable times count as the oldest"
            ),
            .text(
                "by", "COLUMN", \.byColumn,
                "dedupe: keep one row per value of this column, such as a user's ID, instead of one per token; rows without a value, or with a word such as NULL, stay"
            ),
            .text(
                "newest", "COLUMN", \.newestColumn,
                "dedupe: keep the row with the newest time in this column, as --registered-column does (default: the first row)"
            ),
            .flag("json", \.isJSON, "check: print the findings as JSON"),
        ])
}
