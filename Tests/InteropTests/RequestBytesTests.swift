import BroadsideTestSupport
import Foundation
import Testing

/// What goes over the wire, read by code that shares nothing with Broadside's own.
@Suite(.timeLimit(.minutes(60)))
struct RequestBytesTests {
    /// One connection takes 1,200 rows, then a second is made for the rest by a resume.
    @Test func `Requests follow the strict indexing policy on each connection`() throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 2400)
        let options = ["--connections", "1", "--expiration", "0", "--collapse-id", "score-42"]
        for limit in ["1200", "2400"] {
            let sent = try campaign.send(
                to: server.endpoint,
                options + ["--limit", limit] + (limit == "2400" ? ["--resume"] : []))
            #expect(sent.exitCode == 0, "\(sent.errors)")
        }
        let requests = try server.events().filter { $0.event == "request" }
        #expect(requests.count == 2400)
        for connection in 1...2 {
            let own = requests.filter { $0.connection == connection }
            let detailed = own.filter { $0.fields != nil }
            try #require(own.count == 1200 && detailed.count == 3)
            #expect(own.map(\.stream) == (0..<1200).map { 1 + 2 * $0 })
            // END_HEADERS without END_STREAM: the payload follows in DATA.
            #expect(own.allSatisfy { $0.flags == 4 })

            let forms = detailed.map { $0.fields!.map { Representation($0) } }
            #expect(forms[0] == Self.first)
            #expect(forms[1] == Self.later)
            #expect(forms[2] == Self.later)
            // 32 + 7 + 36, 32 + 15 + 1, 32 + 16 + 8 (RFC 7541, section 4.1), and so it stays.
            #expect(own.allSatisfy { $0.table == 75 + 48 + 56 })
            #expect(detailed.allSatisfy { $0.fields!.allSatisfy { $0.evicts == nil } })
        }
    }

    /// A field's form, its index and its name.
    struct Representation: Equatable {
        var form: String
        var index: Int
        var name: String

        init(_ form: String, _ index: Int, _ name: String) {
            (self.form, self.index, self.name) = (form, index, name)
        }

        init(_ field: RecordedField) {
            self.init(field.form, field.index, field.name)
        }
    }

    static let start = [
        Representation("indexed", 3, ":method"),
        Representation("indexed", 7, ":scheme"),
        Representation("without", 4, ":path"),
        Representation("without", 1, ":authority"),
        Representation("without", 23, "authorization"),
        Representation("without", 0, "apns-topic"),
        Representation("without", 0, "apns-push-type"),
    ]
    static let first =
        start + [
            Representation("incremental", 0, "apns-id"),
            Representation("incremental", 0, "apns-expiration"),
            Representation("incremental", 0, "apns-collapse-id"),
            Representation("without", 0, "apns-priority"),
        ]
    /// The newest entry is 62: the collapse id was inserted last.
    static let later =
        start + [
            Representation("without", 64, "apns-id"),
            Representation("without", 63, "apns-expiration"),
            Representation("without", 62, "apns-collapse-id"),
            Representation("without", 0, "apns-priority"),
        ]

    @Test func `Optional headers are sent only if asked for`() throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 3)
        let sent = try campaign.send(to: server.endpoint, ["--connections", "1"])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let detailed = try server.events().compactMap(\.fields)
        try #require(detailed.count == 2)
        let without = { (name: String) in name != "apns-expiration" && name != "apns-collapse-id" }
        #expect(detailed[0].map(\.name) == Self.first.map(\.name).filter(without))
        #expect(Representation(detailed[0][7]) == Representation("incremental", 0, "apns-id"))
        #expect(Representation(detailed[1][7]) == Representation("without", 62, "apns-id"))
    }

    @Test func `Preface and SETTINGS come first, and each request is HEADERS and DATA`() throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 50)
        // One connection for each half: of two at a time, one might open after the last row.
        for more in [["--limit", "25"], ["--resume"]] {
            let sent = try campaign.send(to: server.endpoint, ["--connections", "1"] + more)
            #expect(sent.exitCode == 0, "\(sent.errors)")
        }
        let events = try server.events()
        for connection in 1...2 {
            let own = events.filter { $0.connection == connection }
            try #require(!own.isEmpty)
            #expect(own[0].event == "preface" && own[0].sound == true)
            try #require(own.count > 2)
            #expect(own[0].alpn == "h2")
            #expect(own[0].tls == "TLSv1.3")
            #expect(own[1].event == "frame" && own[1].kind == 4 && own[1].flags == 0)
            let settings = Set(pieces(own[1].payload ?? "", of: 12))
            // HEADER_TABLE_SIZE = 0 and ENABLE_PUSH = 0 (RFC 9113, section 6.5.2).
            #expect(settings.isSuperset(of: ["000100000000", "000200000000"]))
            let acknowledgement = own.firstIndex { $0.kind == 4 && $0.flags == 1 }
            #expect(acknowledgement != nil)
            // Nothing is reset, and no priority is signalled.
            #expect(own.allSatisfy { $0.kind != 3 && $0.kind != 2 })
        }
        let answers = try server.answers()
        #expect(answers.count == 50)
        #expect(answers.allSatisfy { $0.body == Campaign.payload })
        #expect(try server.tally(campaign.tokens).isExact)
    }

    private func pieces(_ text: String, of count: Int) -> [String] {
        stride(from: 0, to: text.count, by: count).map { String(text.dropFirst($0).prefix(count)) }
    }

    @Test func `Headers are the campaign's, and the apns-id leads back to the row`() throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 20)
        let sent = try campaign.send(
            to: server.endpoint,
            [
                "--connections", "1", "--collapse-id", "score 42 \u{7e}", "--expiration",
                "1900000000",
            ])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let request = try #require(try server.events().first { $0.stream == 1 && $0.fields != nil })
        let values = Dictionary(
            uniqueKeysWithValues: request.fields!.map { ($0.name, $0.value) })
        #expect(values[":authority"] == server.endpoint)
        #expect(values[":path"] == "/3/device/" + campaign.tokens.token(0))
        #expect(values["apns-topic"] == Campaign.topic)
        #expect(values["apns-push-type"] == "alert")
        #expect(values["apns-priority"] == "10")
        #expect(values["apns-expiration"] == "1900000000")
        #expect(values["apns-collapse-id"] == "score 42 ~")

        let identifier = try #require(values["apns-id"])
        let versionEight = try Regex(
            "^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-0{12}$")
        #expect(identifier.wholeMatch(of: versionEight) != nil, "\(identifier)")
        let found = try campaign.ledger("find", ["--apns-id", identifier.uppercased()])
        #expect(found.exitCode == 0)
        #expect(found.output.hasPrefix("row 0 accepted status 200"), "\(found.output)")
        #expect(try campaign.export()[0].identifier == identifier)
        let byToken = try campaign.ledger("find", ["--token", campaign.tokens.token(7)])
        #expect(byToken.output.hasPrefix("row 7 accepted"), "\(byToken.output)")
    }

    @Test func `Priority follows the push type, and expiration counts from the start`() throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 1)
        let sent = try campaign.send(
            to: server.endpoint,
            ["--push-type", "background", "--expiration", "+2h", "--payload-check", "off"])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let fields = try #require(try server.events().compactMap(\.fields).first)
        #expect(fields.first { $0.name == "apns-priority" }?.value == "5")
        #expect(fields.first { $0.name == "apns-push-type" }?.value == "background")
        let expiration = fields.first { $0.name == "apns-expiration" }.flatMap { Int($0.value) }
        let now = Int(Date().timeIntervalSince1970)
        #expect((now + 7100...now + 7200).contains(expiration ?? 0))
    }
}
