import Broadside
import Support

/// `broadside tokens`: checks a list before the campaign.
enum TokensCommand {
    static let description: CommandDescription = CommandDescription(
        name: "tokens",
        summary: "check | dedupe: look at a token list before it is sent",
        usage: "check|dedupe --tokens FILE [OPTIONS]",
        discussion: """
            check   reads a list once and counts rows, tokens, invalid rows and their line numbers, digits,
                    capitals; what send would make of it
            dedupe  writes the list with one row a token: its first, or its newest; order and bytes
                    stay, rows without a token too

            Nothing is sent. Exit codes: 0 done; 2 it could not be read as a list, or check found
            what send refuses: no valid row, or more than --max-invalid of them invalid; 5 a file
            or disk error.
            """,
        sections: [group.section.adding([CampaignOptions.file("check: the list")])],
        examples: [
            .init(
                "Look at a list, and count what is in it twice",
                "broadside tokens check --tokens tokens.csv --duplicates"),
            .init(
                "Keep the newest row of each token",
                #"""
                broadside tokens dedupe --tokens tokens.csv \
                    --output tokens.once.csv --registered-column registered_at
                """#),
        ],
        subcommands: ["check", "dedupe"],
        campaignKeys: ["tokens", "format", "token-column", "max-invalid"],
        run: { (arguments) throws(BroadsideError) in
            let word = try arguments.expectSubcommand(of: description)
            try refuseOthers(word, arguments)
            try arguments.require(word == "dedupe" ? [.list, .output] : [.list])
            var values = Values()
            try group.read(arguments, into: &values)
            if word == "dedupe" {
                standardError(
                    try TokensDedupe.run(
                        values.list, output: values.output ?? "-",
                        registeredColumn: values.registeredColumn))
                return 0
            }
            let check = try TokensCheck(values.list, countsDuplicates: values.countsDuplicates)
            let report = check.report
            print(values.isJSON ? report.json : report.text, terminator: "")
            if let refusal = check.refusal { throw refusal }
            return 0
        })

    /// What the command is asked to do.
    private struct Values: ListValues {
        var list = TokensOptions(tokens: "")
        var output: String?
        var registeredColumn: String?
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
                "check: count later copies of a token, exactly; beyond a million tokens it spills 32 bytes per row to TMPDIR (default: /var/tmp)"
            ),
            .percentage(
                "max-invalid", \.maxInvalid,
                "check: exit 2 where more than P percent of the rows are invalid, judged as send does; 100: never"
            ),
            .file(
                "output", \.output, use: .written,
                "dedupe: where the list goes; it appears whole or not at all"),
            .text(
                "registered-column", "NAME", \.registeredColumn,
                "dedupe: when a token was registered (Unix seconds, milliseconds, ISO 8601): the newest row stays; what can't be read is the oldest"
            ),
            .flag("json", \.isJSON, "check: print what was found as JSON"),
        ])

    /// An option of the other work would be ignored, and nobody would know.
    private static func refuseOthers(
        _ word: String, _ arguments: ParsedArguments
    ) throws(BroadsideError) {
        let others =
            word == "check"
            ? ["output", "registered-column"] : ["campaign", "duplicates", "json", "max-invalid"]
        for name in others where arguments.has(name) {
            throw .usage(name, "is not an option of tokens \(word): take it out")
        }
    }
}
