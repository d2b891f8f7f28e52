import APNs
import Broadside
import Support

/// `broadside prune`.
enum PruneCommand {
    static let description: CommandDescription = CommandDescription(
        name: "prune",
        summary: "write a token list without the dead tokens that ledgers name",
        usage: "--ledger DIR [--ledger DIR]... --tokens FILE --output FILE [OPTIONS]",
        discussion: """
            Copies a list byte for byte, except the rows whose token APNs called dead. The newest
            answer on a token counts, over all ledgers: dead on Monday, accepted on Tuesday stays. The
            list may be another than was sent. What a legacy gateway accepted by saying nothing
            (send --protocol binary) proves nothing of a token and keeps none; it takes dead ones, too.

            The output appears whole or not at all, and never over the list that is read. Exit codes:
            0 done; 2 the request is wrong, or too many rows would go; 5 a file or disk error.
            """,
        sections: [group.section.adding([CampaignOptions.file("the list and the ledger")])],
        examples: [
            .init(
                "Take out the tokens that a run found dead, and keep them apart",
                #"""
                broadside prune --ledger tonight --tokens tokens.txt \
                    --output tokens.clean.txt --removed dead.txt
                """#),
            .init(
                "The same with two runs; a token that was registered later stays",
                #"""
                broadside prune --ledger monday --ledger tuesday --tokens tokens.csv \
                    --output tokens.clean.csv --registered-column registered_at
                """#),
        ],
        campaignKeys: ["tokens", "format", "token-column", "ledger"],
        run: { (arguments) throws(BroadsideError) in
            let options = try options(from: arguments)
            standardError(try PruneRun.run(options))
            return 0
        })

    private static let group = OptionGroup<PruneOptions>(
        title: "Options",
        options: [
            .repeated(
                "ledger", .file(.ledger), "DIR", \.ledgers,
                "a ledger whose answers count; may be repeated"),
            .custom("tokens", .file(.read), "FILE", "the token list") {
                (text, options) throws(BroadsideError) in options.tokens = text
            },
            .format,
            .tokenColumn,
            .custom("output", .file(.written), "FILE", "where the pruned list goes") {
                (text, options) throws(BroadsideError) in options.output = text
            },
            .file(
                "removed", \.removed, use: .written,
                "where the rows go that are taken out, below the list's header"),
            .custom(
                "reasons", .text, "R,R",
                "the reasons that call a token dead (default: Unregistered,ExpiredToken)"
            ) { (text, options) throws(BroadsideError) in options.reasons = try reasons(text) },
            .text(
                "registered-column", "NAME", \.registeredColumn,
                "when a token was registered (Unix seconds, milliseconds, ISO 8601): registered after APNs' own timestamp, it stays; so does what can't be read"
            ),
            .percentage(
                "max-removed", \.maxRemovedPercent,
                "of 1,000 rows or more at most P percent may go"),
        ])

    static func options(from arguments: ParsedArguments) throws(BroadsideError) -> PruneOptions {
        try arguments.refuseWords(of: description)
        try arguments.require([.ledger, .list, .output])
        var options = PruneOptions.defaults
        try group.read(arguments, into: &options)
        return options
    }

    private static func reasons(_ text: String) throws(BroadsideError) -> Set<Reason> {
        var reasons: Set<Reason> = []
        for name in text.split(separator: ",", omittingEmptySubsequences: false).map(String.init) {
            guard let reason = Reason(text: name), reason.isFromAPNs else {
                let known = Reason.allCases.filter(\.isFromAPNs).map(\.text)
                let nearest = nearestName(to: name, among: known)
                throw .usage(
                    "reasons",
                    "'\(name)' is not a reason of APNs: "
                        + (nearest.map { "did you mean \($0)?" } ?? "such as Unregistered"))
            }
            reasons.insert(reason)
        }
        return reasons
    }
}

extension PruneOptions: ListValues {
    static var defaults: PruneOptions { PruneOptions(ledgers: [], tokens: "", output: "") }
}
