import BroadsideCampaigns
import BroadsideSupport

/// `broadside report`: a page about one ledger or about many.
enum ReportCommand: Command {
    static let name = "report"

    static let description: CommandDescription = CommandDescription(
        name: name,
        summary: "write an HTML report of a campaign, or of many nights",
        usage:
            "--ledger DIR [--receipts FILE [--token-column NAME | --id-column NAME] [--time-column NAME] [--by COLUMN] [--json]] [--output FILE.html] | --all DIR... [--json] [--output FILE]",
        discussion: """
            Writes one HTML page about all runs of a campaign: the outcome in one sentence and one bar,
            what needs a decision, what to do next, reasons, curves, the bottleneck. The page is
            self-contained. You can write it at any time, also while the campaign is running. Clock
            times are this machine's (TZ sets the zone); start and end are also shown in UTC.

            With --receipts, the page shows how many devices opened the notification. For each arm
            of --split, it shows the 95% interval (Wilson) and the differences from the other arms
            and from the holdout (Newcombe), or that the sample is too small to tell. The file is
            CSV, TSV or JSON Lines. It has a column of times (Unix seconds or milliseconds, or ISO
            8601), and a column of apns-ids or of tokens; only tokens allow the comparison with the
            holdout. A device counts once, with its first receipt.

            With --all, the page is about many nights: one row for each, newest first, and charts of
            list size, dead tokens, speed, duration and failures. A night is marked if its list,
            dead tokens, accepted share or speed differs much from earlier nights of the same
            campaign, or if nearly all rows were skipped. Numbers and dates in a name do not count:
            'Evening 1' and 'Evening 2' are one campaign. With --json, each night is one line of
            JSON instead.

            Each DIR is a ledger, or a directory with ledgers up to three levels below
            it; other directories are named and ignored. Of several copies of a ledger, the newest
            is counted, and the others are listed as copies. At most 4,096 ledgers are read. The row
            of a night links to the night's own page if a run wrote that page with --report, if the
            ledger's directory has a report.html, or if there is a DIR.html beside DIR.

            If a ledger can't be read, its row shows the cause, the page is still written, and the exit
            code is 5. The exit code is 2 if a DIR has no ledger.
            """,
        sections: [
            OptionSection(
                title: "Options",
                options: [
                    .init("ledger", .file(.ledger), "DIR", "the ledger's directory"),
                    .init(
                        "all", .flag, nil, "one page about the ledgers of all DIRs that follow",
                        isBeforeOperands: true),
                    .init(
                        "json", .flag, nil,
                        "with --all: one line of JSON per night; with --receipts: the figures as JSON; no page"
                    ),
                    .init(
                        "receipts", .file(.read), "FILE",
                        "with --ledger: what devices reported, joined by apns_id or token"),
                    .init(
                        "token-column", .text, "NAME",
                        "with --receipts: column of the device tokens (default: found by its name, such as token)"
                    ),
                    .init(
                        "id-column", .text, "NAME",
                        "with --receipts: column of the apns-ids (default: found by its name, such as apns_id)"
                    ),
                    .init(
                        "time-column", .text, "NAME",
                        "with --receipts: column of the times (default: found by its name, such as time)"
                    ),
                    .init(
                        "by", .text, "COLUMN",
                        "with --receipts: also count opens by the values of this column; may be repeated",
                        isRepeatable: true),
                    .init(
                        "output", .file(.written), "FILE", "output file (default: standard output)"),
                ])
        ],
        examples: [
            .init(
                "Write the page about a campaign",
                "broadside report --ledger tonight --output tonight.html"),
            .init(
                "Write one page about all ledgers in a directory",
                "broadside report --all nights --output nights.html"),
            .init(
                "Include in the page what devices reported, in total and by country",
                #"""
                broadside report --ledger tonight --receipts opens.csv --by country \
                    --output tonight.html
                """#),
        ],
        run: { (arguments) throws(BroadsideError) in
            if arguments.has("all") { return try writeAll(arguments) }
            if arguments.has("json"), !arguments.has("receipts") {
                throw .usage(
                    "json",
                    "needs --all or --receipts: add one of them, or use broadside "
                        + "ledger stats --json")
            }
            try arguments.rejectWords(of: description)
            try arguments.require([RequiredOption("ledger", "DIR", or: [("all", "DIR...")])])
            let path = try arguments.required("ledger", "DIR")
            let ledger = try LedgerReader(path: path)
            ledger.warnIfOldCopy()
            try ledger.checkOutput(arguments.string("output"))
            let output = try OutputFile(arguments.string("output"))
            guard let receipts = arguments.string("receipts") else {
                if let name = columnOptions.first(where: { arguments.has($0) }) {
                    throw .usage(name, "requires --receipts: add --receipts FILE")
                }
                try ledger.writeReport(to: output)
                return 0
            }
            let report = try ReceiptsReport(
                ledger, receipts: receipts,
                columns: ReceiptColumns(
                    token: arguments.string("token-column"),
                    notification: arguments.string("id-column"),
                    time: arguments.string("time-column"), by: arguments.strings("by")))
            for line in report.warnings {
                standardErrorLine("broadside: warning: --receipts \(receipts): \(line)")
            }
            guard arguments.has("json") else {
                try report.write(to: output)
                return 0
            }
            try output.write(Array(report.json.utf8))
            try output.finish()
            return 0
        })

    /// Options that name columns of a receipts file.
    private static let columnOptions = ["token-column", "id-column", "time-column", "by"]

    private static func writeAll(_ arguments: ParsedArguments) throws(BroadsideError) -> Int32 {
        if arguments.has("ledger") {
            throw .usage("all", "and --ledger exclude each other: give one of them")
        }
        if let name = (["receipts"] + columnOptions).first(where: { arguments.has($0) }) {
            throw .usage(name, "is about one campaign: give --ledger DIR in place of --all")
        }
        guard !arguments.words.isEmpty else {
            throw .usage("all", "names no directory: write --all DIR...")
        }
        guard !arguments.words.contains("") else {
            throw .usage(
                "all",
                "has an empty name: write --all DIR... (is a variable of the script unset?)")
        }
        let ledgers = try LedgerCollection(arguments.words, option: "all")
        let path = arguments.string("output")
        try ledgers.checkOutput(path)
        let output = try OutputFile(path)
        for note in [ledgers.note, ledgers.closedNote] {
            if let note { standardErrorLine("broadside: \(note)") }
        }
        let report = try NightsReport(ledgers)
        for warning in report.warnings { standardErrorLine("broadside: warning: \(warning)") }
        let isJSON = arguments.has("json")
        if isJSON {
            try report.writeJSON(to: output)
        } else {
            try report.write(to: output, at: path)
        }
        if let failure = report.failure(isJSON: isJSON) { throw failure }
        return 0
    }
}
