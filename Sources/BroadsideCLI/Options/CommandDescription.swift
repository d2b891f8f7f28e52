import BroadsideCampaigns
import BroadsideSupport

/// Example of a call, as typed in a shell.
struct CommandExample: Sendable {
    /// Purpose of the call; a colon follows in the output.
    let purpose: String
    /// The call, starting with `broadside`. Continuation lines of a long call start with four
    /// blanks.
    let call: String

    init(_ purpose: String, _ call: String) {
        self.purpose = purpose
        self.call = call
    }

    var lines: [Substring] { call.split(separator: "\n") }
}

/// A command of the program. Its description is made when it is first needed: most processes need
/// that of one command.
protocol Command: SendableMetatype {
    static var name: String { get }
    static var description: CommandDescription { get }
}

/// Description of a command: purpose, options and action.
struct CommandDescription: Sendable {
    let name: String
    /// One line for the list of commands.
    let summary: String
    /// Text after the name in the usage line.
    let usage: String
    /// Paragraphs below the usage line.
    let discussion: String
    let sections: [OptionSection]
    let examples: [CommandExample]
    /// The names of subcommands, if there are any.
    var subcommands: [String] = []
    /// The names of the options that each subcommand accepts; a subcommand without an entry accepts
    /// all.
    var subcommandOptions: [String: Set<String>] = [:]
    /// The words that may follow a path, if the command accepts one.
    var wordsAfterPath: [String] = []
    /// Options that `-h` shows, at most ten; empty if the command has no more than ten.
    var essentials: [String] = []
    /// The keys of a campaign file that the command reads; nil: all.
    var campaignKeys: Set<String>?
    /// Options of `send` that a campaign file may contain although this command does not use them.
    var passedOverInCampaign: Set<String> = []
    /// Whether the outputs and the hook in a campaign file are left to the campaign's own runs.
    var leavesOutputsOfCampaign = false
    /// Writes the summary of a run whose campaign file is missing or wrong; nil for a command
    /// without a summary.
    var summarizeWrongCampaign: (@Sendable (BroadsideError, ParsedArguments) -> Void)?
    /// Adds advice to the error of a campaign file that is missing or wrong; nil: none.
    var adviseWrongCampaign: (@Sendable (BroadsideError, ParsedArguments) -> BroadsideError)?
    let run: @Sendable (ParsedArguments) throws(BroadsideError) -> Int32

    var options: [OptionDescription] { sections.flatMap(\.options) }

    /// Options that the command accepts after these words.
    func options(after words: [String]) -> [OptionDescription] {
        guard let own = words.first.flatMap({ subcommandOptions[$0] }) else { return options }
        return options.filter { own.contains($0.name) }
    }

    /// Checks that the parts of the command fit together. Without effect in release builds.
    func checkParts() {
        assert(
            Set(options.map(\.name)).count == options.count, "\(name): an option is listed twice")
        assert(
            essentials.allSatisfy { options.named($0) != nil },
            "\(name): -h shows an option that does not exist")
        assert(essentials.count <= 10, "\(name): -h fits on a screen")
        assert(
            Set(subcommands).count == subcommands.count, "\(name): a subcommand is listed twice")
        assert(
            passedOverInCampaign.allSatisfy { options.named($0) == nil },
            "\(name): an option of the command itself is never ignored in a campaign file")
    }
}
