import APNs
import Broadside

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
        sections: [
            OptionSection(
                title: "Options",
                options: [
                    .init(
                        "ledger", "DIR", "a ledger whose answers count; may be repeated",
                        isRepeatable: true),
                    .init("tokens", "FILE", "the token list"),
                    .init(
                        "format", "lines|csv|tsv|jsonl",
                        "how the list is written (default: as its name and first bytes say)"),
                    .init(
                        "token-column", "NAME",
                        "the column or key that holds the token, or the path of a key such as device.token (default: token)"
                    ),
                    .init("output", "FILE", "where the pruned list goes"),
                    .init(
                        "removed", "FILE",
                        "where the rows go that are taken out, below the list's header"),
                    .init(
                        "reasons", "R,R",
                        "the reasons that call a token dead (default: Unregistered,ExpiredToken)"),
                    .init(
                        "registered-column", "NAME",
                        "when a token was registered (Unix seconds, milliseconds, ISO 8601): registered after APNs' own timestamp, it stays; so does what can't be read"
                    ),
                    .init(
                        "max-removed", "P",
                        "of 1,000 rows or more at most P percent may go (default: 50)"),
                ])
        ],
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
        run: { (arguments) throws(CommandFailure) in
            let options = try options(from: arguments)
            do throws(BroadsideError) {
                standardError(try PruneRun.run(options))
                return 0
            } catch {
                throw CommandFailure(message: error.message, exitCode: error.exitCode)
            }
        })

    static func options(from arguments: ParsedArguments) throws(CommandFailure) -> PruneOptions {
        try arguments.refuseWords(of: description)
        try arguments.require([.ledger, .list, .output])
        let ledgers = arguments.strings("ledger")
        var options = PruneOptions(
            ledgers: ledgers, tokens: try arguments.required("tokens", "FILE"),
            output: try arguments.required("output", "FILE"))
        options.format = try arguments.choice("format", TokenListFormat.self)
        options.tokenColumn = arguments.string("token-column")
        options.removed = arguments.string("removed")
        if let text = arguments.string("reasons") { options.reasons = try reasons(text) }
        options.registeredColumn = arguments.string("registered-column")
        if let percent = try arguments.percentage("max-removed") {
            options.maxRemovedPercent = percent
        }
        return options
    }

    private static func reasons(_ text: String) throws(CommandFailure) -> Set<Reason> {
        var reasons: Set<Reason> = []
        for name in text.split(separator: ",", omittingEmptySubsequences: false).map(String.init) {
            guard let reason = Reason(text: name), reason.isFromAPNs else {
                let known = Reason.allCases.filter(\.isFromAPNs).map(\.text)
                let nearest = nearestName(to: name, among: known)
                throw .usage(
                    "--reasons '\(name)' is no reason of APNs: "
                        + (nearest.map { "did you mean \($0)?" } ?? "such as Unregistered"))
            }
            reasons.insert(reason)
        }
        return reasons
    }
}
