import BroadsideTestSupport
import Testing

/// What a newcomer is most likely to get wrong, command by command: each is refused in words that
/// name the fix. What is malformed in itself stands in `MalformedRequest` and `MalformedCall`.
extension MalformedRequest {
    static let likely: [MalformedRequest] = [
        // The wrong kind of file.
        .init(["--payload", "@list"], says: ["@list, line 1, column 1", "must start with {"]),
        .init(
            ["--payload", "@garbage"], says: ["@garbage, line 1, column 1", "must start with {"]),
        .init(
            ["--payload", "@directory"],
            says: ["--payload", "@directory is a directory", "--payload-by COLUMN=DIR"]),
        .init(["--payload", "-"], says: ["--payload -", "standard input", "name a file"]),
        .init(
            ["--payload", "@trailing-comma"],
            says: ["line 1, column 21", "an extra comma", "quote"]),
        .init(["--tokens", "@utf16"], says: ["@utf16 is UTF-16", "iconv -f UTF-16 -t UTF-8"]),
        .init(
            ["--tokens", "@bars.csv"], says: ["'token'", "token|name", "'|'", "psql --csv"]),
        .init(["--tokens", "@tabs.csv"], says: ["with tabs", "--format tsv"]),
        .init(["--tokens", "@device.csv"], says: ["id, device", "--token-column"]),
        .init(
            ["--tokens", "@device-token.csv"], says: ["did you mean 'Device Token'?"]),
        .init(
            ["--tokens", "@device-token.csv", "--token-column", "devicetoken"],
            says: ["did you mean 'Device Token'?", "--token-column"]),
        .init(["--ledger", "@list"], says: ["--ledger", "@list is a file", "name a directory"]),
        // Something that is written would take the place of something that is read.
        .init(["--summary", "@list", "--tokens", "@list"], says: ["--summary", "--tokens reads"]),
        .init(["--report", "@fits", "--payload", "@fits"], says: ["--report", "--payload reads"]),
        .init(
            ["--trace-frames", "@list", "--tokens", "@./list"],
            says: ["--trace-frames", "--tokens reads", "overwritten"]),
        .init(
            ["--metrics", "@list", "--suppress", "@list"], says: ["--metrics", "--suppress reads"]),
        .init(
            ["--summary", "x", "--report", "x"],
            says: ["--report and --summary", "use different files"]),
        .init(["--summary", "@directory"], says: ["--summary", "is a directory", "a file in it"]),
        .init(["--report", "@directory"], says: ["--report", "is a directory"]),
        .init(["--metrics", "9100"], says: ["--metrics 9100", "127.0.0.1:9100", "./9100"]),
        .init(["--metrics", "localhost"], says: ["--metrics localhost", "./localhost"]),
        .init(["--metrics", "127.0.0.1:abc"], says: ["'abc' is not a port", "./127.0.0.1:abc"]),
        .init(["--metrics", "[::1]:"], says: ["'' is not a port"]),
        // Slips of the pen.
        .init(["-tokens", "x"], says: ["-tokens", "did you mean --tokens?"]),
        .init(["@list"], says: ["takes no word", "did you mean --tokens /", "/list?"]),
        .init(["topic"], says: ["'topic'", "did you mean --topic?"]),
        .init(["--ledger", ""], says: ["--ledger is empty", "variable"]),
        .init(["--where", ""], says: ["--where is empty", "variable"]),
        .init(["--environment", "Sandbox"], says: ["'Sandbox'", "did you mean development?"]),
        .init(["--environment", "prod"], says: ["'prod'", "did you mean production?"]),
        .init(
            ["--endpoint", "https://localhost:1"], says: ["localhost:2197", "without the scheme"]),
        .init(
            ["--auth-key", "@key.p12"],
            says: ["@key.p12", "PKCS#12", "name it with --certificate, in place of --auth-key"]),
        .init(["--where", "country != 'FR'"], says: ["--where", "write country != FR,"]),
        .init(["--retry", "all"], says: ["--retry 'all'", "both as failed,unknown"]),
        .init(["--retry", "both"], says: ["--retry 'both'", "both as failed,unknown"]),
        .init(["--rate", "10k"], says: ["--rate '10k'", "like 5000"]),
        .init(["--rate", "100..5000"], says: ["--rate '100..5000'", "like 100..5000/10m"]),
        .init(
            ["--rate", "100...5000/10m"], says: ["--rate '100...5000/10m'", "like 100..5000/10m"]),
        .init(["--rate", "0..5000/10m"], says: ["--rate '0..5000/10m'", "like 100..5000/10m"]),
        .init(["--rate", "1..2e9/10m"], says: ["--rate '1..2e9/10m'", "like 100..5000/10m"]),
        .init(["--rate", "1..5/10"], says: ["--rate '1..5/10'", "how long"]),
        .init(["--rate", "1..5/0s"], says: ["--rate '1..5/0s'", "how long"]),
        .init(["--rate", "5000..100/10m"], says: ["falls", "write 100..5000/10m"]),
        .init(["--rate", "99999999999999999999999"], says: ["--rate", "up to 1,000,000,000"]),
        .init(["--rate-per-connection", "1e300"], says: ["up to 1,000,000,000"]),
        .init(["--max-bad-tokens", "5%"], says: ["'5%'", "the number alone"]),
        .init(["--expiration", "2h"], says: ["--expiration '2h'", "+2h"]),
        .init(["--expiration", "+2hours"], says: ["'+2hours'", "+2h"]),
        .init(["--deadline", "23:59"], says: ["--deadline '23:59'", "2h"]),
        // Names that other tools have.
        .init(["--passphrase", "x"], says: ["--passphrase-file FILE", "must not be an argument"]),
        .init(["--password", "x"], says: ["--passphrase-file FILE"]),
        .init(
            ["--auth-token", "x"], says: ["write --auth-token-file FILE, or --auth-token-command"]),
        .init(["--to-file", "x"], says: ["--tokens FILE"]),
        .init(["--badge", "3"], says: ["--payload FILE"]),
        .init(["--schedule", "19:00"], says: ["systemd-run --on-calendar=19:00"]),
        .init(["--time", "19:00"], says: ["systemd-run --on-calendar=19:00"]),
        .init(["--lang", "de"], says: ["--payload-by COLUMN=DIR"]),
        .init(["--topic-column", "app"], says: ["write --topic '{{column}}'"]),
        .init(["--channel", "x"], says: ["broadside channel and broadside broadcast"]),
        .init(["--prometheus", ":9100"], says: ["--metrics :PORT"]),
        .init(["--sandbox"], says: ["--environment development"]),
        .init(["--bundle-id", "x"], says: ["--topic TOPIC"]),
        .init(["--ttl", "3600"], says: ["--expiration +2h"]),
        .init(["--at", "19:00"], says: ["systemd-run --on-calendar=19:00"]),
        .init(
            [
                "--key-id", Campaign.teamID, "--team-id", "ABC123DEFG", "--auth-key",
                "@AuthKey_ABC123DEFG.p8",
            ],
            says: ["swapped", "says key ID ABC123DEFG"]),
        // What is the same for all rows.
        .init(["--topic", "{{app}}"], says: ["--topic", "'app'"]),
        .init(["--topic", "{{app"], says: ["--topic", "not closed"]),
        .init(["--topic", "{{app:int}}"], says: ["--topic", "write {{app}}"]),
        // Times that have passed, and what was meant.
        .init(["--expiration", "3600"], says: ["1970-01-01T01:00:00Z", "did you mean +3600s?"]),
        .init(["--expiration", "1700000000"], says: ["2023-11-14T22:13:20Z", "a future time"]),
        .init(["--expiration", "1767290400000"], says: ["did you mean 1767290400?"]),
        .init(["--expiration", "20301123"], says: ["did you mean 2030-11-23?"]),
        .init(["--expiration", "2023-11-14"], says: ["2023-11-14T23:59:59Z", "has passed"]),
        .init(["--expiration", "2030-02-30"], says: ["'2030-02-30' is unknown", "a date like"]),
        .init(
            ["--json"],
            says: ["unknown option --json", "it is one of broadcast, channel, ledger", "--help"]),
    ]
}

extension MalformedCall {
    static let likely: [MalformedCall] = [
        .init(["-v"], says: ["'-v'", "did you mean --version?"]),
        .init(["--verison"], says: ["'--verison'", "did you mean --version?"]),
        .init(["--help", "sned"], says: ["'sned'", "did you mean send?"]),
        .init(["version"], says: ["did you mean --version?"]),
        .init(["find", "--token", "aabb"], says: ["'find'", "did you mean ledger find?"]),
        .init(["pause"], says: ["did you mean control --ledger DIR pause?"]),
        .init(["resume"], says: ["control --ledger DIR resume or send --resume?"]),
        .init(["dry-run"], says: ["did you mean send --dry-run?"]),
        .init(["check"], says: ["did you mean tokens check or payload check?"]),
        .init(["ledger", "list"], says: ["'list'", "stats, export, verify, find, merge"]),
        .init(
            ["ledger", "stats", "@strange"],
            says: ["takes no word", "did you mean --ledger /", "/strange?"]),
        .init(
            ["ledger", "stats", "--ledger", "x", "--tokens", "y"],
            says: ["--tokens", "ledger stats", "remove it"]),
        .init(["ledger", "verify", "--ledger", "x", "--json"], says: ["--json", "ledger verify"]),
        .init(
            ["ledger", "merge", "--ledger", "a b", "--ledger", "y", "--output", "whole"],
            says: ["--ledger", "write broadside ledger merge --output whole 'a b' y"]),
        .init(
            ["ledger", "merge", "--ledger", "x", "z"],
            says: ["write broadside ledger merge --output DIR x z"]),
        .init(
            ["ledger", "export", "--ledger", "x", "--output", "o.parquet"],
            says: ["--output", ".parquet", ".csv or .jsonl", "--format csv"]),
        .init(
            ["ledger", "export", "--ledger", "x", "--follow", "--output", "o.tsv.gz"],
            says: ["--output", "ends with .tsv"]),
        .init(
            ["ledger", "find", String(repeating: "ab", count: 32)],
            says: ["takes no word 'abababab…'", "did you mean --token TOKEN?"]),
        .init(
            ["ledger", "find", "01234567-89ab-8cde-bc00-fedcba987654"],
            says: ["did you mean --apns-id 01234567-89ab-8cde-bc00-fedcba987654?"]),
        .init(
            ["report", "@strange"], says: ["takes no word", "did you mean --ledger /", "/strange?"]),
        .init(["prune", "@list"], says: ["takes no word", "did you mean --tokens /", "/list?"]),
        .init(
            ["prune", "--ledger", "@strange", "--tokens", "@list", "--output", "@./list"],
            says: ["--output", "--tokens reads", "overwritten"]),
        .init(
            [
                "prune", "--ledger", "@strange", "--tokens", "@list", "--output", "x", "--removed",
                "x",
            ], says: ["--removed and --output", "use different files"]),
        .init(
            ["prune", "--in-place"], says: ["unknown option --in-place", "write --output FILE"]),
        .init(["prune", "--out", "x"], says: ["unknown option --out: did you mean --output?"]),
        .init(
            ["ledger", "stats", "--file", "x"],
            says: ["unknown option --file: broadside ledger --help"]),
        .init(["tokens", "@list"], says: ["unknown word '/", "check, dedupe"]),
        .init(["tokens", "check", "@list"], says: ["did you mean --tokens /", "/list?"]),
        .init(["tokens", "check", "--tokens", "@utf16"], says: ["UTF-16", "iconv"]),
        .init(["payload", "@fits"], says: ["unknown word '/", "check"]),
        .init(["payload", "check", "@fits"], says: ["did you mean --payload /", "/fits?"]),
        .init(
            ["payload", "check", "--payload", "@directory"],
            says: ["is a directory", "--payload-by COLUMN=DIR"]),
        .init(["probe", "--to", "aabb"], says: ["unknown option --to", "it is one of send"]),
        .init(
            ["probe", "--payload", "@fits"],
            says: ["unknown option --payload", "it is one of send"]),
        .init(
            ["probe", "--tokens", "@list", "--then-prune", "@list"],
            says: ["--then-prune", "--tokens reads"]),
        .init(["doctor", "--tokens", "x"], says: ["--tokens", "it is one of send"]),
        .init(
            ["doctor", "--print-token", "--json"],
            says: ["--print-token and --json exclude each other"]),
        .init(
            ["doctor", "--print-token", "--survey", "x"],
            says: ["--print-token and --survey exclude each other"]),
        .init(["feedback", "--auth-key", "x"], says: ["--auth-key", "it is one of send"]),
        .init(
            [
                "feedback", "--endpoint", "127.0.0.1:1", "--certificate", "@nothing", "--ledger",
                "y",
            ], says: ["--certificate", "@nothing", "No such file"]),
        .init(["status", "--ledger", "x"], says: ["--ledger", "write broadside status DIR"]),
        .init(["control"], says: ["control takes", "control --ledger DIR status"]),
        .init(["control", "x", "rate", "-5"], says: ["-5", "numbers here are 0 or more"]),
        .init(
            ["control", "@strange", "status"], says: ["is a directory", "did you mean --ledger /"]),
        .init(["control", "x"], says: ["control takes", "--ledger DIR status"]),
        .init(
            ["simulate", "--state", "x", "--port", "2197"],
            says: ["unknown option --port", "--listen 127.0.0.1:PORT"]),
        .init(
            ["simulate", "--state", "@list"],
            says: ["--state", "/list is a file", "name a directory"]),
        .init(
            ["simulate", "--state", "x", "--scenario", "goway"],
            says: ["'goway'", "did you mean goaway?", "--scenario list"]),
        .init(
            ["simulate", "--state", "x", "--listen", "2197"], says: ["'2197'", "127.0.0.1:2197"]),
        .init(
            ["simulate", "--state", "x", "--unregistered", "5%"], says: ["'5%'", "0.01 for one"]),
        .init(["bench", "--duration", "10"], says: ["--duration '10'", "30s"]),
        .init(
            ["bench", "--endpoint", "127.0.0.1:1"], says: ["--topic and --auth-key are missing"]),
    ]
}
