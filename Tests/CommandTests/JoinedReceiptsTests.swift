import BroadsideTestSupport
import Foundation
import Testing

/// `report --receipts` of a merged ledger whose lists have opted-out devices and devices with several rows.
@Suite(.timeLimit(.minutes(60)))
struct JoinedReceiptsTests {
    private struct Findings: Decodable {
        struct Arm: Decodable {
            var devices: Int
            var opened: Int
            var by: [String: [String: Int]]
        }

        var repeated: Int
        var foreign: Int
        var early: Int
        var arms: [String: Arm]
    }

    private let campaign: Campaign
    /// Rows of both parts.
    private let rows: [ExportedRow]

    /// Two parts of 90 rows, with tokens of their own: the first ten are opted out, and the last ten of each part repeat
    /// tokens before them.
    init() throws {
        let server = try RecordingServer()
        campaign = try Campaign(rows: 160)
        let (directory, tokens) = (campaign.directory, campaign.tokens)
        let opted = try directory.write(
            (0..<160).filter { $0 % 80 < 10 }.map { tokens.token($0) + "\n" }.joined(),
            to: "opted-out.txt")
        var rows: [ExportedRow] = []
        for part in 0..<2 {
            let own = Array(0..<80) + Array(40..<50)
            let list = try directory.write(
                own.map { tokens.token(80 * part + $0) + "\n" }.joined(), to: "part\(part).txt")
            let ledger = "\(directory.path)/ledger\(part)"
            let sent = try campaign.send(
                to: server.endpoint,
                [
                    "--tokens", list, "--ledger", ledger, "--part", "\(part + 1)/2",
                    "--campaign-id", "00000000000000ab", "--suppress", opted, "--split",
                    "a=40,b=40", "--split-salt", "joined",
                ])
            #expect(sent.exitCode == 0, "\(sent.errors)")
            let export = try Broadside.run(["ledger", "export", "--ledger", ledger], in: directory)
            rows += try ExportedRow.read(export.output)
        }
        self.rows = rows
        let merged = try Broadside.run(
            [
                "ledger", "merge", "--output", "\(directory.path)/merged",
                "\(directory.path)/ledger0", "\(directory.path)/ledger1",
            ], in: directory)
        #expect(merged.exitCode == 0, "\(merged.errors)")
    }

    /// Receipts with values of two columns, at the second in which each row was settled.
    private func findings(
        _ key: String, _ names: [(name: String, settledAt: Int)], in merged: String = "merged"
    ) throws -> Findings {
        let lines = names.enumerated().map { index, row in
            let second = Date(timeIntervalSince1970: Double(row.settledAt / 1_000))
            return "\(row.name),\(second.formatted(.iso8601)),x\(index % 3),y\(index % 5)\n"
        }
        let file = try campaign.directory.write(
            "\(key),time,app,os\n" + lines.joined(), to: "receipts.csv")
        let finished = try Broadside.run(
            [
                "report", "--ledger", "\(campaign.directory.path)/\(merged)", "--receipts", file,
                "--by", "app", "--by", "os", "--json",
            ], in: campaign.directory)
        #expect(finished.exitCode == 0, "\(finished.errors)")
        return try JSONDecoder().decode(Findings.self, from: Data(finished.output.utf8))
    }

    @Test func `Rows of each part are joined by their apns-ids, and values by their column`() throws
    {
        let sent = rows.filter { $0.state == "accepted" }
        #expect(Set(sent.map(\.identifier)).count == sent.count && sent.count > 100)
        let found = try findings("apns_id", sent.map { ($0.identifier, $0.settledAt) })
        #expect(found.foreign == 0 && found.early == 0 && found.repeated == 0)
        for arm in ["a", "b"] {
            let count = sent.count { $0.arm == arm }
            #expect(found.arms[arm]?.devices == count && found.arms[arm]?.opened == count, "\(arm)")
        }
        for (column, values) in [("app", 3), ("os", 5)] {
            for value in 0..<values {
                let name = "\(column == "app" ? "x" : "y")\(value)"
                let opened = ["a", "b"].reduce(0) { $0 + (found.arms[$1]?.by[column]?[name] ?? 0) }
                let expected = sent.indices.count { $0 % values == value }
                #expect(opened == expected, "\(name)")
            }
        }
    }

    @Test func `Rows of each shard are joined by its own apns-ids`() throws {
        let server = try RecordingServer()
        let path = campaign.directory.path
        for shard in 1...3 {
            let sent = try campaign.send(
                to: server.endpoint,
                [
                    "--ledger", "\(path)/shard\(shard)", "--shard", "\(shard)/3", "--split",
                    "a=40,b=40", "--split-salt", "joined",
                ])
            #expect(sent.exitCode == 0, "\(sent.errors)")
        }
        let merged = try Broadside.run(
            ["ledger", "merge", "--output", "\(path)/whole"]
                + (1...3).map { "\(path)/shard\($0)" }, in: campaign.directory)
        #expect(merged.exitCode == 0, "\(merged.errors)")
        let export = try Broadside.run(
            ["ledger", "export", "--ledger", "\(path)/whole"], in: campaign.directory)
        let sent = try ExportedRow.read(export.output).filter { $0.state == "accepted" }
        #expect(Set(sent.map { $0.identifier.prefix(18) }).count == 3)
        // A row of the campaign that was sent in parts is one of another campaign.
        let other = try #require(rows.first { $0.state == "accepted" })
        let found = try findings(
            "apns_id", (sent + [other]).map { ($0.identifier, $0.settledAt) }, in: "whole")
        #expect(found.foreign == 1 && found.early == 0 && found.repeated == 0)
        for arm in ["a", "b"] {
            let count = sent.count { $0.arm == arm }
            #expect(found.arms[arm]?.devices == count && count > 0, "\(arm)")
            #expect(found.arms[arm]?.opened == count, "\(arm)")
        }
    }

    @Test func `A device with several rows is one, and an opted-out one is in no arm`() throws {
        let devices = Dictionary(rows.map { ($0.token, $0.settledAt) }, uniquingKeysWith: min)
        let found = try findings(
            "token", devices.sorted { $0.key < $1.key }.map { ($0.key, $0.value) })
        #expect(rows.count { $0.reason == "Suppressed" } == 20)
        #expect(found.foreign == 20 && found.early == 0 && found.repeated == 0)
        for arm in ["a", "b", "holdout"] {
            let own = Set(
                rows.filter { $0.arm == arm && $0.reason != "Suppressed" }.map(\.token))
            #expect(found.arms[arm]?.devices == own.count && !own.isEmpty, "\(arm)")
            #expect(found.arms[arm]?.opened == own.count, "\(arm)")
        }
    }
}
