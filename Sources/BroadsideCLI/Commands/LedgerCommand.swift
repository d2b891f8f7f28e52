import BroadsideCampaigns
import BroadsideAPNs
import BroadsideLedgerFormat
import BroadsideSupport

/// `broadside ledger`: reads the results of runs.
enum LedgerCommand: Command {
    static let name = "ledger"

    static let description: CommandDescription = CommandDescription(
        name: name,
        summary: "stats | export | verify | find | merge | repair | forget: the results of runs",
        usage:
            "stats|export|verify|find|repair --ledger DIR [OPTIONS] | merge DIR... | forget --tokens FILE|--token TOKEN --ledger DIR...",
        discussion: """
            stats   counts of rows by state and reason; --json for programs
            export  the rows in list order, with state, status, reason, apns-id; with --follow as they
                    settle, until the run ends
            verify  checks every checksum, and that every row is settled once; exit 5 names the first
                    bad record
            find    one row by --apns-id, or the rows of a --token, in one or several ledgers; DIR may
                    have ledgers up to three levels below it. If no row is found, the exit code is 1.
                    If a ledger can't be searched, a message names it, the rows of the other ledgers
                    are printed, and the exit code is 5 or 2
            merge   copies the ledgers of all shards of a list, or of all parts of a campaign, into one,
                    after verifying each and checking that they belong together
            repair  copies the provably intact part of a damaged ledger; all other rows become in doubt
            forget  erases devices from ledgers for good: replaces their tokens and fingerprints by a
                    hash with a random key, and discards the key. Counts and states stay. Exports show
                    forgotten- and the hash. prune, --skip-dead, --cap and find do not find the
                    devices, and no resume sends to them. At a terminal, forget asks first. DIR may
                    have ledgers up to three levels below it. If devices can't be erased from a
                    ledger, or its campaign is unfinished and its list can't be read, a message
                    names it, they are erased from the other ledgers, and the exit code is 7 if
                    the ledger is in use, otherwise 5 or 2. Lists, exports, summaries and backups
                    elsewhere stay unchanged

            The list is read from where the run read it, or from --tokens. If that file is missing or is
            another list, an export prints a warning, and lacks line numbers and the tokens of accepted
            rows. In a merged campaign, each part has its own list and is a ledger itself:
            DIR/part-0001 and so on.
            """,
        sections: [group.section],
        examples: [
            .init("Count rows by state and reason", "broadside ledger stats --ledger tonight"),
            .init(
                "Export the rows that are unknown or failed",
                #"""
                broadside ledger export --ledger tonight --state unknown \
                    --state failed --output left.csv
                """#
            ),
            .init(
                "Merge the ledgers of all shards into one",
                "broadside ledger merge --output whole part1 part2 part3"),
        ],
        subcommands: ["stats", "export", "verify", "find", "merge", "repair", "forget"],
        subcommandOptions: ownOptions,
        run: { (arguments) throws(BroadsideError) in try run(arguments) })

    /// Options of each subcommand.
    private static let ownOptions: [String: Set<String>] = [
        "stats": ["ledger", "json"],
        "export": [
            "ledger", "tokens", "format", "state", "reason", "arm", "columns", "output", "follow",
            "cursor",
        ],
        "find": ["ledger", "apns-id", "token", "tokens", "json"],
        "merge": ["output", "tokens"],
        "repair": ["ledger", "output", "tokens"],
        "forget": ["ledger", "tokens", "token-column", "token", "dry-run", "yes"],
        "verify": ["ledger"],
    ]

    /// The values of the command's options.
    private struct Values: OptionValues {
        var ledgers: [String] = []
        var isJSON = false
        var tokens: String?
        var format = ExportFormat.csv
        var states: [String] = []
        var reasons: [String] = []
        var arm: String?
        var columns: Set<ExportColumn> = []
        var output: String?
        var follows = false
        var cursor: String?
        var notificationID: String?
        var token: String?
        var tokenColumn: String?
        var isDryRun = false
        var isConfirmed = false

        static let defaults = Values()
    }

    private static let group = OptionGroup<Values>(
        title: "Options",
        options: [
            .repeated(
                "ledger", .file(.ledger), "DIR", \.ledgers,
                "the ledger's directory; for find and forget, it may be a folder of ledgers, and may be repeated"
            ),
            .flag("json", \.isJSON, "stats, find: print JSON"),
            .file(
                "tokens", \.tokens,
                "export, find, merge, repair: the list that was sent; forget: the devices"),
            .choice(
                "format", \.format,
                "export: output format; if it is not given, the ending of --output decides"),
            .repeated(
                "state", .choice(LedgerReader.stateNames), "STATE", \.states,
                "export: only rows in this state, including remaining and in-doubt; may be repeated (default: all settled)"
            ),
            .repeated(
                "reason", .known(Reason.allCases.map(\.text)), "REASON", \.reasons,
                "export: only rows with this reason, as APNs spells it; may be repeated"),
            .text("arm", "ARM", \.arm, "export: only rows in this arm of the campaign's --split"),
            .custom(
                "columns", .choice(ExportColumn.allCases.map { "+" + $0.rawValue }), "+COLUMN",
                "export: add this column: +unique_id is the apns-unique-id, which APNs returns in the development environment"
            ) { (text, values) throws(BroadsideError) in values.columns = try columns(text) },
            .file(
                "output", \.output, use: .written,
                "export: output file (default: standard output), readable only by its owner, and compressed if its name ends with .gz or .zst; merge, repair: the new directory"
            ),
            .flag(
                "follow", \.follows,
                "export: write rows as they settle, in that order, until the run ends; appends to --output"
            ),
            .file(
                "cursor", \.cursor, use: .written,
                "export: with --follow, a file that records the position, so that a restarted export writes each row once"
            ),
            .text("apns-id", "ID", \.notificationID, "find: the row with this apns-id"),
            .text(
                "token", "TOKEN", \.token,
                "find: the rows with this device token; forget: the device with this token"),
            .text(
                "token-column", "NAME", \.tokenColumn,
                "forget: column of --tokens with the device tokens (default: token)"),
            .flag(
                "dry-run", \.isDryRun, "forget: print what would be erased, and change nothing"),
            .flag("yes", \.isConfirmed, "forget: do not ask for confirmation"),
        ])

    /// Returns the columns that `--columns` adds.
    private static func columns(_ text: String) throws(BroadsideError) -> Set<ExportColumn> {
        guard text.hasPrefix("+"), let column = ExportColumn(rawValue: String(text.dropFirst()))
        else {
            throw .usage(
                "columns",
                "'\(printable(text))' is not a column that can be added: write +unique_id, or "
                    + "leave out --columns")
        }
        return [column]
    }

    private static func run(_ arguments: ParsedArguments) throws(BroadsideError) -> Int32 {
        let subcommand = try arguments.expectSubcommand(
            of: description, takesMore: ["merge", "forget"])
        if subcommand == "merge", arguments.has("ledger") {
            let output = arguments.string("output") ?? "DIR"
            let ledgers = arguments.strings("ledger") + arguments.words.dropFirst()
            throw .usage(
                "ledger",
                "is not an option of ledger merge, which takes ledgers without --ledger: "
                    + "write broadside ledger merge --output "
                    + ([output] + ledgers).map(shellWord).joined(separator: " "))
        }
        try arguments.rejectOtherOptions(than: subcommand, of: description)
        var values = Values.defaults
        try group.read(arguments, into: &values)
        if subcommand == "export", !arguments.has("format") {
            values.format = try format(of: values.output)
        }
        if subcommand == "merge" {
            return try merge(Array(arguments.words.dropFirst()), values, arguments)
        }
        try arguments.require(required(by: subcommand))
        let path = try arguments.required("ledger", "DIR")
        if subcommand == "find" { return try find(values) }
        if subcommand == "forget" {
            return try forget(values, arguments)
        }
        guard values.ledgers.count == 1 else {
            throw .usage("ledger", "is given twice: ledger \(subcommand) takes one")
        }
        if subcommand == "repair" {
            let output = try arguments.required("output", "DIR")
            print(try LedgerRepair.run(path, output: output, tokens: values.tokens))
            return 0
        }
        guard values.cursor == nil || values.follows else {
            throw .usage("cursor", "works with --follow only: add --follow")
        }
        if values.follows { return try follow(path, values) }
        let ledger = try LedgerReader(path: path)
        ledger.warnIfOldCopy()
        switch subcommand {
        case "stats":
            let statistics = try ledger.statistics()
            printText(
                values.isJSON
                    ? String(decoding: statistics.json(), as: UTF8.self)
                    : statistics.countsText + (ledger.broadcastText ?? "")
                        + (statistics.doubtAdvice ?? ""))
        case "export":
            try refuseMisspelt(values.reasons, ledger)
            try export(ledger, values)
        default: printText(try ledger.verify() + "\n")
        }
        return 0
    }

    /// Options that a subcommand other than `merge` requires.
    private static func required(by subcommand: String) -> [RequiredOption] {
        switch subcommand {
        case "find": [.ledger, RequiredOption("apns-id", "ID", or: [("token", "TOKEN")])]
        case "repair": [.ledger, RequiredOption("output", "DIR")]
        case "forget": [RequiredOption("tokens", "FILE", or: [("token", "TOKEN")]), .ledger]
        default: [.ledger]
        }
    }

    /// Returns the format that the name of an export's file implies; CSV if it implies none.
    private static func format(of output: String?) throws(BroadsideError) -> ExportFormat {
        switch output.flatMap(ExportFormat.implied) {
        case .format(let format): return format
        case .unknown(let ending):
            throw .usage(
                "output",
                "ends with \(ending), but an export is CSV or JSON Lines: end the name with .csv or "
                    + ".jsonl, or add --format csv or --format jsonl")
        case nil: return .csv
        }
    }

    private static func forget(
        _ values: Values, _ arguments: ParsedArguments
    ) throws(BroadsideError) -> Int32 {
        if values.token != nil, let name = ["tokens", "token-column"].first(where: arguments.has) {
            throw .usage(name, "and --token exclude each other: give one of them")
        }
        let directories = values.ledgers + arguments.words.dropFirst()
        try LedgerErasure.run(
            tokens: values.token.map { .single($0) } ?? .file(values.tokens ?? ""),
            tokenColumn: values.tokenColumn, ledgers: directories,
            isDryRun: values.isDryRun, isConfirmed: values.isConfirmed,
            report: { printText($0 + "\n") })
        return 0
    }

    /// Refuses a reason that resembles a known one, because it is probably misspelt. Other unknown
    /// reasons may come from a relay, and so may every reason that the ledger has.
    private static func refuseMisspelt(
        _ reasons: [String], _ ledger: LedgerReader
    ) throws(BroadsideError) {
        let known = Reason.allCases.map(\.text)
        for name in reasons where Reason(text: name) == nil {
            guard let error = Reason.unknown(name, option: "reason", among: known),
                try ledger.statistics().reasons[name] == nil
            else { continue }
            throw error
        }
    }

    private static func merge(
        _ ledgers: [String], _ values: Values, _ arguments: ParsedArguments
    ) throws(BroadsideError) -> Int32 {
        guard !ledgers.isEmpty else {
            throw .request(
                "merge needs \(arguments.has("output") ? "" : "--output and ")the ledgers of all "
                    + "shards or parts: merge --output DIR DIR...")
        }
        let output = try arguments.required("output", "DIR")
        print(try LedgerMerge.run(output: output, ledgers: ledgers, tokens: values.tokens))
        return 0
    }

    private static func export(
        _ ledger: LedgerReader, _ values: Values
    ) throws(BroadsideError) {
        try ledger.checkOutput(values.output)
        // As private as the ledger, because it contains device tokens.
        let output = try OutputFile(values.output, permissions: 0o600)
        // The first part of a CSV export is its header.
        var parts = values.format == .csv ? -1 : 0
        try ledger.writeExport(
            tokens: values.tokens, format: values.format, states: values.states,
            reasons: values.reasons, arm: values.arm, columns: values.columns,
            output: { (bytes) throws(BroadsideError) in
                if bytes.byteCount > 0 { parts += 1 }
                try output.write(bytes)
            })
        try output.finish()
        if parts <= 0 { try reportNoRow(ledger, values) }
    }

    /// Reports that an export has no row, and adds a hint about the rows that the ledger has.
    private static func reportNoRow(
        _ ledger: LedgerReader, _ values: Values
    ) throws(BroadsideError) {
        var text = "broadside: 0 rows are exported"
        if !values.reasons.isEmpty {
            let counts = try ledger.statistics().reasons
            let reasons = counts.sorted { $0.key < $1.key }
            let listed = reasons.prefix(20).map { "\(grouped($0.value)) \(printable($0.key))" }
            text +=
                ": the ledger has "
                + (listed.isEmpty ? "no row with a reason" : listed.joined(separator: ", "))
            let others =
                values.states.map { "--state \(printable($0))" }
                + (values.arm.map { ["--arm \(printable($0))"] } ?? [])
            if !others.isEmpty, values.reasons.contains(where: { counts[$0] != nil }) {
                text += ", but no row with this --reason meets \(others.joined(separator: " and "))"
            }
        } else if !values.states.isEmpty || values.arm != nil {
            text += ": ledger stats counts the rows in each \(values.arm == nil ? "state" : "arm")"
        }
        standardErrorLine(text)
    }

    private static func follow(
        _ path: String, _ values: Values
    ) throws(BroadsideError) -> Int32 {
        // The follower reports a ledger that can't be read.
        if let ledger = try? LedgerReader(path: path) {
            try refuseMisspelt(values.reasons, ledger)
            ledger.warnIfOldCopy()
        }
        var request = LedgerFollower.Request(ledger: path)
        request.tokens = values.tokens
        request.format = values.format
        request.states = values.states
        request.reasons = values.reasons
        request.arm = values.arm
        request.columns = values.columns
        request.output = values.output
        request.cursor = values.cursor
        if try LedgerFollower(request).run() == .rowsAreLeft {
            standardErrorLine(
                "broadside: the run has ended, but rows remain: after a resume, follow again "
                    + "with \(values.cursor == nil ? "a" : "the same") --cursor to get each row once"
            )
        }
        return 0
    }

    private static func find(_ values: Values) throws(BroadsideError) -> Int32 {
        guard (values.notificationID == nil) != (values.token == nil) else {
            throw .request("find needs either --apns-id ID or --token TOKEN")
        }
        var rows: [FoundRow] = []
        // Exit code of an incomplete search; 0 if all ledgers were searched.
        var failure: Int32 = 0
        let ledgers = try searchable(values.ledgers, &failure)
        ledgers.warn(option: "ledger")
        if !ledgers.closedLedgers.isEmpty { failure = max(failure, ExitCode.disk) }
        for path in ledgers.paths {
            do throws(BroadsideError) {
                let ledger = try LedgerReader(path: path)
                ledger.warnIfOldCopy()
                rows.add(
                    try ledger.find(
                        notificationID: values.notificationID, token: values.token,
                        tokens: values.tokens))
            } catch {
                // If one of several ledgers can't be searched, the others are still searched.
                guard values.ledgers.count > 1 || ledgers.paths.count > 1,
                    error.exitCode == 5 || error.option == "ledger"
                else { throw error }
                standardErrorLine("broadside: \(error.message)")
                failure = max(failure, error.exitCode)
            }
        }
        if values.isJSON {
            print("[" + rows.map { "\n" + $0.json }.joined(separator: ",") + "\n]")
        } else {
            for row in rows {
                printText((ledgers.paths.count > 1 ? "\(row.ledger): " : "") + row.text + "\n")
            }
        }
        if rows.isEmpty {
            let searched =
                failure != 0
                ? "the ledgers that could be searched"
                : ledgers.paths.count == 1 ? "this ledger" : "these ledgers"
            standardErrorLine(
                "broadside: no such row in \(searched)"
                    + (otherPart(values.notificationID).map { " \($0)" } ?? ""))
        }
        return failure != 0 ? failure : rows.isEmpty ? 1 : 0
    }

    /// Returns the ledgers in the named directories. If some of several directories can't be
    /// searched, they are reported, and the ledgers in the others are returned.
    ///
    /// - Parameter failure: Raised to the exit code of a directory that can't be searched.
    private static func searchable(
        _ directories: [String], _ failure: inout Int32
    ) throws(BroadsideError) -> LedgerCollection {
        do throws(BroadsideError) {
            return try LedgerCollection(directories, option: "ledger")
        } catch {
            var usable: [String] = []
            var problems: [BroadsideError] = []
            for directory in directories {
                do throws(BroadsideError) {
                    _ = try LedgerCollection([directory], option: "ledger")
                    usable.append(directory)
                } catch {
                    problems.append(error)
                }
            }
            guard !usable.isEmpty, !problems.isEmpty else { throw error }
            for problem in problems {
                standardErrorLine("broadside: \(problem.message)")
                failure = max(failure, problem.exitCode)
            }
            return try LedgerCollection(usable, option: "ledger")
        }
    }

    /// Advice for an apns-id that belongs to another part of a campaign; nil for any other text.
    private static func otherPart(_ text: String?) -> String? {
        guard let text, let identifier = NotificationID(parsing: Array(text.utf8).rawSpan),
            identifier.part > 0
        else { return nil }
        return "(the apns-id belongs to row \(identifier.row) in part \(identifier.part) of "
            + "campaign \(hexadecimal(identifier.campaign))): name the ledger of this part"
    }
}
