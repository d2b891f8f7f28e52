/// Names that other tools have for what an option here does: too far from its name to be a slip.
struct LikelyGuess {
    let guesses: [String]
    /// The option that is meant; nil: there is none.
    let option: String?
    /// What to write or do.
    let advice: String

    private init(_ guesses: String, _ option: String?, _ advice: String) {
        self.guesses = guesses.split(separator: " ").map(String.init)
        self.option = option
        self.advice = advice
    }

    /// The advice for an unknown option; nil where nobody is known to guess it.
    static func advice(for name: String, in command: CommandDescription) -> String? {
        all.first { guess in
            guess.guesses.contains(name)
                && guess.option.map { option in command.options.contains { $0.name == option } }
                    ?? true
        }?.advice
    }

    private static let all: [LikelyGuess] = [
        .init(
            "passphrase password passwd pass p12-password key-password", "passphrase-file",
            "write --passphrase-file FILE: its first line opens the key, no secret is an argument"),
        .init(
            "bundle bundle-id app app-id bundle-identifier", "topic",
            "write --topic TOPIC, the app's bundle ID"),
        .init("key p8 signing-key apns-key", "auth-key", "write --auth-key FILE"),
        .init("kid", "key-id", "write --key-id ID"),
        .init("team", "team-id", "write --team-id ID"),
        .init("cert p12 pfx pem client-cert", "certificate", "write --certificate FILE"),
        .init("ca cacert cafile ca-cert", "ca-file", "write --ca-file FILE"),
        .init(
            "sandbox development dev", "environment", "write --environment development"),
        .init("production prod", "environment", "write --environment production"),
        .init("device device-token", "to", "write --to TOKEN"),
        .init("list file input csv devices to-file to-list", "tokens", "write --tokens FILE"),
        .init(
            "message alert title body text notification badge sound data", "payload",
            "write --payload FILE, a file of JSON like {\"aps\":{\"alert\":\"Hello\"}}"),
        .init("ttl expires expiry expire", "expiration", "write --expiration +2h"),
        .init("host server url gateway", "endpoint", "write --endpoint HOST:PORT"),
        .init("port address bind", "listen", "write --listen 127.0.0.1:PORT"),
        .init("concurrency parallel workers jobs", "connections", "write --connections N"),
        .init("threads", "reactors", "write --reactors N"),
        .init("throttle speed rps qps", "rate", "write --rate N, requests per second"),
        .init("timeout", "request-timeout", "write --request-timeout D, like 30s"),
        .init("retries attempts", "max-attempts", "write --max-attempts N"),
        .init("count first max head", "limit", "write --limit N"),
        .init("test check simulate noop", "dry-run", "write --dry-run"),
        .init(
            "exclude blacklist optout opt-out opt-outs unsubscribed", "suppress",
            "write --suppress FILE"),
        .init("dedupe dedup unique", "duplicates", "write --duplicates skip"),
        .init("type", "push-type", "write --push-type TYPE"),
        .init("collapse", "collapse-id", "write --collapse-id ID"),
        .init(
            "lang language locale languages translations", "payload-by",
            "write --payload-by COLUMN=DIR, with DIR/de.json, DIR/default.json and so on"),
        .init(
            "topic-column app-column", "topic",
            "--topic is the same for all rows: two apps are two runs"),
        .init(
            "channel channel-id broadcast", nil,
            "broadcast channels are not supported, each notification goes to a device token"),
        .init("prometheus metrics-port", "metrics", "write --metrics :PORT or --metrics FILE"),
        .init("continue", "resume", "write --resume"),
        .init(
            "begin start-or-resume begin-or-resume resume-or-start", "resume-or-begin",
            "write --resume-or-begin: it continues the ledger, or begins if there is none"),
        .init(
            "in-place inplace overwrite", "removed",
            "write --output FILE, and move that over the list once you have checked it"),
        .init("verbose debug", "log", "write --log text"),
        .init("quiet silent", "progress", "write --progress none"),
        .init(
            "output out results", "ledger", "write --ledger DIR, a new directory for the results"),
        .init(
            "at schedule send-at start-at when start start-time time delay", "deadline",
            "a run starts at once: use systemd-run --on-calendar=19:00, or cron, to start it later"
        ),
    ]
}
