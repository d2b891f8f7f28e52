import BroadsideTestSupport
import Foundation
import Testing

@Suite(.timeLimit(.minutes(60)))
struct PayloadCommandTests {
    private func check(_ payload: String, _ more: [String] = []) throws -> Finished {
        let directory = try TemporaryDirectory()
        let file = try directory.write(payload, to: "p.json")
        return try Broadside.run(
            ["payload", "check", "--payload", file] + more, in: directory, limit: 120)
    }

    @Test func `payload check of a valid payload is 0 with its sizes`() throws {
        let finished = try check("{ \"aps\" : {\"alert\":\"a b\"} }\n", ["--topic", "com.example"])
        #expect(finished.exitCode == 0 && finished.errors.isEmpty, "\(finished.errors)")
        #expect(finished.output.contains("23 of 4,096 bytes"), "\(finished.output)")
        #expect(finished.output.contains("(28 with blanks and line breaks)"))
        #expect(finished.output.contains("can be sent: 0 errors, 0 warnings"))
    }

    @Test func `payload check of an invalid payload is 2 with the first error on stderr`() throws {
        let finished = try check("{\"aps\":{\"allert\":\"x\",\n\"badge\":\"1\"}}")
        #expect(finished.exitCode == 2)
        #expect(finished.errorLines.count == 1)
        #expect(finished.errors.contains("line 1, column 9"), "\(finished.errors)")
        #expect(finished.errors.contains("(and 1 more)"))
        #expect(finished.output.contains("line 2, column 9: 'badge' is a string"))
        #expect(!finished.output.contains("line 1, column 9"), "\(finished.output)")
        let cut = try check("{\"aps\":{")
        #expect(cut.exitCode == 2 && cut.errors.contains("line 1, column 9"), "\(cut.errors)")
    }

    @Test func `payload check accepts 4,096 bytes, 5,120 for voip, and not one more`() throws {
        #expect(try check(Files.payload(count: 4096)).exitCode == 0)
        #expect(try check(Files.payload(count: 4097)).errors.contains("4,097"))
        #expect(try check(Files.payload(count: 5120), ["--push-type", "voip"]).exitCode == 0)
        #expect(try check(Files.payload(count: 5121), ["--push-type", "voip"]).exitCode == 2)
        // Blanks between tokens are not sent.
        let blanks = try check(Files.payload(count: 4096) + String(repeating: " ", count: 20))
        #expect(blanks.exitCode == 0, "\(blanks.errors)")
    }

    @Test func `payload check --json has the same findings`() throws {
        let finished = try check("{\"aps\":{\"allert\":\"x\"},\"a\\\"\":null}", ["--json"])
        #expect(finished.exitCode == 2)
        let object = try JSONSerialization.jsonObject(with: Data(finished.output.utf8))
        let fields = try #require(object as? [String: Any])
        let errors = try #require(fields["errors"] as? [[String: Any]])
        #expect(errors.count == 1 && errors[0]["column"] as? Int == 9)
        let warnings = try #require(fields["warnings"] as? [[String: Any]])
        #expect(warnings.contains { ($0["message"] as? String)?.contains("'a\"' is null") == true })
        #expect(fields["minified_bytes"] as? Int == 33)
    }

    @Test func `payload check agrees with send about a campaign with arms and topics of rows`()
        throws
    {
        let campaign = try Campaign(rows: 2)
        let rows = (0..<2).map { "\(campaign.tokens.token($0)),com.example.app\n" }
        let list = try campaign.directory.write("token,app\n" + rows.joined(), to: "list.csv")
        try campaign.directory.write(Campaign.payload, to: "good.json")
        try campaign.directory.write(#"{"aps":{"alert":5}}"#, to: "bad.json")
        for (name, code) in [("good.json", 0), ("bad.json", 2)] as [(String, Int32)] {
            let file = try campaign.directory.write(
                """
                { tokens: "\(list)", topic: "{{app}}", split: "a=50,b=50", "split-salt": "x",
                  arms: { a: { payload: "good.json" }, b: { payload: "\(name)" } } }
                """, to: "campaign.json5")
            let options = campaign.arguments(
                to: "localhost:1", ["--campaign", file, "--dry-run"],
                without: ["tokens", "payload", "topic"])
            for arguments in [["payload", "check", "--campaign", file], options] {
                let finished = try Broadside.run(arguments, in: campaign.directory)
                #expect(finished.exitCode == code, "\(finished.errors)")
                #expect(finished.errors.contains("bad.json") == (code == 2), "\(finished.errors)")
            }
        }
    }

    @Test func `payload check of a directory checks each file by name`() throws {
        let directory = try TemporaryDirectory()
        let folder = "\(directory.path)/texts"
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: false)
        try directory.write(#"{"aps":{"alert":"Bom dia"}}"#, to: "texts/pt.json")
        try directory.write(#"{"aps":{"alert":"Hello {{name}}"}}"#, to: "texts/en.json")
        try directory.write("no payload", to: "texts/notes.txt")
        func check(_ more: String...) throws -> Finished {
            try Broadside.run(
                ["payload", "check", "--payload-by", "locale=\(folder)"] + more, in: directory)
        }
        let good = try check()
        #expect(good.exitCode == 0, "\(good.errors)")
        #expect(good.output.contains("texts/pt.json") && good.output.contains("texts/en.json"))
        #expect(good.output.components(separatedBy: "can be sent").count == 3)
        // Somebody's locale will be neither.
        #expect(good.errors.contains("default.json") && good.errors.contains("NoPayload"))
        try directory.write("{}", to: "texts/default.json")
        #expect(try check().errors.isEmpty)

        try directory.write("{\n\"aps\":{\"alert\":1}}", to: "texts/fr.json")
        try directory.write("{\"aps\":", to: "texts/de.json")
        let bad = try check("--json")
        #expect(bad.exitCode == 2 && bad.errorLines.count == 1, "\(bad.errors)")
        #expect(bad.errors.contains("--payload-by \(folder)/de.json, line 1, column 8"))
        #expect(bad.errors.contains("1 more files"), "\(bad.errors)")
        let reports = try bad.output.split(separator: "\n").map {
            try #require(
                JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
        }
        let faulty = reports.filter { !(($0["errors"] as? [Any]) ?? []).isEmpty }
        #expect(reports.count == 5)
        #expect(
            faulty.compactMap { $0["file"] as? String } == [
                "\(folder)/de.json", "\(folder)/fr.json",
            ])
    }

    @Test(arguments: [
        ("caf\u{e9}.json", "cafe\u{301}.json", "'caf\\u{e9}.json' and 'cafe\\u{301}.json'"),
        ("de.json", "de.JSON", "'de.JSON' and 'de.json'"),
    ])
    func `Two payload files of the same value are refused, and one of them is used`(
        first: String, second: String, names: String
    ) throws {
        let campaign = try Campaign(rows: 1)
        let folder = "\(campaign.directory.path)/texts"
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: false)
        let value = String(first.dropLast(5))
        let list = try campaign.directory.write(
            "token,l\n\(campaign.tokens.token(0)),\(value)\n", to: "list.csv")
        let more = ["--tokens", list, "--payload-by", "l=\(folder)", "--dry-run"]
        try campaign.directory.write(#"{"aps":{"alert":"found"}}"#, to: "texts/\(second)")
        let one = try campaign.send(to: "127.0.0.1:1", more)
        #expect(one.exitCode == 0 && !one.output.contains("other values"), "\(one.output)")
        try campaign.directory.write(#"{"aps":{"alert":"other"}}"#, to: "texts/\(first)")
        let both = try campaign.send(to: "127.0.0.1:1", more)
        #expect(both.exitCode == 2 && both.errorLines.count == 1, "\(both.errors)")
        #expect(both.errors.contains(names), "\(both.errors)")
        let check = try Broadside.run(
            ["payload", "check", "--payload-by", "l=\(folder)"], in: campaign.directory)
        #expect(check.exitCode == 2 && check.errors.contains(names), "\(check.errors)")
    }

    @Test func `payload check with missing or wrong options is exit 2`() throws {
        for (arguments, says) in [
            (["payload"], "check"), (["payload", "chek"], "did you mean check?"),
            (["payload", "check"], "--payload is missing"),
            (["payload", "check", "--payload", "/nowhere"], "/nowhere"),
            (["payload", "check", "--payload", "/nowhere", "--push-type", "alrt"], "alert"),
        ] {
            let finished = try Broadside.run(arguments, in: TemporaryDirectory(), limit: 120)
            #expect(finished.exitCode == 2 && finished.output.isEmpty)
            #expect(finished.errorLines.count == 1 && finished.errors.contains(says))
        }
    }
}
