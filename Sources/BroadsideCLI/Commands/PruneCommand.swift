import BroadsideCampaigns
import BroadsideAPNs
import BroadsideSupport

/// `broadside prune`: removes dead tokens from a list.
enum PruneCommand: Command {
    static let name = "prune"

    static let description: CommandDescription = CommandDescription(
        name: name,
        summary: "remove from a token list the tokens that ledgers report as dead",
        usage: "--ledger DIR [--ledger DIR]... --tokens FILE --output FILE|--dry-run [OPTIONS]",
        discussion: """
            Copies a list byte for byte, except the rows whose token APNs reported as dead. For each
            token, the newest response in all ledgers counts: a token that was dead on Monday, but
            was accepted on Tuesday, is kept. The list need not be the one that was sent. A token
            that is dead for one topic may be alive for another: if the rows of the ledgers have
            several topics, --topic decides. A legacy gateway (send --protocol binary) also accepts
            dead tokens, so a row that it accepted does not prove that a token is alive.

            A time of registration counts as unreadable if it is before 2009, is more than a day in the
            future, or is in seconds since 2001. A dead token with an unreadable time is kept and counted,
            but if no time in the column can be read, nothing is written. With --reasons BadDeviceToken or
            DeviceTokenNotForTopic, a ledger is refused if nearly all of its responses have such a reason,
            because its run was for another environment or topic.

            The output is written completely or not at all, and never replaces the input. Exit codes:
            0 done; 2 the request is wrong, no row has a device token, or too many rows would be
            removed; 5 a file or disk error.
            """,
        sections: [group.section.adding([CampaignOptions.file("the list and the ledger")])],
        examples: [
            .init(
                "Remove the tokens that a run found dead, and write them to a file",
                #"""
                broadside prune --ledger tonight --tokens tokens.txt \
                    --output tokens.clean.txt --removed dead.txt
                """#),
            .init(
                "The same with two runs; keep tokens that were registered again later",
                #"""
                broadside prune --ledger monday --ledger tuesday --tokens tokens.csv \
                    --output tokens.clean.csv --registered-column registered_at
                """#),
            .init(
                "Only count what would be removed, by reason",
                "broadside prune --ledger tonight --tokens tokens.txt --dry-run"),
        ],
        essentials: [
            "ledger", "tokens", "token-column", "output", "removed", "reasons", "topic",
            "registered-column", "max-removed", "dry-run",
        ],
        campaignKeys: ["tokens", "format", "token-column", "topic", "ledger"],
        run: { (arguments) throws(BroadsideError) in
            let values = try options(from: arguments)
            do throws(BroadsideError) {
                standardError(try PruneRun.run(values))
            } catch {
                throw error.ofRepeatableCommand
            }
            return 0
        })

    private static let group = OptionGroup<PruneOptions>(
        title: "Options",
        options: [
            .repeated(
                "ledger", .file(.ledger), "DIR", \.ledgers,
                "a ledger to read, or a directory with ledgers up to three levels below it; may be repeated"
            ),
            .custom("tokens", .file(.read), "FILE", "the token list") {
                (text, options) throws(BroadsideError) in options.tokens = text
            },
            .format,
            .tokenColumn,
            .custom("output", .file(.written), "FILE", "write the pruned list here") {
                (text, options) throws(BroadsideError) in options.output = text
            },
            .file(
                "removed", \.removed, use: .written,
                "write the removed rows here, below the list's header"),
            .custom(
                "reasons", .list(reasonsOfAPNs), "R,R",
                "reasons that mark a token as dead (default: Unregistered,ExpiredToken)"
            ) { (text, options) throws(BroadsideError) in options.reasons = try reasons(text) },
            .text(
                "topic", "TOPIC", \.topic,
                "topic of the list's rows, or {{column}}; responses for other topics do not count (default: the column of the ledgers' own --topic, else any topic)"
            ),
            .text(
                "registered-column", "NAME", \.registeredColumn,
                "column with the time of registration (Unix time in seconds to nanoseconds, or ISO 8601, read as UTC if it has no offset); a row is kept if this time is later than APNs' timestamp, or can't be read"
            ),
            .percentage(
                "max-removed", \.maxRemovedPercent,
                "fail if more than P percent of the rows would be removed; only for lists of 1,000 rows or more"
            ),
            .flag(
                "dry-run", \.isDryRun,
                "count the rows that would be removed, by reason; no --output is needed or written"),
        ])

    static func options(from arguments: ParsedArguments) throws(BroadsideError) -> PruneOptions {
        try arguments.rejectWords(of: description)
        try arguments.require(
            [.ledger, .list] + (arguments.has("dry-run") ? [] : [.output]))
        var options = PruneOptions.defaults
        try group.read(arguments, into: &options)
        return options
    }

    private static let reasonsOfAPNs = Reason.allCases.filter(\.isFromAPNs).map(\.text)

    private static func reasons(_ text: String) throws(BroadsideError) -> Set<Reason> {
        var reasons: Set<Reason> = []
        for name in text.split(separator: ",", omittingEmptySubsequences: false).map(String.init) {
            guard let reason = Reason(text: name), reason.isFromAPNs else {
                throw Reason.unknown(name, option: "reasons", among: reasonsOfAPNs)
                    ?? .usage(
                        "reasons",
                        "'\(name)' is not a reason of APNs: write one such as Unregistered")
            }
            reasons.insert(reason)
        }
        return reasons
    }
}

extension Reason {
    /// Returns the error for a name that is probably a misspelt reason; nil if no reason is near.
    ///
    /// - Parameter option: The option with the name, without dashes.
    static func unknown(
        _ name: String, option: String, among names: [String]
    ) -> BroadsideError? {
        nearestName(to: name, among: names).map {
            .usage(option, "'\(name)' is not a reason of APNs: did you mean \($0)?")
        }
    }
}

extension PruneOptions: ListValues {
    static var defaults: PruneOptions { PruneOptions(ledgers: [], tokens: "", output: "") }
}
