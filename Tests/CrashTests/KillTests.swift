import BroadsideTestSupport
import Foundation
import Testing

/// `kill -9` at any instant, then resumes, judged by the servers' own logs.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct KillTests {
    /// nghttpd, which writes much for each request, is in the middle of few for as long as nginx of many.
    static func rows(_ seed: Int) -> Int {
        (seed % 2 == 0 ? 2 : 1) * (TestSize.isLong ? 10_000 : 3_000)
    }
    /// How many campaigns are killed: each once, twice or three times.
    static let trials = TestSize.isLong ? 110 : TestSize.isFull ? 6 : 4

    @Test(arguments: 0..<trials)
    func `Rows in doubt after a kill are not sent again, and all others are sent`(seed: Int) throws
    {
        var random = SeededRandom(seed: UInt64(seed))
        let campaign = try Campaign(rows: Self.rows(seed))
        let server = try makeServer(seed)
        let reactors = Int.random(in: 1...2, using: &random)
        let options = [
            "--connections", "\(Int.random(in: 2...8, using: &random))", "--reactors",
            "\(reactors)", "--resume-or-begin", "--summary", "-",
        ]
        let kills = seed % 3 + 1
        for _ in 0..<kills {
            try kill(campaign, server, options, &random)
            if FileManager.default.fileExists(atPath: campaign.ledger + "/manifest.json") {
                let verified = try campaign.ledger("verify")
                #expect(verified.exitCode == 0, "\(verified.errors)")
            }
        }

        // Nothing twice; what the ledger calls accepted arrived, what it calls unknown may have: rows that
        // were in doubt before, and no others. All the rest is sent.
        let doubt = try DoubtfulRows(campaign)
        let resumed = try campaign.send(to: server.endpoint, options)
        let summary = try SendSummary(json: resumed.output)
        #expect(resumed.exitCode == (summary.unknown == 0 ? 0 : 6), "\(resumed.errors)")
        server.settle()
        let seen = try server.tally(campaign.tokens)
        #expect(seen.repeated == 0 && seen.strangers == 0)
        let rows = try campaign.export()
        #expect(rows.map(\.line) == Array(1...campaign.tokens.count))
        let accepted = rows.indices.filter { rows[$0].state == "accepted" }
        #expect(accepted.allSatisfy { seen.counts[$0] == 1 })
        let unknown = Set(rows.indices.filter { rows[$0].state == "unknown" })
        #expect(accepted.count + unknown.count == campaign.tokens.count)
        #expect(summary.accepted == accepted.count && summary.unknown == unknown.count)
        #expect(unknown == doubt.rows, "\(unknown.count) of \(doubt.rows.count)")

        // On request those in doubt are sent too.
        let retried = try campaign.send(
            to: server.endpoint, options + ["--retry", "unknown"])
        #expect(retried.exitCode == 0, "\(retried.errors)")
        server.settle()
        let finally = try server.tally(campaign.tokens)
        #expect(finally.missing == 0)
        #expect(
            finally.counts.indices.allSatisfy { unknown.contains($0) || finally.counts[$0] == 1 })
        #expect(finally.counts.allSatisfy { $0 <= 2 })
        try expectFinished(campaign)
    }

    @Test(arguments: 0..<max(2, trials / 5))
    func `With --on-lost resend all rows arrive after kills, some twice`(seed: Int) throws {
        var random = SeededRandom(seed: UInt64(seed + 1000))
        let campaign = try Campaign(rows: Self.rows(seed))
        let server = try makeServer(seed)
        let options = ["--connections", "4", "--on-lost", "resend", "--resume-or-begin"]
        for _ in 0...seed % 2 {
            try kill(campaign, server, options, &random)
        }
        let resumed = try campaign.send(to: server.endpoint, options)
        #expect(resumed.exitCode == 0, "\(resumed.errors)")
        server.settle()
        let seen = try server.tally(campaign.tokens)
        #expect(seen.missing == 0 && seen.strangers == 0)
        try expectFinished(campaign)
    }

    /// One that writes much for each request and one that is fast and ends connections.
    private func makeServer(_ seed: Int) throws -> any LoggingServer {
        try seed % 2 == 0 ? Nginx(requestsPerConnection: 1000) : Nghttpd()
    }

    /// Starts or resumes the campaign and kills it: within its first 50 ms, or when the server's
    /// log has grown by a random share of what the whole campaign would write.
    private func kill(
        _ campaign: Campaign, _ server: any LoggingServer, _ options: [String],
        _ random: inout SeededRandom
    ) throws {
        let before = server.logCount
        let settled = try? campaign.statistics()
        let rest = campaign.tokens.count - (settled.map { $0.accepted + $0.unknown } ?? 0)
        let process = try Broadside.start(
            campaign.arguments(to: server.endpoint, options), in: campaign.directory)
        if Int.random(in: 0..<5, using: &random) == 0 {
            usleep(.random(in: 0..<50_000, using: &random))
        } else {
            let bytesPerRow = server is Nginx ? 87 : 1500
            let goal = Int.random(in: 0...rest * bytesPerRow * 3 / 4, using: &random)
            try process.wait { server.logCount - before >= goal }
        }
        process.send(signal: SIGKILL)
        _ = try process.wait()
    }

    private func expectFinished(_ campaign: Campaign) throws {
        let statistics = try campaign.statistics()
        #expect(statistics.accepted == campaign.tokens.count && statistics.outcome == "complete")
        let verified = try campaign.ledger("verify")
        #expect(verified.exitCode == 0, "\(verified.errors)")
        #expect(verified.output.contains(", finished"))
    }
}

/// The rows, by number, that a ledger without a run calls in doubt or unknown: what a resume with `record`
/// may leave unknown.
struct DoubtfulRows {
    let rows: Set<Int>

    init(_ campaign: Campaign) throws {
        guard FileManager.default.fileExists(atPath: campaign.ledger + "/manifest.json") else {
            rows = []
            return
        }
        let exported = try campaign.export(["--state", "in-doubt", "--state", "unknown"])
        rows = Set(exported.map { $0.line! - 1 })
    }
}

/// SplitMix64: the same instants for the same seed, as far as a machine lets them be the same.
struct SeededRandom: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) {
        state = seed
    }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var word = state
        word = (word ^ word >> 30) &* 0xbf58_476d_1ce4_e5b9
        word = (word ^ word >> 27) &* 0x94d0_49bb_1331_11eb
        return word ^ word >> 31
    }
}
