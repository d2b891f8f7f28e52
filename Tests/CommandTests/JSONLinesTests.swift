import BroadsideTestSupport
import Foundation
import Testing

/// JSON Lines on their way to a server, into the ledger, and back out.
@Suite(.timeLimit(.minutes(60)))
struct JSONLinesTests {
    private let rows = [
        #"{"id":1,"token":"AABB01"}"#, "", #"{"token":null}"#, #"{"id":2}"#, "aabb02",
        #"{"token":["aabb03"]}"#, #"{"token":"zz","token":"aabb04","x":{"token":"no"}}"#,
        #"{"token":"aabb05""#, #"{"token":"aabb06"}"#,
    ]

    private func counts(_ more: [String]) throws -> String {
        let directory = try TemporaryDirectory()
        let file = try directory.write(rows.joined(separator: "\n"), to: "list.jsonl")
        let finished = try Broadside.run(
            ["tokens", "check", "--tokens", file, "--max-invalid", "100"] + more, in: directory,
            limit: 120)
        #expect(finished.exitCode == 0, "\(finished.errors)")
        return finished.output
    }

    @Test func `A JSON line that is no object or has no token is invalid with its line`() throws {
        let text = try counts([])
        #expect(text.contains("format       jsonl"))
        #expect(text.contains("rows         8\nvalid        3\n"), "\(text)")
        #expect(text.contains("MalformedToken 3, MissingColumn 2"), "\(text)")
        for line in [3, 4, 5, 6, 8] { #expect(text.contains("  line \(line): "), "\(text)") }
    }

    @Test
    func `The export of a row with a null token has none, and one with a word has the word`() throws
    {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 1)
        let file = try campaign.directory.write(
            #"{"token":null}"# + "\n" + #"{"token":true}"# + "\n" + #"{"token":"ab"}"# + "\n",
            to: "list.jsonl")
        let sent = try campaign.send(
            to: server.endpoint, ["--tokens", file, "--max-invalid", "100"])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let rows = try campaign.export(["--state", "invalid"])
        #expect(rows.map(\.token) == ["", "true"])
        #expect(rows.map(\.reason) == ["MissingColumn", "MalformedToken"])
    }

    @Test func `A dry run counts JSON lines as tokens check does`() throws {
        let campaign = try Campaign(rows: 1)
        let file = try campaign.directory.write(rows.joined(separator: "\n"), to: "list.jsonl")
        let finished = try campaign.send(
            to: "localhost:1", ["--tokens", file, "--dry-run", "--max-invalid", "100"], limit: 120)
        #expect(finished.exitCode == 0, "\(finished.errors)")
        #expect(finished.output.contains("rows         8\n"), "\(finished.output)")
        #expect(finished.output.contains("invalid      5, the first on line 3"))
    }

    @Test
    func `A key that the payload needs and the rows lack is named, with those there are`() throws {
        let campaign = try Campaign(rows: 0, payload: #"{"aps":{"alert":"Hi {{nam}}"}}"#)
        let rows = (0..<4).map { "{\"token\":\"\(hexToken($0))\",\"name\":\"Ann\",\"age\":7}\n" }
        let list = try campaign.directory.write(rows.joined(), to: "list.jsonl")
        for more in [["--dry-run"], []] {
            let refused = try campaign.send(to: "127.0.0.1:1", ["--tokens", list] + more)
            #expect(refused.exitCode == 2, "\(refused.errors)")
            #expect(refused.errors.contains("line 1 has no 'nam'"), "\(refused.errors)")
            #expect(refused.errors.contains("did you mean name?"), "\(refused.errors)")
            #expect(refused.errors.contains("token, name, age"), "\(refused.errors)")
        }
    }

    @Test(arguments: [#"{"value":"ab"}"#, "[1]"])
    func `An array or object in the token's column is named as such`(value: String) throws {
        let campaign = try Campaign(rows: 0)
        let list = try campaign.directory.write("{\"token\":\(value)}\n", to: "list.jsonl")
        for more in [["--dry-run"], []] {
            let refused = try campaign.send(to: "127.0.0.1:1", ["--tokens", list] + more)
            #expect(refused.exitCode == 2, "\(refused.errors)")
            #expect(
                refused.errors.contains("'token' on line 1 is an array or object: name a key"),
                "\(refused.errors)")
        }
    }

    @Test func `A null is named as such, and its key is not suggested`() throws {
        let campaign = try Campaign(rows: 0, payload: #"{"aps":{"alert":"Hi {{name|you}}"}}"#)
        let nulls = try campaign.directory.write(
            "{\"id\":1,\"token\":null}\n{\"id\":2,\"token\":null}\n", to: "nulls.jsonl")
        let refused = try campaign.send(to: "127.0.0.1:1", ["--tokens", nulls, "--dry-run"])
        #expect(
            refused.errors.contains("line 1 has null in 'token': leave out such rows, or name"),
            "\(refused.errors)")
        let names = try campaign.directory.write(
            "{\"token\":\"\(hexToken(0))\",\"name\":null}\n", to: "names.jsonl")
        let warned = try campaign.send(to: "127.0.0.1:1", ["--tokens", names, "--dry-run"])
        #expect(
            warned.errors.contains("the row lacks 'name': its value is null in the first row"),
            "\(warned.errors)")
        for finished in [refused, warned] { #expect(!finished.errors.contains("did you mean")) }
    }

    @Test func `Of several keys with the name of the token's column, none is suggested`() throws {
        let directory = try TemporaryDirectory()
        let row =
            #"{"user":1,"device":{"token":"\#(hexToken(0))"},"watch":{"token":"\#(hexToken(1))"}}"#
        let list = try directory.write("\(row)\n\(row)\n", to: "list.jsonl")
        let refused = try Broadside.run(["tokens", "check", "--tokens", list], in: directory)
        #expect(refused.exitCode == 2 && !refused.errors.contains("did you mean"))
        #expect(
            refused.errors.contains("the keys user, device.token, watch.token: name one"),
            "\(refused.errors)")
    }

    @Test
    func `The export of a text longer than a token is cut so that it is not a token`() throws {
        let campaign = try Campaign(rows: 0)
        let server = try RecordingServer()
        let texts = [
            String(repeating: "ab", count: 101), String(repeating: "ab", count: 400),
            String(repeating: "x", count: 201), String(repeating: "é", count: 150),
        ]
        let rows = texts + [hexToken(1), hexToken(2)]
        let list = try campaign.directory.write(
            rows.map { "{\"token\":\"\($0)\"}\n" }.joined(), to: "list.jsonl")
        let sent = try campaign.send(
            to: server.endpoint, ["--tokens", list, "--max-invalid", "100"])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        func expectMarks(_ found: [ExportedRow]) {
            for (row, text) in zip(found, texts) {
                #expect(row.token.hasSuffix("…") && row.token.utf8.count <= 203, "\(row)")
                #expect(text.hasPrefix(row.token.prefix(90)))
            }
            #expect(found.count == texts.count)
        }
        expectMarks(try campaign.export(["--state", "invalid"]))
    }
}
