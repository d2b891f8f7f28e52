import BroadsideTestSupport
import Foundation
import Testing

/// What is wrong with a payload is wrong in every command, in the same words.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct PayloadProblemTests {
    struct Payload: Sendable, CustomTestStringConvertible {
        var text: String
        var pushType = "alert"
        /// What the error or the warning says; nil: it is good.
        var error: String?
        var warning: String?

        var testDescription: String { "\(pushType) \(text.prefix(60))" }
    }

    static let payloads: [Payload] = [
        .init(text: #"{"aps":{"alert":"\ud83d"}}"#, error: "column 18: \\ud83d alone is half"),
        .init(text: #"{"aps":{"alert":"one\\ntwo"}}"#, warning: "escaped twice"),
        .init(text: #"{"aps":{"alert":"caf\u00e9"}}"#, warning: "4 bytes larger"),
        .init(text: "{\0}\0", error: "iconv -f UTF-16LE -t UTF-8"),
        .init(text: Campaign.payload),
        .init(text: "", error: "is empty"),
        .init(text: "[1]", error: "must start with {"),
        .init(text: #"{"aps":{"alert":"x",}}"#, error: "an extra comma"),
        .init(text: #"{"aps":{"alert":"x""#, error: "line 1, column"),
        .init(text: "\u{feff}{}", error: "byte-order mark"),
        .init(text: Files.payload(count: 4097), error: "has 4,097 bytes"),
        .init(text: #"{"aps":{"alert":"x","badge":"3"}}"#, error: "'badge' is a string"),
        .init(text: #"{"aps":{"alert":"x","badge":-1}}"#, error: "'badge' must be a whole number"),
        .init(text: #"{"aps":{"allert":"x"}}"#, error: "did you mean alert?"),
        .init(text: #"{"aps":{"alert":"x","alert":"y"}}"#, error: "occurs twice"),
        .init(text: #"{"alert":"x"}"#, error: "has no 'aps'"),
        .init(
            text: #"{"notification":{"title":"x","body":"y"}}"#,
            error: "'notification', as Firebase's messages do"),
        .init(text: #"{"message":{"token":"x"}}"#, error: "as Firebase's messages do"),
        .init(text: #"{"aps":{"content-available":1}}"#, error: "push type background"),
        .init(
            text: #"{"aps":{"title":"Sale","body":"Today only"}}"#,
            error: "title and body belong in aps.alert"),
        .init(text: #"{"aps":{"alert":"x"}}"#, pushType: "background", error: "(and 1 more)"),
        .init(
            text: #"{"aps":{"alert":"x","interruption-level":"urgent"}}"#, error: "must be one of"),
        .init(
            text: #"{"aps":{"alert":{"title":"x","launch":1}}}"#, warning: "is not a key of alert"),
        .init(text: "{}", pushType: "background", error: "has no 'aps'"),
        .init(text: #"{"aps":{"alert":"x"},"sound":"y"}"#, warning: "is beside aps"),
        // What can be said of a template, and of its defaults.
        .init(
            text: #"{"aps":{"alert":"{{name|x}}","badge":"{{n}}"}}"#,
            error: "'badge' is a string: it must be a number: write {{column:int}}"),
        .init(
            text: #"{"aps":{"alert":"x","badge":{{n}}}}"#,
            error: "column 29: {{ is outside a string: write \"{{column:int}}\""),
        .init(
            text: #"{"aps":{}}"#, pushType: "widgets", error: "'content-changed': true in aps: add"),
        .init(text: #"{"aps":{"alert":"{{name"}}"#, error: "{{ is not closed"),
        .init(
            text: #"{"aps":{"alert":"x","badge":"{{n:int|-1}}"}}"#, error: "'badge' must be a whole"
        ),
        .init(
            text: #"{"aps":{"alert":"x","interruption-level":"{{name|urgent}}"}}"#,
            error: "must be one of"),
        .init(text: #"{"aps":{"alert":"{{name|x {{y}}"}}"#, error: "contains {{"),
        .init(
            text: #"{"aps":{"alert":"Hi {{name | default: 'friend'}}!"}}"#,
            error: "write {{name|friend}}"),
    ]

    @Test(arguments: payloads)
    func `A payload's error has the same exit code and sentence in each command`(_ payload: Payload)
        throws
    {
        let campaign = try Campaign(rows: 1, payload: payload.text)
        let directory = campaign.directory
        let list = try directory.write(
            "token,name,n\n\(campaign.tokens.token(0)),Jo,1\n", to: "list.csv")
        let texts = "\(directory.path)/texts"
        try FileManager.default.createDirectory(atPath: texts, withIntermediateDirectories: false)
        try directory.write(payload.text, to: "texts/default.json")
        let server = try LocalAPNs()
        let check = try Broadside.run(
            [
                "payload", "check", "--payload", campaign.payloadFile, "--push-type",
                payload.pushType,
            ], in: directory)
        #expect(check.exitCode == (payload.error == nil ? 0 : 2), "\(check.errors)")
        if let error = payload.error { #expect(check.errors.contains(error), "\(check.errors)") }
        if let warning = payload.warning { #expect(check.output.contains(warning)) }

        let more = ["--tokens", list, "--push-type", payload.pushType]
        let file = ["--payload", campaign.payloadFile]
        let byValue = ["--payload-by", "name=\(texts)"]
        for (choice, isDry) in [(file, true), (byValue, true), (file, false)] {
            var arguments = campaign.arguments(
                to: server.endpoint, more + choice, without: ["payload"])
            if isDry { arguments.append("--dry-run") }
            let sent = try Broadside.run(arguments, in: directory)
            #expect(sent.exitCode == check.exitCode, "\(sent.errors)")
            let checked =
                choice == file
                ? check
                : try Broadside.run(
                    ["payload", "check", "--push-type", payload.pushType] + byValue, in: directory)
            #expect(sent.errorLines == checked.errorLines, "\(sent.errors)")
            if let warning = payload.warning {
                let lines = sent.errors.split(separator: "\n")
                #expect(
                    lines.contains { $0.hasPrefix("broadside: warning: ") && $0.contains(warning) },
                    "\(sent.errors)")
            }
        }
        #expect(try server.finish().count == (payload.error == nil ? 1 : 0))
    }

    @Test func `--payload-check off sends a payload with errors`() throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 1, payload: #"{"aps":{"alert":"x","badge":"3"}}"#)
        let sent = try campaign.send(to: server.endpoint, ["--payload-check", "off"])
        #expect(sent.exitCode == 0 && sent.errors.isEmpty, "\(sent.errors)")
        #expect(try server.finish().count == 1)
    }

    @Test func `A payload template is checked with the first row's values`() throws {
        let template = #"{"aps":{"alert":"x","relevance-score":"{{score:int}}"}}"#
        for (score, code) in [(5, Int32(2)), (1, 0)] {
            let campaign = try Campaign(rows: 20, payload: template)
            let rows = (0..<20).map { "\(campaign.tokens.token($0)),\(score)\n" }.joined()
            let list = try campaign.directory.write(
                "token,score\nnonsense,1\n" + rows, to: "list.csv")
            let sent = try campaign.send(to: "127.0.0.1:1", ["--tokens", list, "--dry-run"])
            #expect(sent.exitCode == code, "\(sent.errors)")
            guard code == 2 else { continue }
            #expect(sent.errorLines.count == 1 && sent.errors.contains("line 3 of the list"))
            #expect(sent.errors.contains("'relevance-score' must be from 0 to 1"))
        }
    }

    @Test
    func `Of several payloads the first with errors is named and the others are counted`() throws {
        let campaign = try Campaign(rows: 1)
        let texts = "\(campaign.directory.path)/texts"
        try FileManager.default.createDirectory(atPath: texts, withIntermediateDirectories: false)
        try campaign.directory.write(#"{"aps":{"allert":1}}"#, to: "texts/fr.json")
        try campaign.directory.write("{", to: "texts/de.json")
        let list = try campaign.directory.write("token,l\naabb,fr\n", to: "list.csv")
        let sent = try campaign.send(
            to: "127.0.0.1:1", ["--tokens", list, "--payload-by", "l=\(texts)", "--dry-run"])
        let check = try Broadside.run(
            [
                "payload", "check", "--payload-by", "l=\(texts)", "--payload",
                campaign.payloadFile,
            ], in: campaign.directory)
        #expect(sent.exitCode == 2 && sent.errorLines == check.errorLines, "\(sent.errors)")
        #expect(sent.errors.contains("de.json") && sent.errors.contains("1 more files"))
    }

    @Test func `Values without a payload of their own are counted in dry run and run`() throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 100)
        let directory = campaign.directory
        let texts = "\(directory.path)/texts"
        try FileManager.default.createDirectory(atPath: texts, withIntermediateDirectories: false)
        try directory.write(Campaign.payload, to: "texts/pt-BR.json")
        var text = "token,locale\n"
        for row in 0..<100 {
            let value =
                row < 10
                ? "pt_BR" : row < 20 ? "pt-BR" : row < 25 ? "" : row < 95 ? "fr" : "v\(row)\u{202e}"
            text += "\(campaign.tokens.token(row)),\(value)\n"
        }
        let list = try directory.write(text, to: "list.csv")
        let more = ["--tokens", list, "--payload-by", "locale=\(texts)"]
        let expected =
            "80 rows have a value without a payload of its own: fr 70, (empty) 5, v95\\u{202e} 1"
        let dry = try campaign.send(to: server.endpoint, more + ["--dry-run"])
        #expect(dry.exitCode == 0 && dry.output.contains(expected), "\(dry.output)")
        let sent = try campaign.send(to: server.endpoint, more + ["--progress", "auto"])
        #expect(sent.exitCode == 0 && sent.errors.contains(expected), "\(sent.errors)")
        struct Summary: Decodable {
            struct Fallbacks: Decodable {
                var rows: Int
                var values: [String: Int]
                var others: Int
            }
            var payload_fallbacks: Fallbacks?
        }
        let again = try campaign.send(
            to: server.endpoint, more + ["--ledger", campaign.ledger + "2", "--summary", "-"])
        let counted = try #require(
            try JSONDecoder().decode(Summary.self, from: Data(again.output.utf8)).payload_fallbacks)
        #expect(counted.rows == 80 && counted.values["fr"] == 70 && counted.values[""] == 5)
        #expect(counted.values["v95\u{202e}"] == 1 && counted.others == 0)
        #expect(!again.output.contains("\u{202e}"))
        let statistics = try campaign.ledger("stats", ["--json"])
        #expect(statistics.output.contains("\"payload_fallbacks\" : null"), "\(statistics.output)")
        #expect(try server.finish().count == 200)
    }

    @Test func `A campaign whose expiration has passed finishes with a warning`() throws {
        let campaign = try Campaign(rows: 1)
        let server = try LocalAPNs()
        let day = Int(Date().timeIntervalSince1970) - 86_000
        let more = ["--expiration", "\(day)"]
        let sent = try campaign.send(to: server.endpoint, more)
        #expect(
            sent.exitCode == 0 && sent.errors.contains("warning: --expiration"), "\(sent.errors)")
        let later = try campaign.send(
            to: server.endpoint, more + ["--resume"], environment: try FakeTime.fixed("+2d"))
        #expect(later.exitCode == 0, "\(later.errors)")
        let date = try campaign.send(
            to: server.endpoint,
            [
                "--expiration", "2099-01-31T18:00+01:00", "--dry-run", "--ledger",
                "\(campaign.ledger)-of-another",
            ])
        #expect(date.exitCode == 0 && date.errors.isEmpty, "\(date.errors)")
    }

    @Test func `A resume warns when the time after the first start has passed`() throws {
        let campaign = try Campaign(rows: 4)
        let server = try LocalAPNs()
        let more = ["--expiration", "+1s"]
        let sent = try campaign.send(to: server.endpoint, more + ["--limit", "2"])
        #expect(!sent.errors.contains("warning: --expiration"), "\(sent.errors)")
        usleep(2_100_000)
        let later = try campaign.send(to: server.endpoint, more + ["--resume"])
        #expect(later.exitCode == 0, "\(later.errors)")
        #expect(later.errors.contains("warning: --expiration +1s passed at"), "\(later.errors)")
        #expect(try server.finish().count == 4)
    }
}
