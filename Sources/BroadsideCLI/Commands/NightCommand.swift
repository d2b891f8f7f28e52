import BroadsideCampaigns
import BroadsideSupport

/// `broadside night`: sends one night's campaign, with a ledger named by its date.
enum NightCommand: Command {
    static let name = "night"

    static let description: CommandDescription = CommandDescription(
        name: name,
        summary: "the nightly campaign in one command, for cron, systemd and Kubernetes",
        usage: "--campaign FILE --ledgers DIR [--date DATE] [OPTIONS OF send]",
        discussion: """
            Sends the night's campaign once, however often you start the command. The ledger is
            DIR/NAME/DATE: NAME is the campaign's name, or else the name of FILE; DATE is today's local
            date. A start begins that ledger, continues it if rows remain, or sends nothing if it is
            finished. A stopped night continues after midnight too, unless it began --night-length ago.
            Until then, a start after midnight sends nothing if the night is finished, unless the
            night's first start was 20 hours ago or earlier. If a start finds that today's night is
            finished, and began --night-length ago or earlier, it sends nothing and warns that it may be
            meant for another night. DIR must exist; DIR/NAME is created. If a finished night is started
            for other rows, another app or another server, nothing is sent (exit 2). The options compared
            are --tokens, --where, --shard, --part, --split, --topic, --push-type, --environment and
            --endpoint. Nothing is sent to Apple, either, if another server has rows of an unfinished
            night (exit 2).

            The file DIR/NAME/nights records which dates were begun. If the ledger of such a date is
            lost, that night is not begun again (exit 2). A warning names an earlier night that has rows
            remaining; it continues only with --date. --retry never begins a night (exit 2). A --date
            that was never started, although a later date was, causes a warning. With --deliver-at, rows
            are due on the date of --on, whose default is not DATE. Tokens that earlier nights of NAME
            report as dead are skipped, also with --skip-dead DIR, but not with --skip-dead none. Each
            start writes the pages DIR/NAME/DATE/report.html and DIR/NAME/index.html.

            Exit codes are those of send: 0 also if the night is finished already, 6 if rows of it are
            failed or unknown, 7 if another process is at work on it or on another night. You can
            repeat the command until the code is 0, 2, 4 or 6: no row is sent twice. But do not repeat
            it once --deadline has passed (3): repeats send nothing, and after --night-length, a repeat
            begins the next night. A script that repeats the command should give each repeat the same
            --date: then no repeat begins another night. If a service manager repeats the command,
            --date-file FILE has this effect: the first start writes its date to FILE, and the repeats
            read it, for 20 hours after the night's first start.
            """,
        sections: [section] + sendSections,
        examples: [
            .init(
                "Send tonight's campaign, or what is left of it",
                "broadside night --campaign evening.json5 --ledgers nights --keep 30"),
            .init(
                "Check during the day what the next night would send",
                "broadside night --campaign evening.json5 --ledgers nights --dry-run"),
            .init(
                "Send the rest of an earlier night",
                """
                broadside night --campaign evening.json5 --ledgers nights \\
                    --date 2026-11-20
                """),
        ],
        essentials: [
            "campaign", "ledgers", "date", "night-length", "keep", "auth-key", "rate", "canary",
            "dry-run",
        ],
        summarizeWrongCampaign: {
            SendCommand.summarizeWrongCampaign($0, $1, write: NightRun.writeSummary)
        },
        run: { (arguments) throws(BroadsideError) in
            let options = try SendCommand.read(
                arguments, options, write: NightRun.writeSummary)
            if arguments.has("print-campaign") {
                print(CampaignOptions.text(arguments, of: description), terminator: "")
                return 0
            }
            return try NightRun.run(options)
        })

    private static let group = OptionGroup<NightOptions>(
        title: "The night",
        options: [
            .file(
                "ledgers", \.ledgers, use: .folder, placeholder: "DIR",
                "folder of the nights' ledgers, DIR/NAME/DATE; it must exist"),
            .text(
                "date", "DATE", \.date,
                "the night's date, such as 2026-11-20 (default: today, or the date of a night that continues after midnight)"
            ),
            .file(
                "date-file", \.dateFile, use: .written,
                "file with the night's date for a start and its repeats, as by a service manager: the first start writes it; not used with --date"
            ),
            .duration(
                "night-length", \.nightLength, least: 1,
                "how long after its start a night may continue on the next day; at most 20h"),
            .custom(
                "keep", .number, "N",
                "after a finished night, keep the N newest dates and remove the ledgers of older finished nights (default: keep all)"
            ) { (text, options) throws(BroadsideError) in
                guard let count = Int(text), (1...NightOptions.keepLimit).contains(count) else {
                    throw .usage(
                        "keep",
                        "'\(text)' is not a whole number from 1 to \(grouped(NightOptions.keepLimit)): "
                            + "write it like 30")
                }
                options.keep = count
            },
        ])

    private static var section: OptionSection { group.section }

    /// Options that only this command has.
    static let ownNames = Set(group.options.map(\.description.name))

    /// Options that apply to a single start, so a campaign file can't have them.
    static let startNames: Set<String> = ["date", "date-file"]

    /// Options of `send` that `night` lacks. `night` determines the ledger itself. `--to` sends
    /// only a rehearsal to one device, but `night` would then record the date as sent.
    private static let excluded: Set<String> = [
        "ledger", "resume", "resume-or-begin", "must-resume", "to",
    ]

    private static var sendSections: [OptionSection] {
        SendCommand.description.sections.map { section in
            OptionSection(
                title: section.title,
                options: section.options.filter { !excluded.contains($0.name) })
        }
    }

    private static func options(
        from arguments: ParsedArguments
    ) throws(BroadsideError) -> NightOptions {
        try arguments.rejectWords(of: description)
        if !arguments.has("print-campaign") {
            try arguments.require([
                RequiredOption("campaign", "FILE"), RequiredOption("ledgers", "DIR"),
            ])
        }
        try SendCommand.require(arguments, list: .list, [])
        var options = NightOptions()
        options.campaign = arguments.string("campaign") ?? ""
        options.send.skipsOwnDead = true
        try group.read(arguments, into: &options)
        // Whether the night begins or continues is determined later.
        if !arguments.has("preview") { options.send.ledgerUse = .resumeOrBegin }
        try SendCommand.readOptions(arguments, into: &options.send)
        return options
    }
}

extension NightOptions: OptionValues {
    static var defaults: NightOptions { NightOptions() }
}
