import BroadsideCampaigns
import BroadsideSupport

/// Options that skip rows based on what earlier ledgers recorded about their tokens.
enum EarlierLedgerOptions {
    static let group = OptionGroup<SendOptions>(
        title: "What earlier ledgers say",
        options: [
            skipDead,
            .text(
                "registered-column", "NAME", \.registeredColumn,
                "with --skip-dead: column with the time of registration, read as UTC if it has no offset; a row is sent if that time is later than APNs' timestamp, or can't be read"
            ),
            .duration(
                "dead-for", \.deadFor, default: SendOptions.defaultDeadFor, least: 1,
                "with --skip-dead: ignore older reports; not with --registered-column"),
            .custom(
                "cap", .text, "N/D",
                "skip a row (FrequencyCap) if the ledgers of --history accepted its token N times or more within D before the first start"
            ) { (text, options) throws(BroadsideError) in options.cap = try cap(text) },
            .repeated(
                "history", .file(.ledgers), "DIR", \.history,
                "with --cap: a ledger, or a directory with ledgers up to three levels below it; may be repeated"
            ),
        ])

    /// Value of `--skip-dead` that disables skipping. It is given in place of a directory.
    static let none = "none"

    private static let skipDead = Option<SendOptions>(
        OptionDescription(
            "skip-dead", .file(.ledgers), "DIR",
            "skip a row (DeadToken) if its token is dead in the ledger DIR, or in the ledgers up to three levels below it; as in prune, the newest response counts; may be repeated; none: skip no row",
            isRepeatable: true)
    ) { (arguments, options) throws(BroadsideError) in
        guard arguments.has("skip-dead") else { return }
        let directories = arguments.strings("skip-dead")
        guard directories.contains(none) else {
            options.skipDead = directories
            return
        }
        guard directories.allSatisfy({ $0 == none }) else {
            throw .usage(
                "skip-dead",
                "none and directories exclude each other: remove one (write "
                    + "./none for a directory of that name)"
            )
        }
        options.skipDead = []
    }

    private static func cap(_ text: String) throws(BroadsideError) -> FrequencyCap {
        let counts = FrequencyCap.counts
        guard let (before, behind) = text.parts(atFirst: "/"), let count = Int(before),
            counts.contains(count), let nanoseconds = parseDuration(String(behind)),
            nanoseconds >= 1_000_000
        else {
            throw .usage(
                "cap",
                "'\(text)' is not a cap: write N/D with N from \(counts.lowerBound) to "
                    + "\(counts.upperBound) and a duration D above 0, such as 3/7d")
        }
        return FrequencyCap(count: count, milliseconds: nanoseconds / 1_000_000)
    }

    /// Checks that the options about earlier ledgers fit together.
    static func check(_ options: SendOptions) throws(BroadsideError) {
        if options.skipDead == nil, !options.skipsOwnDead {
            let own = [
                ("registered-column", options.registeredColumn != nil),
                ("dead-for", options.deadFor != nil),
            ]
            if let (name, _) = own.first(where: \.1) {
                throw .usage(name, "requires --skip-dead: add --skip-dead DIR")
            }
        }
        if options.registeredColumn != nil, options.deadFor != nil {
            throw .usage(
                "dead-for",
                "and --registered-column exclude each other: remove one, because "
                    + "the registration time decides how long a report counts")
        }
        if options.cap != nil, options.history.isEmpty {
            throw .usage(
                "cap",
                "requires --history: add --history DIR, the ledgers whose accepted rows are "
                    + "counted")
        }
        if options.cap == nil, !options.history.isEmpty {
            throw .usage("history", "requires --cap: add --cap N/D, such as --cap 3/7d")
        }
    }
}
