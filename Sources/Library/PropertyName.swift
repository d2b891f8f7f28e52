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
    /// Properties whose names differ from their options' names.
    private static let names = [
        "proxy": "APNsProxy", "proxy-auth-file": "APNsProxy.loginFile",
        "ledger": "the ledger's URL", "collapse-id": "Campaign.collapseID",
        "label": "Campaign.labels", "dedupe": "RunOptions.skipsDuplicates",
        "resume": "RunOptions.ledgerUse = .resume",
        "resume-or-begin": "RunOptions.ledgerUse = .resumeOrBegin",
        "dry-run": "SendOptions.isDryRun", "yes": "SendOptions.isConfirmed",
        "protocol": "SendOptions.wireProtocol", "hpack": "SendOptions.headerIndexing",
        "keep-tokens": "SendOptions.keepsTokens",
    ]
    /// Phrases of the command, and what they mean in a program.
    private static let phrases = [
        ("the same command with --resume", "it again with --resume"),
        ("stopped by a signal", "stopped on request"),
        ("stopped by broadside control", "stopped on request"),
    ]

    /// Returns the property of this library that corresponds to an option.
    static func property(ofOption option: String) -> String {
        if credential.contains(option) { return "Campaign.credential" }
        if tokens.contains(option) { return "Campaign.tokens" }
        if server.contains(option) { return "RunOptions.server" }
        if let name = names[option] { return name }
        let name = camelCase(option)
        if campaign.contains(option) { return "Campaign.\(name)" }
        return run.contains(option) ? "RunOptions.\(name)" : "SendOptions.\(name)"
    }

    /// Returns the property that a message is about; nil if the message does not begin with one.
    static func property(ofMessage message: String) -> String? {
        if message.hasPrefix(sequence) { return "Campaign.tokens" }
        return message.prefixMatch(of: /--([a-z][a-z0-9-]*[a-z0-9])[ ,:]/).map {
            property(ofOption: String($0.1))
        }
    }

    /// The name of a sequence of rows in messages.
    private static let sequence = "standard input"

    /// Parts of words without which a message is the same in a program.
    private static let marks = ["--", "broadside", "doctor", "signal", sequence]

    /// Returns a message in which properties replace options, without commands to type.
    static func translated(_ message: String) -> String {
        // The messages of single pushes have none of them, and regular expressions take long.
        guard marks.contains(where: message.contains) else { return message }
        var text = message
        for (phrase, meaning) in phrases { text = text.replacing(phrase, with: meaning) }
        if text.hasPrefix(sequence) {
            text = "Campaign.tokens" + text.dropFirst(sequence.count)
        }
        text.replace(/(?:; [^;:]*)?: broadside [a-z]+ [^\n]*/, with: "")
        text.replace(/[;:] (?:broadside )?doctor (?:shows|checks)[^;:\n]*/, with: "")
        guard text.contains("--") else { return text }
        // Whole words only: the name of a file may contain `--`.
        let option =
            /(^|[\s'"(])--([a-z][a-z0-9-]*[a-z0-9])(?: (?:FILE|ID|DIR|URL|TOKEN)\b)?(?=[,.:;?!)'"]*(?:\s|$))/
        text.replace(option) { $0.1 + property(ofOption: String($0.2)) }
        return text.replacing(/([A-Z]\w+\.\w+)(?:(?:,|,? and|,? or) \1\b)+/) { $0.1 }
    }

    private static func camelCase(_ option: String) -> String {
        let parts = option.split(separator: "-")
        return parts.dropFirst().reduce(String(parts.first ?? "")) { name, part in
            name + (part == "id" ? "ID" : part.prefix(1).uppercased() + part.dropFirst())
        }
    }
}
