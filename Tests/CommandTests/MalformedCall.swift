import Testing

/// A whole call of any command that is wrong in itself; `@name` stands for a file of `Files`.
struct MalformedCall: Sendable, CustomTestStringConvertible {
    var arguments: [String]
    /// What the line has to say.
    var says: [String]

    init(_ arguments: [String], says: [String]) {
        (self.arguments, self.says) = (arguments, says)
    }

    var testDescription: String { arguments.joined(separator: " ") }
}

extension MalformedCall {
    static let all = lists + ledgers + payloads + connections + simulators

    static let lists: [MalformedCall] = [
        .init(["tokens"], says: ["tokens needs one of", "check"]),
        .init(["tokens", "chekc", "--tokens", "@list"], says: ["'chekc'", "check"]),
        .init(["tokens", "check"], says: ["--tokens is missing"]),
        .init(["tokens", "check", "--tokens", "@nothing"], says: ["@nothing", "No such file"]),
        .init(["tokens", "check", "--tokens", "@directory"], says: ["@directory"]),
        .init(
            ["tokens", "check", "--tokens", "@list", "--format", "xml"], says: ["--format 'xml'"]),
        .init(
            ["tokens", "check", "--tokens", "@people.csv", "--token-column", "tokne"],
            says: ["@people.csv", "'tokne'", "token, name"]),
        .init(
            ["tokens", "check", "--tokens", "@list", "--output", "x"],
            says: ["--output", "tokens check"]),
        .init(["tokens", "dedupe", "--tokens", "@list"], says: ["--output is missing"]),
        .init(
            ["tokens", "dedupe", "--tokens", "@list", "--output", "x", "--json"],
            says: ["--json", "tokens dedupe"]),
        .init(
            ["tokens", "dedupe", "--tokens", "@list", "--output", "@list"],
            says: ["--output", "@list"]),
        .init(
            [
                "tokens", "dedupe", "--tokens", "@people.csv", "--output", "x",
                "--registered-column", "since",
            ], says: ["'since'"]),
        .init(
            ["prune"],
            says: [
                "--ledger, --tokens and --output are missing",
                "--ledger DIR; --tokens FILE; --output",
            ]),
        .init(
            ["prune", "--ledger", "@nothing"], says: ["--tokens and --output are missing"]),
        .init(
            ["prune", "--ledger", "@nothing", "--tokens", "@list"], says: ["--output is missing"]),
        .init(
            ["prune", "--ledger", "@nothing", "--tokens", "@list", "--output", "x"],
            says: ["--ledger", "@nothing"]),
        .init(
            ["prune", "--ledger", "@strange", "--tokens", "@list", "--output", "x"],
            says: ["--ledger", "@strange"]),
        .init(["prune", "extra"], says: ["'extra'"]),
        .init(["prune", "--max-removed", "200"], says: ["--ledger"]),
        .init(
            [
                "prune", "--ledger", "@strange", "--tokens", "@list", "--output", "x",
                "--max-removed", "200",
            ], says: ["--max-removed '200'", "0 to 100"]),
        .init(
            [
                "prune", "--ledger", "@strange", "--tokens", "@list", "--output", "x", "--reasons",
                "Unregisterd",
            ], says: ["--reasons 'Unregisterd'", "Unregistered"]),
    ]

    static let ledgers: [MalformedCall] = [
        .init(["ledger"], says: ["stats, export, verify, find"]),
        .init(["ledger", "stat", "--ledger", "x"], says: ["'stat'", "stats"]),
        .init(["ledger", "stats"], says: ["--ledger is missing"]),
        .init(
            ["ledger", "find"],
            says: ["--ledger and --apns-id are missing", "--apns-id ID, or --token TOKEN"]),
        .init(["ledger", "repair"], says: ["--ledger and --output are missing"]),
        .init(
            ["ledger", "forget"],
            says: ["--tokens and --ledger are missing", "--tokens FILE, or --token TOKEN"]),
        .init(["ledger", "stats", "--ledger", "@nothing"], says: ["@nothing"]),
        .init(["ledger", "stats", "--ledger", "@strange"], says: ["@strange"]),
        .init(["ledger", "stats", "--ledger", "@empty"], says: ["@empty"]),
        .init(["ledger", "verify", "--ledger", "@nothing"], says: ["@nothing"]),
        .init(["ledger", "export", "--ledger", "@nothing"], says: ["@nothing"]),
        .init(["ledger", "find", "--ledger", "@nothing", "--token", "aa"], says: ["@nothing"]),
        .init(["ledger", "stats", "--ledgr", "x"], says: ["--ledgr", "--ledger"]),
    ]

    static let payloads: [MalformedCall] = [
        .init(["payload"], says: ["payload needs one of", "check"]),
        .init(["payload", "chek"], says: ["'chek'", "check"]),
        .init(["payload", "check"], says: ["--payload is missing"]),
        .init(["payload", "check", "--payload", "@nothing"], says: ["@nothing", "No such file"]),
        .init(["payload", "check", "--payload", "@directory"], says: ["@directory"]),
        .init(
            ["payload", "check", "--payload", "@fits", "--push-type", "alrt"],
            says: ["--push-type 'alrt'", "alert"]),
    ]

    static let connections: [MalformedCall] = [
        .init(
            ["probe"],
            says: ["--tokens, --topic, --auth-key and --ledger are missing", "--certificate FILE"]),
        .init(
            ["send"],
            says: [
                "--tokens, --payload, --topic, --auth-key and --ledger are missing",
                "or --to TOKEN",
                "or --payload-by COLUMN=DIR",
            ]),
        .init(
            ["send", "--dry-run", "--certificate", "x", "--to", "aabb"],
            says: ["--payload is missing"]),
        .init(
            ["send", "--auth-key", "x", "--tokens", "x", "--payload", "x", "--ledger", "x"],
            says: ["--topic, --key-id and --team-id are missing"]),
        .init(["feedback"], says: ["--endpoint, --certificate and --ledger are missing"]),
        .init(["tokens", "dedupe"], says: ["--tokens and --output are missing"]),
        .init(["doctor", "--print-token"], says: ["--auth-key is missing"]),
        .init(
            ["probe", "--tokens", "@list", "--payload", "x"], says: ["unknown option --payload"]),
        .init(["probe", "--tokens", "@list"], says: ["--auth-key"]),
        .init(["probe", "word"], says: ["'word'"]),
        .init(
            ["doctor", "--topic", "x", "--certificate", "x", "--push-type", "alrt"],
            says: ["--push-type 'alrt'", "alert"]),
        .init(["doctor", "word"], says: ["'word'"]),
        .init(["doctor"], says: ["--auth-key"]),
        .init(
            ["doctor", "--auth-key", "@nothing"],
            says: ["--topic, --key-id and --team-id are missing"]),
        .init(
            [
                "doctor", "--auth-key", "@nothing", "--key-id", "ABC123DEFG", "--team-id",
                "DEF123GHIJ", "--topic", "x",
            ], says: ["--auth-key", "@nothing", "No such file"]),
        .init(["send", "--hepl"], says: ["unknown option --hepl"]),
        .init(["sned"], says: ["'sned'", "send"]),
        .init([], says: ["no command given"]),
    ]

    static let simulators: [MalformedCall] = [
        .init(["simulate"], says: ["--state is missing"]),
        .init(["simulate", "--state", "@empty/x", "--listen", "here"], says: ["--listen 'here'"]),
        .init(
            ["simulate", "--state", "@directory", "--listen", "127.0.0.1:99999"],
            says: ["--listen '127.0.0.1:99999'"]),
        .init(["simulate", "--state", "@directory", "--latency", "5"], says: ["--latency '5'"]),
        .init(
            ["simulate", "--state", "@directory", "--latency-jitter", "5ms"],
            says: ["--latency-jitter", "--latency"]),
        .init(
            ["simulate", "--state", "@directory", "--bad-token", "2"], says: ["--bad-token '2'"]),
        .init(
            ["simulate", "--state", "@directory", "--bad-token", "0.6", "--unregistered", "0.6"],
            says: ["--bad-token", "--unregistered"]),
        .init(["simulate", "--state", "@directory", "--threads", "0"], says: ["--threads '0'"]),
        .init(["simulate", "--state", "@directory", "--seed", "-1"], says: ["--seed '-1'"]),
        .init(
            ["simulate", "--state", "@directory", "--gone-at", "soon"],
            says: ["--gone-at 'soon'", "request, start, Unix seconds"]),
        .init(
            ["simulate", "--state", "@directory", "--gone-at", "+2h"], says: ["--gone-at '+2h'"]),
        .init(
            ["simulate", "--state", "@directory", "--server-name", "a,b"],
            says: ["--server-name 'a,b'", "api.push.apple.com"]),
        .init(
            ["simulate", "--state", "@directory", "--hpack-lint", "no"], says: ["--hpack-lint 'no'"]
        ),
        .init(
            ["simulate", "--state", "@directory", "--fast", "--journal", "x"],
            says: ["--fast", "--journal"]),
        .init(["simulate", "word", "--state", "x"], says: ["'word'"]),
    ]
}

extension MalformedRequest {
    /// Payload templates, payload directories, collapse IDs.
    static let templates: [MalformedRequest] = [
        .init(["--payload", "@t-unclosed"], says: ["@t-unclosed, line 2, column 8", "}}"]),
        .init(["--payload", "@t-key"], says: ["@t-key, line 1, column 3", "keys can't"]),
        .init(["--payload", "@t-type"], says: ["@t-type, line 1, column 8", "write {{n}}"]),
        .init(["--payload", "@t-float"], says: ["@t-float", "column 7", ":int, :bool"]),
        .init(
            ["--payload", "@t-nested"],
            says: ["@t-nested, line 1, column 18", "the default of {{name}} contains {{"]),
        .init(
            ["--collapse-id", "{{name|a{{x}}", "--tokens", "@people.csv"],
            says: ["--collapse-id", "the default of {{name}} contains {{"]),
        .init(["--payload", "@t-default"], says: ["@t-default", "'x' is not a whole number"]),
        .init(
            ["--payload", "@t-name"], says: ["@t-name, line 1, column 18", "plain list of lines"]),
        .init(
            ["--payload", "@t-nmae", "--tokens", "@people.csv"],
            says: ["@t-nmae, line 2, column 15", "'nmae'", "did you mean 'name'?", "token, name"]),
        .init(
            ["--payload", "@t-name", "--to", "aabb"], without: ["tokens"],
            says: ["@t-name", "--to"]),
        .init(["--payload", "@t-large"], says: ["@t-large", "4,104", "4,096"]),
        .init(["--collapse-id", "{{name}}"], says: ["--collapse-id", "'name'"]),
        .init(["--collapse-id", "a{{name"], says: ["--collapse-id", "character 2", "}}"]),
        .init(["--collapse-id", "{{n:int}}"], says: ["--collapse-id", "{{n}}"]),
        .init(
            [
                "--collapse-id", "{{name}}" + String(repeating: "x", count: 65), "--tokens",
                "@people.csv",
            ],
            says: ["--collapse-id", "64", "65"]),
        .init(["--payload-by", "x"], says: ["--payload-by 'x'", "COLUMN=DIR"]),
        .init(["--payload-by", "=x"], says: ["--payload-by '=x'"]),
        .init(["--payload-by", "name="], says: ["--payload-by 'name='"]),
        .init(["--payload-by", "name=nowhere"], says: ["--payload-by nowhere", "No such file"]),
        .init(["--payload-by", "name=@directory"], says: ["--payload-by", "default.json"]),
        .init(
            ["--payload-by", "name=@by", "--tokens", "@people.csv"],
            says: ["@by/pt.json, line 1, column 6"]),
        .init(["--payload-by", "locale=@by-good"], says: ["--payload-by", "plain list of lines"]),
        .init(
            ["--payload-by", "nam=@by-good", "--tokens", "@people.csv"],
            says: ["--payload-by", "did you mean 'name'?"]),
        .init(["--topic", "com.example.app.push-type.widgets"], says: ["--topic", "widgets"]),
        .init(["--push-type", "voip"], says: ["--topic", ".voip"]),
        .init(
            ["--push-type", "background", "--priority", "1", "--payload-check", "off"],
            says: ["--priority", "must be 5"]),
        .init(
            [
                "--push-type", "liveactivity", "--priority", "1", "--payload-check", "off",
                "--topic",
                "com.example.app.push-type.liveactivity",
            ], says: ["--priority", "5 or 10"]),
    ]

    /// Campaign files: each is written as `c-NAME` before.
    static let campaignTexts: [(text: String, says: [String])] = [
        ("", ["line 1, column 1", "missing"]),
        ("[]", ["line 1, column 1", "an array"]),
        ("# evening\ntokens: devices.csv\n", ["is YAML", "JSON5", "{ \"tokens\""]),
        ("---\nrate: 5\n", ["is YAML"]), ("auth-key: x.p8", ["is YAML"]),
        ("tokens", ["line 1, column 1", "is not a value"]),
        ("{\n  rat: 5 }", ["line 2, column 3", "'rat'", "did you mean rate?"]),
        ("{zzzzzzzz: 5}", ["line 1, column 2", "--help"]),
        ("{rate: true}", ["line 1, column 8", "'rate' is true", "number"]),
        ("{rate: 'fast'}", ["line 1, column 8", "--rate 'fast'"]),
        ("{rate: '100..5000'}", ["line 1, column 8", "--rate '100..5000'", "100..5000/10m"]),
        ("{rate: 5, rate: 6}", ["line 1, column 11", "twice"]),
        ("{'dry-run': 1}", ["line 1, column 13", "true or false"]),
        ("{dry-run: true}", ["line 1, column 5", "quotes"]),
        ("{topic: null}", ["line 1, column 9", "null", "a string"]),
        ("{'collapse-id': 5}", ["line 1, column 17", "a string"]),
        ("{limit: 0x}", ["line 1, column 9", "is not a number"]),
        ("{limit: 1.5}", ["line 1, column 9", "--limit '1.5'"]),
        ("{limit: 5", ["line 1, column 10", "missing"]),
        ("{// x\n/* y", ["line 2, column 1", "not closed"]),
        ("{campaign: 'x'}", ["line 1, column 2", "'campaign'"]),
        ("{'ca-file': 'nowhere.pem'}", ["line 1, column 13", "nowhere.pem", "No such file"]),
        ("{'push-type': 'alrt'}", ["line 1, column 15", "alert"]),
        ("{'collapse-id': 'a{{'}", ["line 1, column 17", "not closed"]),
    ]

    static let campaigns: [MalformedRequest] =
        [
            .init(["--campaign", "@nothing"], says: ["--campaign", "@nothing", "No such file"]),
            .init(["--campaign", "@huge"], says: ["--campaign", "@huge", "larger"]),
        ]
        + campaignTexts.enumerated().map { index, file in
            .init(
                ["--campaign", "@c-\(index)"],
                without: file.text.contains("ca-file") ? ["ca-file"] : [],
                says: ["--campaign", "@c-\(index), line"] + file.says)
        }
}
