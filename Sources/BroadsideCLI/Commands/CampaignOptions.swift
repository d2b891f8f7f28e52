import BroadsideAPNs
import BroadsideCampaigns
import BroadsideSupport
import Glibc

/// `--campaign FILE` and `--print-campaign`: options read from a file, and written to one.
enum CampaignOptions {
    static let section = OptionSection(
        title: "From a file",
        options: [
            .init(
                "campaign", .file(.read), "FILE",
                "JSON5 file with any of these options by their long names; paths are relative to the file; an option on the command line overrides it"
            ),
            .init(
                "print-campaign", .flag, nil,
                "print the campaign as a campaign file, and send nothing"),
        ])

    /// `--campaign` for a command that uses only part of a campaign file.
    static func file(_ what: String, of subcommand: String? = nil) -> OptionDescription {
        .init(
            "campaign", .file(.read), "FILE",
            (subcommand.map { "\($0): " } ?? "")
                + "read \(what) from the campaign file of a send; the command line overrides it")
    }

    /// The sets of options that exclude each other. An option on the command line discards its
    /// alternatives in the file.
    private static let alternatives: [[Set<String>]] = [
        [["tokens"], ["to"]],
        [["resume", "must-resume"], ["resume-or-begin"]],
        [
            ["auth-key", "auth-key-command", "key-id", "team-id"], ["auth-token-file"],
            ["auth-token-command"], ["certificate", "private-key", "passphrase-file"],
        ],
        [["auth-key"], ["auth-key-command"]],
    ]

    /// Outputs that a campaign's own runs replace, and the hook that they call. A test or a probe
    /// leaves them alone: monitoring would take it for the campaign.
    private static let outputs: Set<String> = [
        "summary", "report", "metrics", "trace-frames", "control", "hook",
    ]

    /// Options that select rows of a list, or decide when they are sent. For a test on one device
    /// (`--to`), only those on the command line apply: the device gets the notification at once.
    private static let selections: Set<String> = [
        "where", "skip-dead", "registered-column", "dead-for", "cap", "history", "shard", "part",
        "campaign-id", "assume-canary", "deliver-at", "zone-column", "zone-default", "on", "late",
        "quiet",
    ]

    /// Options of a campaign file that the command ignores, for each reason.
    private struct IgnoredNames {
        var passedOver: [String] = []
        var selecting: [String] = []
        var left: [String] = []

        /// The names with the text that follows them in the message.
        var withReasons: [(names: [String], reason: String)] {
            [
                (passedOver, ", because it has values of its own"),
                (selecting, ", because it sends to one device at once"),
                (left, ", which belong to the campaign's own runs: name them on the command line"),
            ].filter { !$0.0.isEmpty }
        }
    }

    /// Adds the options of the campaign file, unless the command line overrides them. If an entry
    /// is wrong, adds the others before it throws, because one may name the summary's file.
    static func addFile(
        to arguments: inout ParsedArguments, of command: CommandDescription
    ) throws(BroadsideError) {
        guard command.options.named("campaign") != nil, let path = arguments.string("campaign")
        else { return }
        let file = try CampaignFile(path: path)
        let given = arguments
        let overridden = overridden(by: given).union(replacedServer(file, given))
        var ignored = IgnoredNames()
        var problem: BroadsideError?
        for entry in file.entries {
            do throws(BroadsideError) {
                guard let values = try values(of: entry, in: file, &arguments, command, &ignored)
                else { continue }
                if arguments.has(entry.name) || overridden.contains(entry.name) { continue }
                if ignores(entry, given, command, &ignored) { continue }
                arguments.add(
                    entry.name,
                    values: entry.name == "endpoint" && given.has("port")
                        ? values.map(SendOptions.endpointWithoutPort) : values,
                    location: entry.location)
            } catch {
                problem = problem ?? error
            }
        }
        if let problem { throw problem }
        guard arguments.string("progress") != "none" else { return }
        for (names, reason) in ignored.withReasons {
            standardErrorLine(
                "broadside: --campaign \(path): \(command.name)\(given.has("to") ? " --to" : "") "
                    + "ignores " + names.joined(separator: ", ") + reason)
        }
    }

    /// Values of an entry for the command; nil if the command does not use it, or if it is a flag
    /// that is not set.
    private static func values(
        of entry: CampaignFile.Entry, in file: CampaignFile, _ arguments: inout ParsedArguments,
        _ command: CommandDescription, _ ignored: inout IgnoredNames
    ) throws(BroadsideError) -> [String]? {
        guard !NightCommand.startNames.contains(entry.name) else {
            throw .request(
                "\(entry.nameLocation): '\(entry.name)' in a campaign file would apply to every "
                    + "night: remove it, and write --\(entry.name) on the command line when you "
                    + "need it")
        }
        try refuseGateway(entry, of: command)
        // One campaign file can be for `night` and for the commands that check the campaign by day.
        if NightCommand.ownNames.contains(entry.name), command.name != NightCommand.name {
            return nil
        }
        let isUnused = command.campaignKeys.map {
            !$0.contains(entry.name) && Self.isOfSend(entry)
        }
        if isUnused == true || command.passedOverInCampaign.contains(entry.name) {
            if command.campaignKeys == nil { ignored.passedOver.append(entry.name) }
            if let option = SendCommand.description.options.first(where: {
                $0.name == entry.name
            }), let path = try? values(of: option, entry, folder: file.folder)?.first,
                option.isPath(path)
            {
                arguments.notePassedOver(option, value: path)
            }
            return nil
        }
        guard let option = command.options.first(where: { $0.name == entry.name }),
            !section.options.contains(where: { $0.name == entry.name })
        else { throw .request(unknown(entry, command)) }
        return try values(of: option, entry, folder: file.folder)
    }

    /// Whether this call ignores an entry that a run of the campaign would use, and notes the
    /// entry's name.
    private static func ignores(
        _ entry: CampaignFile.Entry, _ given: ParsedArguments, _ command: CommandDescription,
        _ ignored: inout IgnoredNames
    ) -> Bool {
        let isTest = given.has("to")
        if isTest || command.leavesOutputsOfCampaign, outputs.contains(entry.name) {
            ignored.left.append(entry.name)
            return true
        }
        guard isTest, selections.contains(entry.name) else { return false }
        ignored.selecting.append(entry.name)
        return true
    }

    /// Refuses a campaign for a legacy gateway, which has no responses that `doctor` could judge.
    private static func refuseGateway(
        _ entry: CampaignFile.Entry, of command: CommandDescription
    ) throws(BroadsideError) {
        guard command.name == DoctorCommand.name, entry.name == "protocol",
            case .string(WireProtocol.binary.rawValue) = entry.value
        else { return }
        throw .request(
            "\(entry.location): 'protocol' is binary, but doctor checks only the provider API: "
                + "broadside send --dry-run checks everything else")
    }

    private static func overridden(by arguments: ParsedArguments) -> Set<String> {
        var names: Set<String> = []
        for kinds in alternatives {
            for kind in kinds where kind.contains(where: { arguments.has($0) }) {
                for other in kinds where other != kind { names.formUnion(other) }
            }
        }
        return names
    }

    /// Options of the file that do not apply because the command line names another server.
    private static func replacedServer(
        _ file: CampaignFile, _ arguments: ParsedArguments
    ) -> Set<String> {
        func text(_ name: String) -> String? {
            guard case .string(let text)? = file.entries.first(where: { $0.name == name })?.value
            else { return nil }
            return text
        }
        let endpoint = arguments.string("endpoint")
        let environment = arguments.string("environment")
        // A port in the file belongs to the server that the file names.
        var names: Set<String> = endpoint == nil ? [] : ["port"]
        if environment == nil, contradicts(endpoint, text("environment")) {
            names.insert("environment")
        }
        if endpoint == nil, contradicts(text("endpoint"), environment) { names.insert("endpoint") }
        return names
    }

    /// Whether an endpoint is an Apple host of an environment other than the given one.
    private static func contradicts(_ endpoint: String?, _ environment: String?) -> Bool {
        guard let endpoint, let host = SendOptions.appleEnvironment(ofEndpoint: endpoint),
            let environment,
            let named = Endpoints.Environment(
                rawValue: environment == "sandbox" ? "development" : environment)
        else { return false }
        return named != host
    }

    private static func isOfSend(_ entry: CampaignFile.Entry) -> Bool {
        SendCommand.description.options.named(entry.name) != nil
            && section.options.named(entry.name) == nil
    }

    private static func unknown(_ entry: CampaignFile.Entry, _ command: CommandDescription)
        -> String
    {
        let options = command.options.filter { option in
            !section.options.contains { $0.name == option.name }
        }
        let paths = options.filter { $0.isPath("name") }.map(\.name)
        if command.name != SendCommand.description.name, isOfSend(entry) {
            return "\(entry.nameLocation): '\(entry.name)' is an option of send, and "
                + "would change what a \(command.name) does: remove it, or use a "
                + "separate campaign file for the \(command.name)"
        }
        let advice =
            nearestOption(to: entry.name, among: options.map(\.name), paths: paths)
            .map { "did you mean \($0)?" }
            ?? "broadside \(command.name) --help lists all options"
        return "\(entry.nameLocation): unknown key '\(entry.name)': \(advice)"
    }

    /// Values as they would be on the command line: several for a repeatable option, nil for a flag
    /// that is not set.
    private static func values(
        of option: OptionDescription, _ entry: CampaignFile.Entry, folder: String
    ) throws(BroadsideError) -> [String]? {
        func text(_ text: String) throws(BroadsideError) -> String {
            do throws(BroadsideError) {
                try ParsedArguments.refuseContent(text, of: option)
            } catch {
                throw error.located(at: entry.location)
            }
            return option.isPath(text) && !text.starts(withBytes: "/")
                ? option.withPath(text, in: folder) : text
        }
        switch entry.value {
        case .boolean(let isSet) where option.kind == .flag: return isSet ? [""] : nil
        case .string(let value) where option.kind != .flag: return [try text(value)]
        case .strings([]) where option.isRepeatable:
            // An array that lost its elements must not send to more people.
            throw .request(
                "\(entry.location): '\(entry.name)' is an empty array: remove '\(entry.name)', or "
                    + "write at least one string")
        case .strings(let values) where option.isRepeatable:
            return try values.map { (value) throws(BroadsideError) in try text(value) }
        case .number(let text) where option.kind.takesNumber: return [plainNumber(text)]
        default: break
        }
        let found: String =
            switch entry.value {
            case .boolean(let value): "\(value)"
            case .number: "a number"
            case .string: "a string"
            case .strings: "an array"
            case .other(let words): words
            }
        let wanted =
            option.kind == .flag
            ? "true or false"
            : option.kind.takesNumber
                ? "a number or a string"
                : option.isRepeatable ? "a string or an array of strings" : "a string"
        throw .request("\(entry.location): '\(entry.name)' is \(found): it must be \(wanted)")
    }

    /// Converts a number such as `5e3` to an option's value, `5000`.
    private static func plainNumber(_ text: String) -> String {
        guard text.contains(where: { $0 == "e" || $0 == "E" }), let value = Double(text),
            let whole = Int64(exactly: value)
        else { return text }
        return "\(whole)"
    }

    /// Equivalent campaign file with absolute paths, so that it is valid in any directory.
    static func text(_ arguments: ParsedArguments, of command: CommandDescription) -> String {
        var lines: [String] = []
        for option in command.options
        where !section.options.contains(where: { $0.name == option.name })
            && !NightCommand.startNames.contains(option.name)
        {
            let texts = arguments.strings(option.name)
            guard !texts.isEmpty else { continue }
            let values = texts.map { json($0, of: option) }
            let value = values.count == 1 ? values[0] : "[\(values.joined(separator: ", "))]"
            lines.append("  \(JSONLine.quoted(option.name)): \(value)")
        }
        return "{\n\(lines.joined(separator: ",\n"))\n}\n"
    }

    /// One value of an option, as JSON.
    private static func json(_ text: String, of option: OptionDescription) -> String {
        if option.kind == .flag { return "true" }
        if option.kind.takesNumber, isPlainNumber(text) { return text }
        guard option.isPath(text), !text.starts(withBytes: "/") else {
            return JSONLine.quoted(text)
        }
        return JSONLine.quoted(option.withPath(text, in: workingDirectory + "/"))
    }

    private static func isPlainNumber(_ text: String) -> Bool {
        let digits = text.utf8.allSatisfy { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }
        return digits && !text.isEmpty && (text == "0" || text.utf8.first != UInt8(ascii: "0"))
    }

    private static var workingDirectory: String {
        SystemCall.workingDirectory ?? "."
    }
}
