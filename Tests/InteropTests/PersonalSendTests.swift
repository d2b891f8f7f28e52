import BroadsideTestSupport
import Foundation
import Testing

/// Payloads that differ from row to row, as a server of another make receives them.
@Suite(.timeLimit(.minutes(60)))
struct PersonalSendTests {
    /// The body of each row's requests, by the row.
    private func bodies(_ server: RecordingServer, _ tokens: DeviceTokens) throws -> [Int: [String]]
    {
        var bodies: [Int: [String]] = [:]
        // Of a request that a connection's end cut off no body is recorded.
        for answer in try server.answers() where answer.action != "swallowed" {
            let token = String(try #require(answer.path).dropFirst("/3/device/".count))
            #expect(answer.sound == true, "\(answer.body ?? "")")
            let row = try #require(Int(token.dropFirst(8).prefix(8), radix: 16))
            bodies[row, default: []].append(answer.body ?? "")
        }
        return bodies
    }

    /// Each row's state and body are what its values ask for.
    private func judge(
        _ rows: [PersonalRow], _ bodies: [Int: [String]], _ campaign: Campaign
    ) throws {
        let exported = try campaign.export()
        #expect(exported.count == rows.count)
        for (index, row) in rows.enumerated() {
            let (payload, reason) = try row.expectation()
            let state = payload == nil ? "invalid" : "accepted"
            #expect(exported[index].state == state, "row \(index): \(row)")
            #expect(exported[index].reason == reason, "row \(index): \(row)")
            #expect((bodies[index] == nil) == (payload == nil), "row \(index)")
            for body in bodies[index] ?? [] {
                let found = try PersonalRow.canonical(text: body)
                // Strings that look the same are equal, bytes are not.
                #expect(Array(found.utf8) == payload.map { Array($0.utf8) }, "row \(index): \(row)")
                #expect(body.contains(#""n":1.50,"t":"#) && !body.contains("\n"), "\(body)")
            }
        }
    }

    @Test func `Each value arrives unchanged from each format, and bad rows are invalid`() throws {
        var first: [Int: [String]]?
        for format in ["csv", "jsonl", "tsv"] {
            let rows = PersonalRow.make(600).map { format == "tsv" ? $0.onOneLine : $0 }
            let server = try RecordingServer()
            let campaign = try Campaign(rows: rows.count, payload: PersonalRow.template)
            let tokens = campaign.tokens
            let text =
                format == "jsonl"
                ? try PersonalRow.lines(rows, tokens: tokens.token)
                : PersonalRow.table(
                    rows, tokens: tokens.token, separator: format == "csv" ? "," : "\t")
            let list = try campaign.directory.write(text, to: "list.\(format)")
            let sent = try campaign.send(
                to: server.endpoint,
                ["--tokens", list, "--connections", "2", "--max-invalid", "50"])
            #expect(sent.exitCode == 0, "\(sent.errors)")
            let bodies = try bodies(server, tokens)
            try judge(rows, bodies, campaign)
            if let first, format != "tsv" { #expect(first == bodies, "\(format)") }
            first = first ?? bodies
        }
    }

    @Test(arguments: [
        ["refused"], ["reset"], ["refused", "--setting", "4=300", "--stream-updates"],
    ])
    func `Retries of templated requests are the same as the first, in parts or whole`(
        options: [String]
    ) throws {
        let rows = PersonalRow.make(200)
        let server = try RecordingServer(options[0], options.dropFirst() + ["--bodies"])
        let campaign = try Campaign(rows: rows.count, payload: PersonalRow.template)
        let list = try campaign.directory.write(
            PersonalRow.table(rows, tokens: campaign.tokens.token, separator: ","), to: "list.csv")
        let arguments = [
            "--tokens", list, "--connections", "1", "--max-invalid", "50", "--on-lost", "resend",
        ]
        // Half of it, and the rest by a resume.
        for more in [["--limit", "120"], ["--resume"]] {
            let sent = try campaign.send(to: server.endpoint, arguments + more)
            #expect(sent.exitCode == 0, "\(sent.errors)")
        }
        let bodies = try bodies(server, campaign.tokens)
        try judge(rows, bodies, campaign)
        #expect(bodies.values.allSatisfy { Set($0).count == 1 })
        // A reset may take responses with it that were on their way: then there are repetitions, too.
        if options[0] == "refused" { #expect(bodies.values.contains { $0.count > 1 }) }
    }

    @Test func `--payload-by chooses the nearest language and no other directory`() throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 11, payload: #"{"p":"common"}"#)
        let directory = campaign.directory
        try FileManager.default.createDirectory(
            atPath: "\(directory.path)/by", withIntermediateDirectories: false)
        for name in ["pt", "pt-BR", "zh-Hant", "sr_Latn"] {
            try directory.write(#"{"p": "\#(name) {{n}}"}"#, to: "by/\(name).json")
        }
        try directory.write(#"{"p":"secret"}"#, to: "secret.json")
        let values = [
            "pt-BR", "pt-PT", "pt", "pt_BR", "zh-Hant-TW", "zh", "", "../secret", "PT",
            "sr-Latn_RS", "pts",
        ]
        let expected = [
            "pt-BR 0", "pt 1", "pt 2", "pt-BR 3", "zh-Hant 4", nil, nil, nil, "pt 8", "sr_Latn 9",
            nil,
        ]
        var text = "token,locale,n\n"
        for (row, value) in values.enumerated() {
            text += "\(campaign.tokens.token(row)),\(value),\(row)\n"
        }
        let list = try directory.write(text, to: "list.csv")
        let options = [
            "--tokens", list, "--payload-by", "locale=\(directory.path)/by", "--payload-check",
            "off",
        ]
        let sent = try campaign.send(to: server.endpoint, options)
        #expect(sent.exitCode == 0, "\(sent.errors)")
        var found = try bodies(server, campaign.tokens)
        for row in 0..<11 { #expect(found[row] == [#"{"p":"\#(expected[row] ?? "common")"}"#]) }

        // Another file makes it another campaign; without a common one some rows have none.
        try directory.write(#"{"p": "pt {{n}}!"}"#, to: "by/pt.json")
        let changed = try campaign.send(to: server.endpoint, options + ["--resume"])
        #expect(changed.exitCode == 2 && changed.errors.contains("payload"), "\(changed.errors)")
        let other = try RecordingServer()
        let arguments = campaign.arguments(
            to: other.endpoint,
            options + ["--ledger", "\(directory.path)/ledger2", "--max-invalid", "50"],
            without: ["payload"])
        #expect(try Broadside.run(arguments, in: directory).exitCode == 0)
        found = try bodies(other, campaign.tokens)
        #expect(found.keys.sorted() == [0, 1, 2, 3, 4, 8, 9])
        let ledger = try Broadside.run(
            ["ledger", "stats", "--ledger", "\(directory.path)/ledger2", "--json"], in: directory)
        #expect(try SendSummary(json: ledger.output).reasons == ["NoPayload": 4])
    }

    @Test func `A row's own collapse ID is indexed once, whenever it first occurs`() throws {
        let server = try RecordingServer("plain", ["--detail", "1,2,3,4,5,6,7,8"])
        let campaign = try Campaign(rows: 10)
        let long = String(repeating: "x", count: 62)
        let values = ["", "", "1", "", long, long + "y", "", "z ", "game 7", ""]
        var text = "token,id,prefix\n"
        for (row, value) in values.enumerated() {
            text += "\(campaign.tokens.token(row)),\(value),\(value.isEmpty ? "" : "c-")\n"
        }
        let list = try campaign.directory.write(text, to: "list.csv")
        let sent = try campaign.send(
            to: server.endpoint,
            [
                "--tokens", list, "--connections", "1", "--expiration", "0", "--collapse-id",
                "{{prefix}}{{id}}", "--max-invalid", "20",
            ])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let names = ["apns-id", "apns-expiration", "apns-collapse-id"]
        let requests = try server.events().filter { $0.event == "request" }
        let fields = requests.map { request in
            (request.fields ?? []).filter { names.contains($0.name) }
        }
        let forms = fields.map { $0.map { "\($0.form) \($0.index)" } }
        let (before, after) = (["without 63", "without 62"], ["without 64", "without 63"])
        #expect(
            forms == [
                ["incremental 0", "incremental 0"], before, before + ["incremental 0"], after,
                after + ["without 62"], after, after + ["without 62"], after,
            ])
        let found = fields.map { $0.first { $0.name == "apns-collapse-id" }?.value }
        #expect(found == [nil, nil, "c-1", nil, "c-" + long, nil, "c-game 7", nil])
        #expect(requests.allSatisfy { $0.path != nil })
        #expect(try campaign.statistics().reasons == ["BadValue": 2])
    }
}
