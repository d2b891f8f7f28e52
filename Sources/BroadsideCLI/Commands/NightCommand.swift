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
            date. DIR must exist; DIR/NAME is created. What a start does depends on the night:

            new       begins the ledger
            stopped   continues the night, also after midnight, until --night-length after its start
            finished  sends nothing, and begins no other night after midnight, until --night-length
                      after the night's start, or 20 hours after its first start if that is sooner. A
                      start on the night's own date, but after --night-length, warns that it may be
                      meant for another night
            changed   sends nothing (exit 2) if a finished night is started with another --tokens,
                      --where, --shard, --part, --split, --topic, --push-type, --environment or
                      --endpoint. Nothing is sent to Apple (exit 2) if another server has rows of an
                      unfinished night
            lost      sends nothing (exit 2) if DIR/NAME/nights has the date, but its ledger is gone
            earlier   rows that remain of an earlier night cause a warning; only --date continues that
                      night. A --date that was never started, although a later date was, also causes
                      a warning

            --retry never begins a night (exit 2). With --deliver-at, rows are due on the date of --on,
            whose default is not DATE. Tokens that earlier nights of NAME report as dead are skipped,
            also with --skip-dead DIR, but not with --skip-dead none. Each start writes the pages
            DIR/NAME/DATE/report.html and DIR/NAME/index.html.

            You can repeat the command until the exit code is 0, 2, 4 or 6: no row is sent twice. But do
            not repeat it once --deadline has passed (3): repeats send nothing, and after
            --night-length, a repeat begins the next night. A script that repeats the command should
            give each repeat the same --date: then no repeat begins another night. For a service
            manager, --date-file FILE has this effect: the first start writes its date to FILE, and the
            repeats read it, for 20 hours after the night's first start.

            Exit codes: 0 the night is complete, now or before this start; 1 failed: APNs cannot be
            reached, or this machine lacks something; 2 the request is wrong, nothing was sent; 3 rows
            remain, a repeat continues; 4 the campaign as a whole is wrong, stopped early; 5 a file or
            disk error; 6 finished, but rows are failed or unknown; 7 another process uses this night
            or another one, or the ledger is an old copy.
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
        adviseWrongCampaign: naming,
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

    /// Adds today's date to the error of a start that would send a night.
    private static func naming(
        _ error: BroadsideError, _ arguments: ParsedArguments
    ) -> BroadsideError {
        let others = ["date", "dry-run", "preview", "print-campaign"]
        return others.contains { arguments.has($0) } ? error : NightRun.namingToday(error)
    }

    private static func options(
        from arguments: ParsedArguments
    ) throws(BroadsideError) -> NightOptions {
        do throws(BroadsideError) {
            return try values(of: arguments)
        } catch {
            throw naming(error, arguments)
        }
    }

    private static func values(
        of arguments: ParsedArguments
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
