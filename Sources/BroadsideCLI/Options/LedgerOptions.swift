import BroadsideCampaigns
import BroadsideSupport

/// Options for the path of a run's ledger, and for beginning or continuing it.
enum LedgerOptions {
    static let options: [Option<SendOptions>] = [
        .file(
            "ledger", \.ledger, use: .ledger, placeholder: "DIR",
            "directory for the results; must not exist, except with --resume and --resume-or-begin"
        ),
        use(
            "resume", .resume,
            "continue DIR's run: settled rows are not sent again; exit 2 if DIR is not a ledger, 7 if it is an old copy"
        ),
        use(
            "resume-or-begin", .resumeOrBegin,
            "like --resume, but begin a campaign if DIR does not exist or is empty: for scripts that repeat a command"
        ),
        use("must-resume", .resume, "another name of --resume"),
        .custom(
            "retry", .choice(["failed", "unknown", "failed,unknown"]), "STATES",
            "with --resume: send again the rows in these states: failed, unknown, or failed,unknown"
        ) { (text, options) throws(BroadsideError) in
            options.retry = try reopenedStates(text)
        },
    ]

    /// Creates an option that determines whether the ledger may or must exist.
    private static func use(
        _ name: String, _ use: SendOptions.LedgerUse, _ help: String
    ) -> Option<SendOptions> {
        Option(.init(name, .flag, nil, help)) { (arguments, values) throws(BroadsideError) in
            guard arguments.has(name) else { return }
            guard values.ledgerUse == .begin || values.ledgerUse == use else {
                throw .usage(
                    "resume-or-begin",
                    "and --resume exclude each other: remove one (--resume needs a ledger)")
            }
            values.ledgerUse = use
        }
    }

    /// Checks that the ledger options fit together with other options.
    static func check(
        _ options: SendOptions, _ arguments: ParsedArguments
    ) throws(BroadsideError) {
        if options.preview != nil, options.ledgerUse != .begin {
            let option =
                options.ledgerUse == .resumeOrBegin
                ? "resume-or-begin" : arguments.has("resume") ? "resume" : "must-resume"
            throw .usage(
                "preview", "shows what a new campaign sends: remove --\(option) to see that")
        }
        if !options.retry.isEmpty, options.ledgerUse == .begin {
            throw .usage("retry", "requires --resume: add --resume")
        }
    }
}
