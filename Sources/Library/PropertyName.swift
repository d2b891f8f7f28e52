/// Properties of this library that correspond to options of the command.
enum PropertyName {
    private static let campaign: Set = [
        "topic", "payload", "priority", "expiration", "name", "push-type",
    ]
    private static let credential: Set = [
        "auth-key", "auth-key-command", "auth-token-file", "auth-token-command", "certificate",
        "key-id", "team-id", "private-key", "passphrase-file",
    ]
    private static let tokens: Set = ["tokens", "to", "format"]
    private static let server: Set = ["endpoint", "ca-file", "environment", "port"]
    private static let run: Set = [
        "rate", "deadline", "retry", "connections", "reactors", "max-attempts", "retry-for",
        "request-timeout", "give-up-after", "on-lost", "canary", "limit", "suppress",
    ]
    /// Longest options first, so that an option is not found within a longer one.
    private static let phrases = [
        ("--resume-or-begin", "RunOptions.ledgerUse = .resumeOrBegin"),
        ("the same command with --resume", "it again with RunOptions.ledgerUse = .resume"),
        ("--resume", "RunOptions.ledgerUse = .resume"),
        ("--dedupe", "RunOptions.skipsDuplicates"), ("--collapse-id", "Campaign.collapseID"),
        ("--label", "Campaign.labels"), ("--ledger DIR", "the ledger's URL"),
        ("--ledger", "the ledger's URL"),
    ]

    /// Returns the property of this library that corresponds to an option.
    static func property(ofOption option: String) -> String {
        if credential.contains(option) { return "Campaign.credential" }
        if tokens.contains(option) { return "Campaign.tokens" }
        if server.contains(option) { return "RunOptions.server" }
        if option == "proxy" { return "APNsProxy" }
        if option == "proxy-auth-file" { return "APNsProxy.loginFile" }
        if option == "ledger" { return "the ledger's URL" }
        if option == "collapse-id" { return "Campaign.collapseID" }
        if option == "label" { return "Campaign.labels" }
        let name = camelCase(option)
        if campaign.contains(option) { return "Campaign.\(name)" }
        return run.contains(option) ? "RunOptions.\(name)" : "SendOptions.\(name)"
    }

    /// Returns a message in which properties replace options.
    static func translated(_ message: String) -> String {
        guard message.contains("--") else { return message }
        var text = message
        for (option, name) in phrases { text = text.replacing(option, with: name) }
        return text.replacing(/--([a-z][a-z0-9-]*[a-z0-9])(?: (?:FILE|ID|DIR|URL|TOKEN)\b)?/) {
            property(ofOption: String($0.1))
        }
    }

    private static func camelCase(_ option: String) -> String {
        let parts = option.split(separator: "-")
        return parts.dropFirst().reduce(String(parts.first ?? "")) { name, part in
            name + (part == "id" ? "ID" : part.prefix(1).uppercased() + part.dropFirst())
        }
    }
}
