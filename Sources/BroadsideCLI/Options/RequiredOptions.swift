import BroadsideCampaigns
import BroadsideSupport

/// Option that a command requires, possibly with alternatives.
struct RequiredOption {
    /// The names of the option and of its alternatives.
    let names: [String]
    /// Advice on what to add, such as `--tokens FILE, or --to TOKEN`.
    let call: String

    /// - Parameter rare: Further alternatives that messages do not mention.
    init(
        _ name: String, _ value: String, or others: [(name: String, value: String)] = [],
        rare: [String] = []
    ) {
        names = [name] + others.map(\.name) + rare
        call =
            "--\(name) \(value)" + others.map { ", or --\($0.name) \($0.value)" }.joined()
    }

    static let list = RequiredOption("tokens", "FILE")
    static let ledger = RequiredOption("ledger", "DIR")
    static let output = RequiredOption("output", "FILE")
    static let credential = RequiredOption(
        "auth-key", "FILE --key-id ID --team-id ID",
        or: [("auth-token-file", "FILE"), ("certificate", "FILE")],
        rare: ["auth-key-command", "auth-token-command"])

    /// The ledger of a run; nothing if the run opens no connection.
    static func ledger(_ arguments: ParsedArguments) -> [RequiredOption] {
        arguments.has("dry-run") || arguments.has("preview") ? [] : [ledger]
    }

    /// Options required to connect to APNs.
    static func toConnect(_ arguments: ParsedArguments) -> [RequiredOption] {
        var required: [RequiredOption] = []
        // A certificate names its topic, and the legacy gateway has no topics.
        if !arguments.has("certificate"), arguments.string("protocol") != "binary" {
            required.append(RequiredOption("topic", "TOPIC"))
        }
        required.append(credential)
        // If two credentials are given, that error is reported before options that one of them
        // lacks.
        if arguments.has("auth-key") || arguments.has("auth-key-command"),
            !arguments.has("certificate")
        {
            required.append(RequiredOption("key-id", "ID (Apple shows it beside the key)"))
            required.append(
                RequiredOption("team-id", "ID (Apple shows it in the membership details)"))
        }
        return required
    }
}

extension ParsedArguments {
    /// Reports all missing options in one message, so that the user can correct them in one
    /// attempt.
    func require(_ required: [RequiredOption]) throws(BroadsideError) {
        let missing = required.filter { option in !option.names.contains(where: has) }
        guard let last = missing.last else { return }
        let names = missing.map { "--\($0.names[0])" }
        let subject =
            missing.count == 1
            ? "--\(last.names[0]) is missing"
            : "\(names.dropLast().joined(separator: ", ")) and --\(last.names[0]) are missing"
        let calls = missing.map(\.call).joined(separator: "; ")
        throw .request("\(subject): add \(calls)")
    }
}
