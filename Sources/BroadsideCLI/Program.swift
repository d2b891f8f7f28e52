import BroadsideCampaigns
import BroadsideSupport
import Glibc

/// Command line as a whole: the list of commands, and the selection of one.
enum Program {
    /// All commands, in the order of the help.
    private static let all: [any Command.Type] = [
        SendCommand.self,
        NightCommand.self,
        ProbeCommand.self,
        BroadcastCommand.self,
        ChannelCommand.self,
        PruneCommand.self,
        LedgerCommand.self,
        TokensCommand.self,
        PayloadCommand.self,
        DoctorCommand.self,
        ControlCommand.self,
        StatusCommand.self,
        ReportCommand.self,
        SimulateCommand.self,
        BenchCommand.self,
        FeedbackCommand.self,
    ]

    /// Descriptions of all commands, in the order of the help.
    static let commands = all.map { $0.description }

    /// Meanings of all commands' exit codes.
    static let exitCodes = ExitCode.meanings

    /// Page with an overview of all commands.
    static func overview() -> String {
        var page = HelpPage()
        page.addParagraph(
            "Broadside sends a campaign to millions of Apple devices in one run, records the outcome "
                + "of every notification, and removes dead tokens from the list afterwards.")
        page.addLine("\nUsage: broadside COMMAND [OPTIONS]")
        page.addLine("\nCommands:")
        page.addEntries(commands.map { ($0.name, $0.summary) })
        page.addLine("\nExit codes:")
        page.addEntries(exitCodes.enumerated().map { ("\($0.offset)", $0.element) })
        page.addLine("\nExamples:")
        page.addExamples(
            [SendCommand.description, DoctorCommand.description].compactMap(\.examples.first))
        page.addLine()
        page.addParagraph(
            "broadside COMMAND -h prints a summary, and broadside COMMAND --help prints all options. "
                + "broadside --version prints the version. help --man [COMMAND], help --completion "
                + "bash|zsh|fish and help --markdown print manual pages, completions and the reference."
        )
        return page.text
    }

    /// Reads the arguments of this process.
    ///
    /// - Throws: Exit code 1 if the system does not give them. Exit code 2 if one is not valid
    ///   UTF-8, because its text would be the name of another file.
    static func arguments() throws(BroadsideError) -> [String] {
        guard CommandLine.argc > 0 else { throw lackOfArguments }
        let arguments = CommandLine.arguments
        for (number, text) in arguments.enumerated() {
            // SAFETY: the array has as many C strings as there are arguments; nothing changes them.
            guard let bytes = unsafe CommandLine.unsafeArgv[number],
                unsafe String(validatingCString: bytes) == nil
            else { continue }
            throw .request(
                "'\(wordExcerpt(text))' is not valid UTF-8: rename the file, or write the text in "
                    + "UTF-8")
        }
        return Array(arguments.dropFirst())
    }

    /// The error for a process whose arguments Swift's runtime did not find. The runtime searches the
    /// process's stack, whose addresses are in a file of /proc.
    private static var lackOfArguments: BroadsideError {
        let map = "/proc/self/maps"
        let descriptor = SystemCall.open(map, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            return BroadsideError(
                "the arguments can't be read: \(map): "
                    + FileFailure.message(
                        errno: errno, errno == ENOENT ? "mount /proc" : "make it readable"),
                exitCode: ExitCode.failure)
        }
        close(descriptor)
        let advice =
            SystemCall.environment("LD_PRELOAD") == nil
            ? "start the command in another environment"
            : "is a library in LD_PRELOAD the cause? Start the command without it"
        return BroadsideError(
            "the arguments can't be found in this process's memory, although \(map) can be read: "
                + advice, exitCode: ExitCode.failure)
    }

    static func run(_ arguments: [String]) throws(BroadsideError) -> Int32 {
        guard let first = arguments.first else {
            throw .request("no command given: run broadside help to list them")
        }
        switch first {
        case "--version":
            print("broadside \(broadsideVersion)")
            return 0
        case "help", "--help", "-h":
            guard arguments.count > 1, !["help", "--help", "-h"].contains(arguments[1]) else {
                print(overview(), terminator: "")
                return 0
            }
            guard let document = try document(arguments.dropFirst()) else {
                let command = try command(named: arguments[1])
                let topic = command.helpTopic(arguments.dropFirst(2))
                print(command.helpPage(of: topic), terminator: "")
                return 0
            }
            print(document, terminator: "")
            return 0
        default:
            let command = try command(named: first)
            var parsed = try ParsedArguments(
                Array(arguments.dropFirst()), command: command, among: commands)
            switch parsed.help {
            case .short:
                print(command.shortHelp(of: command.helpTopic(parsed.words)), terminator: "")
                return 0
            case .complete:
                print(command.helpPage(of: command.helpTopic(parsed.words)), terminator: "")
                return 0
            case nil: break
            }
            do {
                try CampaignOptions.addFile(to: &parsed, of: command)
            } catch {
                let error = command.adviseWrongCampaign?(error, parsed) ?? error
                // A summary whose file is an input of this run is not written.
                if (try? parsed.checkOutputs(of: command)) != nil {
                    command.summarizeWrongCampaign?(error, parsed)
                }
                throw error
            }
            do {
                try parsed.checkOutputs(of: command)
                return try command.run(parsed)
            } catch {
                throw parsed.located(error)
            }
        }
    }

    /// Calls that accept the word although it is not a command: as a subcommand, as a request to a
    /// run, or as an option.
    private static func calls(with word: String) -> [String] {
        var calls = commands.filter { $0.subcommands.contains(word) }.map { "\($0.name) \(word)" }
        calls += commands.filter { $0.wordsAfterPath.contains(word) }
            .map { "\($0.name) --ledger DIR \(word)" }
        if let owner = commands.first(where: { $0.options.named(word) != nil }) {
            calls.append("\(owner.name) --\(word)")
        }
        return calls
    }

    static func command(named name: String) throws(BroadsideError) -> CommandDescription {
        if let command = all.first(where: { $0.name == name }) { return command.description }
        if name == "-v" || name == "-V" || name == "version" {
            throw .request("unknown command '\(name)': did you mean --version?")
        }
        let meant = calls(with: name)
        if let advice = LikelyGuess.advice(forCommand: name) {
            throw .request("unknown command '\(name)': \(advice)")
        }
        guard meant.isEmpty else {
            throw .request(
                "unknown command '\(name)': did you mean \(meant.joined(separator: " or "))?")
        }
        let nearest = nearestName(
            to: name,
            among: name.hasPrefix("-") ? ["--version", "--help"] : all.map { $0.name })
        let advice = nearest.map { "did you mean \($0)?" } ?? "broadside help lists the commands"
        throw .request("unknown command '\(wordExcerpt(name))': \(advice)")
    }
}
