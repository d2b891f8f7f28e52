import BroadsideCampaigns
import BroadsideSupport

/// Options that put devices into arms, and give arms their payloads.
enum SplitOptions {
    static let group = OptionGroup<SendOptions>(
        title: "Arms and holdout",
        options: [
            split, salt,
            own(
                "arm", .namedFile, "ARM=FILE",
                "with --split: the arm's payload, in place of --payload; may be repeated"
            ) { (arm, file) throws(BroadsideError) in
                guard !file.isEmpty else { return false }
                arm.payload = file
                return true
            },
            own(
                "arm-collapse-id", .text, "ARM=ID",
                "with --split: the arm's --collapse-id; may be repeated"
            ) { (arm, text) throws(BroadsideError) in
                arm.collapseID = text
                return true
            },
            own(
                "arm-priority", .text, "ARM=1|5|10",
                "with --split: the arm's --priority; may be repeated"
            ) { (arm, text) throws(BroadsideError) in
                guard let priority = UInt8(text).flatMap(Priority.init(rawValue:)) else {
                    return false
                }
                arm.priority = priority
                return true
            },
        ])

    /// The names of `split` and of all options that require it.
    static let names = group.options.map(\.description.name)

    private static let split = Option<SendOptions>(
        OptionDescription(
            "split", .text, "ARM=PERCENT,...",
            "put each device into an arm, chosen by its token and --split-salt; the rest up to 100 percent, or an arm named holdout, gets nothing: its rows end as skipped (Holdout)"
        )
    ) { (arguments, options) throws(BroadsideError) in
        guard let text = arguments.string("split") else { return }
        guard let salt = arguments.string("split-salt") else {
            throw .usage(
                "split",
                "requires --split-salt: add --split-salt TEXT (with the same text, each device gets "
                    + "the same arm again)")
        }
        try checkSalt(salt)
        do throws(ArmSplit.Problem) {
            options.split = try ArmSplit(text, salt: salt)
        } catch {
            throw .usage("split", error.message)
        }
    }

    private static let salt = Option<SendOptions>.custom(
        "split-salt", .text, "TEXT",
        "with --split: text that is hashed with each token; a device's arm depends on both"
    ) { (text, _) throws(BroadsideError) in try checkSalt(text) }

    private static func checkSalt(_ text: String) throws(BroadsideError) {
        guard ArmSplit.isSalt(text), !text.unicodeScalars.contains(where: ForeignText.isInvisible)
        else {
            throw .usage(
                "split-salt",
                "takes 1 to \(ArmSplit.saltByteLimit) bytes without control characters: write a "
                    + "short text, such as the experiment's name")
        }
    }

    /// Repeatable option that sets a value of one arm.
    ///
    /// - Parameter set: Sets the value; returns false if the text is not a valid value.
    private static func own(
        _ name: String, _ kind: OptionKind, _ placeholder: String, _ help: String,
        _ set: @escaping @Sendable (inout ArmOptions, String) throws(BroadsideError) -> Bool
    ) -> Option<SendOptions> {
        Option(OptionDescription(name, kind, placeholder, help, isRepeatable: true)) {
            (arguments, options) throws(BroadsideError) in
            var known: Set<String> = []
            for text in arguments.strings(name) {
                let parts = text.parts(atFirst: "=")
                let arm = parts.map { String($0.before) } ?? ""
                var own = options.arms.first { $0.name == arm } ?? ArmOptions(name: arm)
                guard let parts, !arm.isEmpty, try set(&own, String(parts.behind)) else {
                    throw .usage(name, "'\(printable(text))' is not \(placeholder): correct it")
                }
                guard known.insert(arm).inserted else {
                    throw .usage(name, "names \(printable(arm)) twice: give it once")
                }
                options.arms.removeAll { $0.name == arm }
                options.arms.append(own)
            }
        }
    }

    /// Checks that `--split` is given if an option that requires it is given.
    static func check(
        _ options: SendOptions, _ arguments: ParsedArguments
    ) throws(BroadsideError) {
        guard options.split == nil,
            let name = names.first(where: { $0 != "split" && arguments.has($0) })
        else { return }
        throw .usage(
            name, "requires --split: add --split ARM=PERCENT,..., such as --split a=45,b=45")
    }
}
