import Broadside

/// `broadside ledger`: what a run left, read.
enum LedgerCommand {
    static let description: CommandDescription = CommandDescription(
        name: "ledger",
        summary: "stats | export | verify | find | merge | repair: read what a run left",
        usage:
            "stats|export|verify|find|repair --ledger DIR [OPTIONS] | merge DIR...",
        discussion: """
            stats   counts of rows by state and reason; --json for programs
            export  the rows in list order, with state, status, reason, apns-id
            verify  checks every checksum and that every row is settled once; exit 5 names the first
                    bad place
            find    one row by --apns-id, or the rows of a --token, in one ledger or several; exit 1
                    if there is none
            merge   copies the ledgers of all shards of a campaign into one, once each is verified and
                    found to be of the same list
            repair  copies what is provably sound of a damaged ledger; all else becomes in doubt

            The list is looked for where the run read it, or at --tokens; without it the lines and
            the tokens of accepted rows are empty.
            """,
        sections: [
            OptionSection(
                title: "Options",
                options: [
                    .init(
                        "ledger", "DIR", "the ledger's directory; find: may be repeated",
                        isRepeatable: true),
                    .init("json", nil, "stats, find: as JSON"),
                    .init("tokens", "FILE", "export, find, merge, repair: the list that was sent"),
                    .init("format", "csv|jsonl", "export: how it is written (default: csv)"),
                    .init(
                        "state", "STATE",
                        "export: only rows of this state; may be repeated; remaining and in-doubt too (default: all settled)",
                        isRepeatable: true, choices: LedgerReading.stateNames),
                    .init(
                        "reason", "REASON",
                        "export: only rows with this reason, as APNs spells it; may be repeated",
                        isRepeatable: true),
                    .init(
                        "output", "FILE",
                        "export: where to, .gz and .zst packed (default: standard output); merge, repair: the new directory"
                    ),
                    .init("apns-id", "ID", "find: the row with this apns-id"),
                    .init("token", "TOKEN", "find: the rows with this device token"),
                ])
        ],
        examples: [
            .init("Count rows by state and reason", "broadside ledger stats --ledger tonight"),
            .init(
                "Write the rows that are in doubt or were given up",
                #"""
                broadside ledger export --ledger tonight --state unknown \
                    --state failed --output left.csv
                """#
            ),
            .init(
                "Make one ledger of those of all shards",
                "broadside ledger merge --output whole part1 part2 part3"),
        ],
        subcommands: ["stats", "export", "verify", "find", "merge", "repair"],
        run: { (arguments) throws(CommandFailure) in
            do {
                return try run(arguments)
            } catch let error as BroadsideError {
                throw CommandFailure(message: error.message, exitCode: error.exitCode)
            } catch let error as CommandFailure {
                throw error
            } catch {
                throw CommandFailure(message: "\(error)", exitCode: 1)
            }
        })

    private static func run(_ arguments: ParsedArguments) throws -> Int32 {
        let subcommand = try arguments.expectSubcommand(of: description, takesMore: ["merge"])
        // An option of another work would be ignored, and nobody would know.
        let own: Set<String> =
            switch subcommand {
            case "stats": ["ledger", "json"]
            case "export": ["ledger", "tokens", "format", "state", "reason", "output"]
            case "find": ["ledger", "apns-id", "token", "tokens", "json"]
            case "merge": ["output", "tokens"]
            case "repair": ["ledger", "output", "tokens"]
            default: ["ledger"]
            }
        for option in description.options where arguments.has(option.name) {
            guard own.contains(option.name) else {
                throw CommandFailure.usage(
                    "--\(option.name) is no option of ledger \(subcommand): take it out")
            }
        }
        if subcommand == "merge" { return try merge(arguments) }
        let path = try arguments.required("ledger", "DIR")
        if subcommand == "find" { return try find(arguments) }
        guard arguments.strings("ledger").count == 1 else {
            throw CommandFailure.usage("--ledger is given twice: ledger \(subcommand) takes one")
        }
        if subcommand == "repair" { return try repair(path, arguments) }
        let ledger = try LedgerReading(path: path)
        switch subcommand {
        case "stats": try stats(ledger, arguments)
        case "export": try export(ledger, arguments)
        default: print(try ledger.verify())
        }
        return 0
    }

    private static func merge(_ arguments: ParsedArguments) throws -> Int32 {
        let output = try arguments.required("output", "DIR")
        let ledgers = Array(arguments.words.dropFirst())
        guard !ledgers.isEmpty else {
            throw CommandFailure.usage(
                "merge wants the ledgers of all shards: merge --output DIR DIR...")
        }
        print(
            try LedgerMerge.run(
                output: output, ledgers: ledgers, tokens: arguments.string("tokens")))
        return 0
    }

    private static func stats(_ ledger: LedgerReading, _ arguments: ParsedArguments) throws {
        let statistics = try ledger.statistics()
        let text =
            arguments.has("json")
            ? String(decoding: statistics.json(), as: UTF8.self) : statistics.countsText
        print(text, terminator: "")
    }

    private static func export(_ ledger: LedgerReading, _ arguments: ParsedArguments) throws {
        try ledger.checkOutput(arguments.string("output"))
        let output = try OutputFile(arguments.string("output"))
        try ledger.export(
            tokens: arguments.string("tokens"), format: arguments.string("format") ?? "csv",
            states: arguments.strings("state"), reasons: arguments.strings("reason"),
            output: { (bytes) throws(BroadsideError) in try output.write(bytes) })
        try output.finish()
    }

    private static func repair(_ path: String, _ arguments: ParsedArguments) throws -> Int32 {
        let output = try arguments.required("output", "DIR")
        print(
            try LedgerRepair.run(path, output: output, tokens: arguments.string("tokens")))
        return 0
    }

    private static func find(_ arguments: ParsedArguments) throws -> Int32 {
        let (identifier, token) = (arguments.string("apns-id"), arguments.string("token"))
        guard (identifier == nil) != (token == nil) else {
            throw CommandFailure.usage("find wants one of --apns-id ID and --token TOKEN")
        }
        var rows: [FoundRow] = []
        let ledgers = try arguments.strings("ledger").map { try LedgerReading(path: $0) }
        for ledger in ledgers {
            rows += try ledger.find(
                notificationID: identifier, token: token, tokens: arguments.string("tokens"))
        }
        if arguments.has("json") {
            print("[" + rows.map { "\n" + $0.json }.joined(separator: ",") + "\n]")
        } else {
            for row in rows { print((ledgers.count > 1 ? "\(row.ledger): " : "") + row.text) }
        }
        if rows.isEmpty {
            standardErrorLine(
                "broadside: no such row in \(ledgers.count == 1 ? "this ledger" : "these ledgers")")
        }
        return rows.isEmpty ? 1 : 0
    }
}
