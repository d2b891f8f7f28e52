import BroadsideTestSupport
import Foundation
import Testing

/// Segments of a killed run that lost their end where a block ends: nothing in the ledger tells of it, and
/// the claim beside it does.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct CutSegmentTests {
    private let server: LocalAPNs
    private let campaign: Campaign
    private let files = FileManager.default

    init() throws {
        server = try LocalAPNs()
        // Six seconds of work, so that a run is killed before its end.
        campaign = try Campaign(rows: 12_000)
    }

    /// A run of two reactors that was killed while it sent.
    private func kill() throws {
        let process = try Broadside.start(
            campaign.arguments(
                to: server.endpoint,
                ["--reactors", "2", "--connections", "2", "--rate", "2000"]),
            in: campaign.directory)
        try process.wait { (try? campaign.statistics().accepted) ?? 0 >= 1_500 }
        process.send(signal: SIGKILL)
        _ = try process.wait(limit: 60)
        try? files.removeItem(atPath: "\(campaign.ledger)/control")
    }

    /// How much of each segment was on disk before rows were sent, by the claim.
    private func durable() throws -> [Int] {
        let name = try #require(
            campaign.directory.names(in: campaign.directory.path).first {
                $0.hasPrefix(".broadside-")
            })
        let claim = try [UInt8](
            Data(contentsOf: URL(filePath: "\(campaign.directory.path)/\(name)")))
        return (0..<2).map { reactor in
            (0..<8).reduce(0) { $0 | Int(claim[8_192 + 16 * reactor + $1]) << (8 * $1) }
        }
    }

    /// Where the blocks of a segment end, from its header on.
    private func blockEnds(_ bytes: [UInt8]) -> [Int] {
        var ends = [32]
        while ends.last! + 8 <= bytes.count {
            let start = ends.last!
            let count = 8 + 16 * (Int(bytes[start + 4]) | Int(bytes[start + 5]) << 8)
            guard bytes[start + 6] == 0x0C, bytes[start + 7] == 0xB1, start + count <= bytes.count
            else { break }
            ends.append(start + count)
        }
        return ends
    }

    private func segment(_ ledger: String, _ reactor: Int) -> String {
        "\(ledger)/segment-0001-0\(reactor)"
    }

    /// - Parameter share: how much of what was on disk is left, in percent; 0: the header.
    @Test(arguments: [0, 20, 50, 90])
    func `Each reader reports a cut segment, and the repaired copy sends nothing twice`(
        share: Int
    ) throws {
        try kill()
        let durable = try durable()
        #expect(durable.allSatisfy { $0 > 200 })
        for command in ["verify", "stats", "export"] {
            #expect(try campaign.ledger(command).exitCode == 0, "\(command)")
        }
        let path = segment(campaign.ledger, 1)
        let bytes = try [UInt8](Data(contentsOf: URL(filePath: path)))
        let left = durable[1] * share / 100
        let end = try #require(blockEnds(bytes).last { $0 <= max(32, left) && $0 < durable[1] })
        try Data(bytes[..<end]).write(to: URL(filePath: path))

        let output = "\(campaign.directory.path)/output"
        let ledger = ["--ledger", campaign.ledger]
        for call in [
            ["ledger", "verify"] + ledger, ["ledger", "stats"] + ledger,
            ["ledger", "export"] + ledger,
            ["ledger", "find", "--token", campaign.tokens.token(0)] + ledger,
            ["report", "--output", output] + ledger,
            ["prune", "--tokens", campaign.list, "--output", output] + ledger,
        ] {
            let refused = try Broadside.run(call, in: campaign.directory)
            #expect(refused.exitCode == 5, "\(call): \(refused.output)\(refused.errors)")
            #expect(
                refused.errors.contains(
                    "segment-0001-01 at byte \(end): the end of the segment is missing or damaged: "
                        + "\(durable[1]) bytes were on disk when rows were sent: broadside ledger repair"
                ),
                "\(call): \(refused.errors)")
            #expect(!files.fileExists(atPath: output))
        }
        let before = try campaign.send(to: server.endpoint, ["--resume"])
        #expect(before.exitCode == 7, "\(before.errors)")

        let repaired = "\(campaign.ledger)-repaired"
        let done = try campaign.ledger("repair", ["--output", repaired])
        #expect(done.exitCode == 0, "\(done.errors)")
        #expect(
            done.output.contains(
                "lost segment-0001-01: \(durable[1] - end) bytes from byte \(end) on"),
            "\(done.output)")
        let verified = try Broadside.run(
            ["ledger", "verify", "--ledger", repaired], in: campaign.directory)
        #expect(verified.exitCode == 0, "\(verified.errors)")
        let resumed = try campaign.send(
            to: server.endpoint, ["--resume", "--ledger", repaired])
        #expect([0, 6].contains(resumed.exitCode), "\(resumed.errors)")
        let sent = try server.finish().map { $0[4] }
        #expect(Set(sent).count == sent.count, "\(sent.count - Set(sent).count) sent twice")
        #expect(sent.count >= 1_500)
    }

    @Test func `A missing segment of a moved ledger is reported as lost`() throws {
        try kill()
        let moved = "\(campaign.directory.path)/archive/ledger"
        try files.createDirectory(
            atPath: "\(campaign.directory.path)/archive", withIntermediateDirectories: false)
        try files.moveItem(atPath: campaign.ledger, toPath: moved)
        let path = segment(moved, 0)
        let bytes = try [UInt8](Data(contentsOf: URL(filePath: path)))
        let end = try #require(blockEnds(bytes).last { $0 < (try? durable()[0]) ?? 0 })
        try Data(bytes[..<end]).write(to: URL(filePath: path))
        let repaired = "\(moved)-repaired"
        let done = try Broadside.run(
            ["ledger", "repair", "--ledger", moved, "--output", repaired], in: campaign.directory)
        #expect(done.output.contains("lost segment-0001-00: "), "\(done.output)\(done.errors)")
        let resumed = try campaign.send(
            to: server.endpoint, ["--resume", "--ledger", repaired])
        #expect([0, 6].contains(resumed.exitCode), "\(resumed.errors)")
        let sent = try server.finish().map { $0[4] }
        #expect(Set(sent).count == sent.count, "\(sent.count - Set(sent).count) sent twice")
    }
}
