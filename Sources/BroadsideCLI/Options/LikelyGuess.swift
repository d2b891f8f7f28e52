import BroadsideSupport

/// The names that other tools use for an option or a command. They differ too much from Broadside's
/// names to be typos. Some are names of features that Broadside does not have; for these, the
/// advice describes an alternative.
struct LikelyGuess {
    let guesses: [String]
    /// Option that was probably meant. The advice applies to commands that have this option. nil:
    /// the advice applies to all commands.
    let option: String?
    /// Advice on the correct option or on an alternative.
    let advice: String

    private init(_ guesses: String, _ option: String?, _ advice: String) {
        self.guesses = guesses.split(separator: " ").map(String.init)
        self.option = option
        self.advice = advice
    }

    /// Returns advice for an unknown option; nil if there is no advice for its name.
    ///
    /// - Parameters:
    ///   - options: Options of the command and its subcommand.
    ///   - isOfAnyCommand: Whether to return also advice that is not about an option.
    static func advice(
        for name: String, among options: [String], isOfAnyCommand: Bool = true
    ) -> String? {
        all.first { guess in
            guess.guesses.contains(name) && guess.option.map(options.contains) ?? isOfAnyCommand
        }?.advice
    }

    /// Returns advice for an unknown command; nil if there is no advice for its name.
    static func advice(forCommand name: String) -> String? {
        commands.first { $0.guesses.contains(name) }?.advice
    }

    private static let commands: [LikelyGuess] = [
        .init("channels", nil, "did you mean channel?"),
        .init("nightly cron timer daily", nil, "did you mean night?"),
        .init("push notify blast publish start", nil, "did you mean send?"),
        .init("clean cleanup purge", nil, "did you mean prune?"),
        .init("watch progress ps top", nil, "did you mean status?"),
        .init("validate lint preflight", nil, "did you mean send --dry-run?"),
        .init("simulator mock fake", nil, "did you mean simulate?"),
        .init("benchmark", nil, "did you mean bench?"),
        .init("completion completions", nil, "did you mean help --completion bash|zsh|fish?"),
        .init("man", nil, "did you mean help --man?"),
        .init(
            "serve server daemon listen", nil,
            "broadside is not a server: start broadside send when there is something to send"),
    ]

    private static let all: [LikelyGuess] = [
        .init(
            "passphrase password passwd pass p12-password key-password", "passphrase-file",
            "write --passphrase-file FILE, with the passphrase on its first line: a secret must not be an argument"
        ),
        .init(
            "bundle bundle-id app app-id bundle-identifier", "topic",
            "write --topic TOPIC, the app's bundle ID"),
        .init(
            "bundle bundle-id topic app-id bundle-identifier", "app",
            "write --app BUNDLE, the app's bundle ID"),
        .init("key p8 signing-key apns-key", "auth-key", "write --auth-key FILE"),
        .init("kid", "key-id", "write --key-id ID"),
        .init("team", "team-id", "write --team-id ID"),
        .init("cert p12 pfx pem client-cert", "certificate", "write --certificate FILE"),
        .init("ca cacert cafile ca-cert", "ca-file", "write --ca-file FILE"),
        .init(
            "env sandbox development dev", "environment",
            "write --environment development, or production"),
        .init("production prod", "environment", "write --environment production"),
        .init("device device-token", "to", "write --to TOKEN"),
        .init(
            "token", "to",
            "write --to TOKEN for one device, --tokens FILE for a list, --auth-token-file FILE for a "
                + "provider token"),
        .init(
            "config conf config-file settings yaml", "campaign",
            "write --campaign FILE, a JSON5 file that contains options by their names"),
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
        .init(
            "holdout hold-out control-group control", "split",
            "write --split a=90 --split-salt TEXT: the rest up to 100 percent is the holdout"),
        .init(
            "arms variant variants ab ab-test experiment", "split",
            "write --split a=50,b=50 --split-salt TEXT, with --arm a=FILE and --arm b=FILE"),
        .init("filter query segment", "where", "write --where 'COLUMN = VALUE'"),
        .init(
            "frequency-cap not-in-ledger within", "cap",
            "write --cap N/D with --history DIR, such as --cap 3/7d"),
        .init(
            "webhook slack callback on-complete on-finish", "hook",
            "write --hook COMMAND, such as a script that calls the webhook; the command reads each event as JSON"
        ),
        .init("key-command", "auth-key-command", "write --auth-key-command COMMAND"),
        .init(
            "token-command jwt-command", "auth-token-command",
            "write --auth-token-command COMMAND"),
        .init(
            "auth-token", "auth-token-file",
            "write --auth-token-file FILE, or --auth-token-command COMMAND: a secret must not be an argument"
        ),
        .init("auth-key-env key-env", "auth-key", "write --auth-key env:NAME"),
        .init("no-tokens anonymous forget-tokens", "keep-tokens", "write --keep-tokens no"),
        .init(
            "ledgers date date-file keep night-length", "resume-or-begin",
            "it is an option of broadside night: write broadside night --campaign FILE --ledgers DIR"
        ),
        .init(
            "ledger", "ledgers",
            "write --ledgers DIR: the ledger of each night is DIR/NAME/DATE"),
        .init(
            "resume resume-or-begin must-resume", "ledgers",
            "a night continues without this option: remove it, or write --date DATE for an earlier night"
        ),
        .init(
            "to", "ledgers",
            "a night sends to a list, not to one device: write broadside send --to TOKEN, with a ledger of its own"
        ),
        .init("dedupe dedup unique", "duplicates", "write --duplicates skip"),
        .init("type", "push-type", "write --push-type TYPE"),
        .init("collapse", "collapse-id", "write --collapse-id ID"),
        .init(
            "lang language locale languages translations", "payload-by",
            "write --payload-by COLUMN=DIR, with DIR/de.json, DIR/default.json and so on"),
        .init(
            "topic-column app-column", "topic",
            "write --topic '{{column}}': each row then names its topic"),
        .init("channel-id", "channel", "write --channel ID"),
        .init(
            "channel channel-id broadcast storage", nil,
            "broadcast channels have commands of their own: broadside channel and broadside broadcast"
        ),
        .init("prometheus metrics-port", "metrics", "write --metrics :PORT or --metrics FILE"),
        .init("continue", "resume", "write --resume"),
        .init(
            "begin start-or-resume begin-or-resume resume-or-start", "resume-or-begin",
            "write --resume-or-begin: it continues the ledger, or begins a new one if there is none"
        ),
        .init("tail watch", "follow", "write --follow: rows are written as they settle"),
        .init(
            "opens clicks receipt", "receipts",
            "write --receipts FILE, a file with what devices reported: an apns_id or a token, and a time"
        ),
        .init(
            "newest-column", "newest",
            "write --newest COLUMN: the row with the newest time is kept"),
        .init(
            "in-place inplace overwrite", "removed",
            "write --output FILE, check that file, then rename it to the name of the list"),
        .init("verbose debug", "log", "write --log text"),
        .init("silent", "progress", "write --progress none"),
        // Most commands with this option also have --ledger, which is an input there.
        .init("out results", "output", "did you mean --output?"),
        .init(
            "output out results", "ledger", "write --ledger DIR, a new directory for the results"),
        .init(
            "at schedule send-at start-at when start start-time time delay",
            "deliver-at",
            "write --deliver-at 19:00 with --zone-column NAME or --zone-default ZONE; to start the "
                + "whole run later, use cron or systemd-run --on-calendar=19:00"
        ),
        .init(
            "timezone time-zone tz", "zone-column",
            "write --zone-column NAME, the column with each row's zone, or --zone-default ZONE"),
        .init("quiet-hours", "quiet", "write --quiet 22:00-08:00"),
    ]
}
