import BroadsideCampaigns
import BroadsideSupport

/// Requested amount of help.
enum HelpRequest {
    /// `-h`: one screen.
    case short
    /// `--help`: the complete page.
    case complete
}

/// Options of one call, checked against the command's description.
struct ParsedArguments {
    private var values: [String: [String]] = [:]
    /// All commands, whose descriptions are made only for a call that needs them.
    private let commands: () -> [CommandDescription]
    /// The names of the command's options.
    private let names: Set<String>
    /// For options from the campaign file, their locations in that file.
    private var locations: [String: String] = [:]
    /// The files that the campaign file names but this command does not read. No output of this
    /// command may overwrite them.
    private(set) var passedOver: [(option: OptionDescription, value: String)] = []
    /// The words that are not options, such as a subcommand or a path.
    private(set) var words: [String] = []
    /// Requested help; nil if none.
    private(set) var help: HelpRequest?

    /// Parses `--name value`, `--name=value` and flags.
    ///
    /// - Parameter commands: All commands, to recognize options of other commands.
    init(
        _ arguments: [String], command: CommandDescription,
        among commands: @autoclosure @escaping () -> [CommandDescription]
    ) throws(BroadsideError) {
        command.checkParts()
        self.commands = commands
        names = Set(command.options.map(\.name))
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            guard argument.starts(withBytes: "--"), argument.utf8.count > 2 else {
                if argument == "-h" {
                    help = help ?? .short
                } else if argument.starts(withBytes: "-"), argument != "-" {
                    let name = argument.drop { $0 == "-" }.prefix { $0 != "=" }
                    let isKnown = command.options.contains { $0.name == name }
                    throw .request(
                        "unknown option \(wordExcerpt(argument)): "
                            + (isKnown
                                ? "did you mean --\(name)?"
                                : Double(argument) != nil
                                    ? "numbers here are 0 or more"
                                    : "options begin with two dashes"))
                } else {
                    words.append(argument)
                }
                continue
            }
            let body = argument.unicodeScalars.dropFirst(2)
            let parts = Substring(body).parts(atFirst: "=")
            let name = String(parts?.before ?? Substring(body))
            let attached = parts.map { String($0.behind) }
            if name == "help" {
                help = .complete
                continue
            }
            guard let option = command.options.first(where: { $0.name == name }) else {
                throw .request(Self.unknown(name, in: command, words, among: commands()))
            }
            if option.isBeforeOperands {
                if let attached { words.append(attached) }
                values[name] = [""]
                continue
            }
            if !option.isRepeatable, values[name] != nil {
                throw .usage(name, "is given twice: give it once")
            }
            values[name, default: []].append(
                try Self.value(of: option, attached: attached, rest: &rest))
        }
    }

    private static func value(
        of option: OptionDescription, attached: String?, rest: inout ArraySlice<String>
    ) throws(BroadsideError) -> String {
        guard let valueName = option.placeholder else {
            if attached != nil {
                throw .usage(option.name, "takes no value: write it without '='")
            }
            return ""
        }
        // A value may start with one dash (`-` is standard input). A word that starts with two
        // dashes is an option, so the option before it lacks its value.
        let isMissing = rest.first?.starts(withBytes: "--") == true
        if attached == nil, isMissing, let next = rest.first, next.starts(withBytes: "-----BEGIN") {
            try refuseContent(next, of: option)
        }
        if let value = attached ?? (isMissing ? nil : rest.popFirst()) {
            guard !value.isEmpty || option.mayBeEmpty else {
                throw .usage(
                    option.name,
                    "is empty: write --\(option.name) \(valueName) (is a variable "
                        + "of the script unset?)")
            }
            try refuseContent(value, of: option)
            return value
        }
        throw .usage(option.name, "needs a value: write --\(option.name) \(valueName)")
    }

    /// Refuses a value that is a file's content instead of its path.
    static func refuseContent(
        _ value: String, of option: OptionDescription
    ) throws(BroadsideError) {
        guard option.isPath(value),
            FileValue.isContent(option.path(in: value), option: option.name)
        else { return }
        throw .usage(option.name, FileValue.contentProblem(option: option.name))
    }

    private static func unknown(
        _ name: String, in command: CommandDescription, _ words: [String],
        among commands: [CommandDescription]
    ) -> String {
        let described = command.options(after: words)
        let options = described.map(\.name)
        let paths = described.filter { $0.isPath("name") }.map(\.name)
        if let advice = LikelyGuess.advice(for: name, among: options) {
            return "unknown option --\(name): \(advice)"
        }
        let core = OptionName(name)
        if core.core != name, !options.contains(core.core),
            let advice = LikelyGuess.advice(
                for: core.core, among: core.isPath ? paths : options, isOfAnyCommand: false)
        {
            return "unknown option --\(wordExcerpt(name)): \(advice)"
        }
        if name == "ledger", command.usage.contains("DIR...") {
            return "unknown option --ledger: write broadside \(command.name) DIR..."
        }
        let shown = wordExcerpt(name)
        let nearest = nearestOption(to: name, among: options, paths: paths)
        let others = commands.filter { other in
            other.options.contains { $0.name == name }
        }.map(\.name)
        let advice =
            nearest.map { "did you mean --\($0)?" }
            ?? (others.isEmpty
                ? "" : "it is one of \(others.joined(separator: ", ")), not of \(command.name); ")
            + "broadside \(command.name) --help lists all options"
        return "unknown option --\(shown): \(advice)"
    }

    /// Adds an option from a campaign file.
    mutating func add(_ name: String, values texts: [String], location: String) {
        assert(values[name] == nil, "the command line goes before the file")
        assert(!texts.isEmpty, "an option of the file has a value")
        values[name] = texts
        locations[name] = location
    }

    /// Records a file that a campaign file names and the command does not use.
    mutating func notePassedOver(_ option: OptionDescription, value: String) {
        passedOver.append((option, value))
    }

    /// Adds the location in the campaign file to an error about an option from this file.
    func located(_ failure: BroadsideError) -> BroadsideError {
        guard let location = failure.option.flatMap({ locations[$0] }) else { return failure }
        return failure.located(at: location)
    }

    /// Whether the option is from the campaign file, not from the command line.
    func isFromFile(_ name: String) -> Bool { locations[name] != nil }

    func has(_ name: String) -> Bool { !strings(name).isEmpty }

    func string(_ name: String) -> String? { strings(name).last }

    func strings(_ name: String) -> [String] {
        assert(
            names.contains(name) || commands().contains { $0.options.named(name) != nil },
            "only options that a command has are asked for")
        return values[name] ?? []
    }

    /// Returns the option's value, or throws an error that names the option.
    func required(_ name: String, _ valueName: String) throws(BroadsideError) -> String {
        guard let value = string(name) else {
            throw .usage(name, "is missing: add --\(name) \(valueName)")
        }
        return value
    }

    /// Returns a whole number within a range.
    func integer(_ name: String, in range: ClosedRange<Int>) throws(BroadsideError) -> Int? {
        guard let text = string(name) else { return nil }
        guard let value = Int(text), range.contains(value) else {
            throw .usage(
                name,
                "'\(text)' is not a whole number from \(grouped(range.lowerBound)) to "
                    + "\(grouped(range.upperBound)): \(Self.numberAdvice(text, in: range))")
        }
        return value
    }

    /// Advice about a text that is not a whole number within a range.
    private static func numberAdvice(_ text: String, in range: ClosedRange<Int>) -> String {
        if let value = Int(text) {
            return "write \(value < range.lowerBound ? range.lowerBound : range.upperBound) or "
                + (value < range.lowerBound ? "more" : "less")
        }
        if let value = wholeNumber(text), range.contains(value) {
            return "did you mean \(value)?"
        }
        return "write digits, such as \(min(max(10, range.lowerBound), range.upperBound))"
    }

    /// Parses a whole number that is written like `10.0` or, with separators between thousands,
    /// like `10,000`; nil if the text may be a fraction.
    private static func wholeNumber(_ text: String) -> Int? {
        for zeros in [".0", ".00"] where text.hasSuffix(zeros) {
            return Int(text.dropLast(zeros.count))
        }
        let groups = text.split(omittingEmptySubsequences: false) { ",_' ".contains($0) }
        guard groups.dropFirst().allSatisfy({ $0.utf8.count == 3 }) else { return nil }
        return Int(groups.joined())
    }

    /// Returns a number above zero.
    func positiveNumber(_ name: String) throws(BroadsideError) -> Double? {
        guard let text = string(name) else { return nil }
        guard let value = decimalNumber(text), SendOptions.rateRange.contains(value) else {
            throw .usage(
                name,
                "'\(text)' is not a number above 0 and up to 1,000,000,000: write it like 5000")
        }
        return value
    }

    /// Returns a number of requests per second, or a rising rate.
    func sendRate(_ name: String) throws(BroadsideError) -> SendRate? {
        guard let text = string(name) else { return nil }
        guard text.contains("..") else { return try positiveNumber(name).map { SendRate($0) } }
        do throws(SendRate.Problem) {
            return try SendRate(text, in: SendOptions.rateRange)
        } catch {
            throw .usage(name, error.message)
        }
    }

    /// Returns a percentage from 0 to 100.
    func percentage(_ name: String) throws(BroadsideError) -> Double? {
        guard let text = string(name) else { return nil }
        guard let value = decimalNumber(text), SendOptions.percentageRange.contains(value)
        else {
            throw .usage(
                name, "'\(text)' is not a percentage from 0 to 100: write the number alone, like 20"
            )
        }
        return value
    }

    /// Returns the value of an option that is a share, from 0 to 1.
    func share(_ name: String) throws(BroadsideError) -> Double? {
        guard let text = string(name) else { return nil }
        guard let value = decimalNumber(text), value >= 0, value <= 1 else {
            throw .usage(name, "'\(text)' is not a share from 0 to 1: write 0.01 for one percent")
        }
        return value
    }

    /// Message about a text that is not a duration.
    static func noDuration(_ text: String) -> String {
        isTooLongDuration(text)
            ? "'\(text)' is too long: use at most 213503d"
            : "'\(text)' is not a duration: write it like 500ms, 30s, 15m, 2h or 1d"
    }

    /// Returns a duration such as `500ms`, `30s`, `15m`, `2h`, `1d`, in nanoseconds.
    func duration(_ name: String) throws(BroadsideError) -> UInt64? {
        guard let text = string(name) else { return nil }
        guard let value = parseDuration(text) else {
            throw .usage(
                name, Self.noDuration(text))
        }
        return value
    }

    /// Returns a value of an enumeration.
    func choice<Value: RawRepresentable & CaseIterable>(
        _ name: String, _ type: Value.Type
    ) throws(BroadsideError) -> Value? where Value.RawValue == String {
        guard let text = string(name) else { return nil }
        if let value = Value(rawValue: text) { return value }
        let names = Value.allCases.map(\.rawValue)
        let nearest = nearestName(to: text, among: names).map { "did you mean \($0)?" }
        throw .usage(
            name,
            "'\(text)' is unknown: \(nearest ?? "use one of \(names.joined(separator: ", "))")")
    }
}
