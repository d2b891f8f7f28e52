import BroadsideCampaigns
import BroadsideSupport

/// `broadside status`: an overview of runs.
enum StatusCommand: Command {
    static let name = "status"

    static let description: CommandDescription = CommandDescription(
        name: name,
        summary: "list runs: state, progress, rate, bottleneck, time left",
        usage: "[DIR...] [--json]",
        discussion: """
            Prints one line per ledger: what its run is doing now, or how the last run ended, and when
            the campaign's first run started. Each DIR is a ledger, or a directory with ledgers below
            it (default: the current directory). It works for every run and changes nothing.

            running      rows are being sent
            paused       by broadside control; resume continues
            waiting      the run waits for its next wave
            stopping     the run waits for responses in flight, then ends
            busy         a process has the ledger open and does not respond within 10 s: it is
                         starting, finishing, hung or suspended
            complete     every row is settled; failed and unknown rows are counted
                         (send --resume --retry or night --date DATE --retry sends them again);
                         ledger stats shows all
            stopped      rows remain: send --resume or night --date DATE continues
            interrupted  the run was killed: send --resume or night --date DATE continues
            aborted      APNs refused the campaign as a whole
            error        a file, a disk or the network failed
            unreadable   the ledger can't be read: an error names the cause

            If the last run ended at its --limit, the list may have more rows: (--limit) follows the
            number of rows, and limited is true in the JSON. It is null if this is not known.

            If you may not read a directory below a DIR, it is named and skipped.

            Exit codes: 0 done; 2 a DIR has no ledger; 5 a ledger can't be read.
            """,
        sections: [
            OptionSection(
                title: "Options",
                options: [
                    .init("json", .flag, nil, "one line of JSON per ledger")
                ])
        ],
        examples: [
            .init("Show all runs in this directory", "broadside status"),
            .init("Show one run as JSON", "broadside status --json tonight"),
        ],
        run: { (arguments) throws(BroadsideError) in
            guard !arguments.words.contains("") else {
                throw .request(
                    "status has an empty name: write broadside status DIR... (is "
                        + "a variable of the script unset?)")
            }
            let words = arguments.words.isEmpty ? ["."] : arguments.words
            let ledgers = try LedgerCollection(words, option: nil)
            if let note = ledgers.closedNote { standardErrorLine("broadside: \(note)") }
            let all = try RunStatus.all(ledgers: ledgers.paths)
            for warning in all.compactMap(\.warning) {
                standardErrorLine("broadside: warning: \(warning)")
            }
            if arguments.has("json") {
                print(all.map(\.json).joined(), terminator: "")
            } else {
                printText(RunStatus.table(all))
            }
            let problems = all.compactMap(\.problem)
            for problem in problems.dropLast() {
                standardErrorLine("broadside: \(problem.message)")
            }
            if let last = problems.last { throw last }
            return 0
        })
}
