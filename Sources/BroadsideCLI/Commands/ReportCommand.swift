import Broadside
import Support

/// `broadside report`: the page about a ledger.
enum ReportCommand {
    static let description: CommandDescription = CommandDescription(
        name: "report",
        summary: "a page about a ledger: outcome, curves, reasons, connections, what to do next",
        usage: "--ledger DIR [--output FILE.html]",
        discussion: """
            Writes one HTML page about a campaign, over all its runs: the outcome in a sentence,
            curves, reasons, connections, what limited it, what to do next. It needs nothing from
            elsewhere, and may be made at any time, while the campaign is still running too.
            """,
        sections: [
            OptionSection(
                title: "Options",
                options: [
                    .init("ledger", .file(.ledger), "DIR", "the ledger's directory"),
                    .init("output", .file(.written), "FILE", "where to (default: standard output)"),
                ])
        ],
        examples: [
            .init(
                "Write the page about a campaign",
                "broadside report --ledger tonight --output tonight.html")
        ],
        run: { (arguments) throws(BroadsideError) in
            try arguments.refuseWords(of: description)
            let path = try arguments.required("ledger", "DIR")
            let ledger = try LedgerReader(path: path)
            try ledger.checkOutput(arguments.string("output"))
            try ledger.writeReport(to: try OutputFile(arguments.string("output")))
            return 0
        })
}
