import Broadside

/// `broadside tokens`: a list, looked at before a night is bet on it.
enum TokensCommand {
    static let description: CommandDescription = CommandDescription(
        name: "tokens",
        summary: "check | dedupe: look at a token list before it is sent",
        usage: "check|dedupe --tokens FILE [OPTIONS]",
        discussion: """
            check   reads a list once and counts rows, tokens, rows that are none and where, digits,
                    capitals; what send would make of it
            dedupe  writes the list with one row a token: its first, or its newest; order and bytes
                    stay, rows without a token too

            Nothing is sent. Exit codes: 0 done; 2 it could not be read as a list, or check found
            what send refuses: no valid row, or more than --max-invalid of them invalid; 5 a file
            or disk error.
            """,
        sections: [
            OptionSection(
                title: "Options",
                options: [
                    .init("tokens", "FILE", "the token list"),
                    .init(
                        "format", "lines|csv|tsv|jsonl",
                        "how the list is written (default: as its name and first bytes say)"),
                    .init(
                        "token-column", "NAME", "the column that holds the token (default: token)"),
                    .init(
                        "duplicates", nil,
                        "check: count later copies of a token, exactly; beyond a million tokens it spills 32 bytes a row to TMPDIR (default: /var/tmp)"
                    ),
                    .init(
                        "max-invalid", "P",
                        "check: exit 2 where more than P percent of the rows are invalid, judged as send does; 100: never (default: 10)"
                    ),
                    .init(
                        "output", "FILE",
                        "dedupe: where the list goes; it appears whole or not at all"),
                    .init(
                        "registered-column", "NAME",
                        "dedupe: when a token was registered (Unix seconds, milliseconds, ISO 8601): the newest row stays; what can't be read is the oldest"
                    ),
                    .init("json", nil, "check: print what was found as JSON"),
                ])
        ],
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
        run: { (arguments) throws(CommandFailure) in
            let word = try arguments.expectSubcommand(of: description)
            try refuseOthers(word, arguments)
            var options = TokensOptions(tokens: try arguments.required("tokens", "FILE"))
            options.format = try arguments.choice("format", TokenListFormat.self)
            options.tokenColumn = arguments.string("token-column")
            if let value = try arguments.percentage("max-invalid") { options.maxInvalid = value }
            let output = word == "dedupe" ? try arguments.required("output", "FILE") : nil
            do throws(BroadsideError) {
                if word == "dedupe" {
                    standardError(
                        try TokensDedupe.run(
                            options, output: output ?? "-",
                            registeredColumn: arguments.string("registered-column")))
                    return 0
                }
                let check = try TokensCheck(
                    options, countsDuplicates: arguments.has("duplicates"))
                let report = check.report
                print(arguments.has("json") ? report.json : report.text, terminator: "")
                if let refusal = check.refusal { throw refusal }
                return 0
            } catch {
                throw CommandFailure(message: error.message, exitCode: error.exitCode)
            }
        })

    /// An option of the other work would be ignored, and nobody would know.
    private static func refuseOthers(
        _ word: String, _ arguments: ParsedArguments
    ) throws(CommandFailure) {
        let others =
            word == "check"
            ? ["output", "registered-column"] : ["duplicates", "json", "max-invalid"]
        for name in others where arguments.has(name) {
            throw .usage("--\(name) is no option of tokens \(word): take it out")
        }
    }
}
