import BroadsideTestSupport
import Foundation
import Testing

/// Ledgers of real runs, damaged at random and repaired: what is left is true, and a resume sends
/// nothing twice. What was sent is known from the server's journal.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct RepairTests {
    private static let count = 3_000

    /// How the runs before the damage end.
    enum History: String, CaseIterable, Sendable {
        case finished, stopped, killed, stoppedTwice, killedThenStopped, canary, limited
        case limitedLess
    }

    private enum Damage: CaseIterable {
        case flip, zeros, truncate, remove, header, foreign, manifest, several
    }

    @Test(arguments: History.allCases)
    func `A repaired ledger has no other outcome and no row sent twice`(_ history: History) throws {
        let server = try LocalAPNs(["--unregistered", "0.05", "--bad-token", "0.02"])
        let campaign = try Campaign(rows: Self.count)
        try run(history, campaign, server)
        let sent = Set(try server.finish().map { $0[4] })
        // A killed run leaves its socket, which Foundation cannot copy.
        try? FileManager.default.removeItem(atPath: campaign.ledger + "/control")
        let before = try states(campaign.ledger, in: campaign)
        let seed = UInt64.random(in: 0 ... .max)
        var random = Random(state: seed)
        let again = try LocalAPNs()
        for damage in Self.damages(of: history) {
            let damaged = campaign.directory.fresh("damaged")
            try FileManager.default.copyItem(atPath: campaign.ledger, toPath: damaged)
            try hurt(damaged, by: damage, &random)
            let repaired = campaign.directory.fresh("repaired")
            let done = try Broadside.run(
                ["ledger", "repair", "--ledger", damaged, "--output", repaired],
                in: campaign.directory)
            let name: Comment = "\(history), \(damage), seed \(seed): \(done.output)\(done.errors)"
            try #require(done.exitCode == 0, name)
            let verified = try Broadside.run(
                ["ledger", "verify", "--ledger", repaired], in: campaign.directory)
            #expect(verified.exitCode == 0, "\(name)\(verified.errors)")
            let after = try states(repaired, in: campaign)
            for (token, state) in after where state != before[token] {
                #expect(state == "in-doubt", "\(name) \(token): \(before[token] ?? "") \(state)")
            }
            for (token, state) in before where !["remaining", "in-doubt"].contains(state) {
                #expect(after[token] != nil && after[token] != "remaining", "\(name) \(token)")
            }
            _ = try Broadside.run(
                campaign.arguments(
                    to: again.endpoint,
                    ["--resume", "--ledger", repaired, "--abort-after", "4000"]
                        + (history == .limited ? ["--limit", "1000"] : [])),
                in: campaign.directory)
        }
        let twice = try again.finish().filter { sent.contains($0[4]) }
        #expect(
            twice.isEmpty,
            "\(history), seed \(seed) sent again: \(twice.count), \(twice.prefix(2))")
    }

    /// All in `tools/test --full`; otherwise three, so that each damage has three histories.
    private static func damages(of history: History) -> [Damage] {
        let all = Damage.allCases
        let first = 3 * History.allCases.firstIndex(of: history)!
        return TestSize.cases(all, otherwise: (first..<first + 3).map { all[$0 % all.count] })
    }

    /// One or two runs.
    private func run(_ history: History, _ campaign: Campaign, _ server: LocalAPNs) throws {
        let options = [
            "--connections", "2", "--reactors", "2", "--resume-or-begin", "--abort-after", "4000",
        ]
        func once(_ signal: Int32?, _ more: [String] = []) throws {
            let rate = signal == nil ? [] : ["--rate", "2000"]
            let manifest = "\(campaign.ledger)/manifest.json"
            let before = FileManager.default.contents(atPath: manifest)
            let process = try Broadside.start(
                campaign.arguments(to: server.endpoint, options + rate + more),
                in: campaign.directory)
            if let signal {
                // A run handles signals before it records itself.
                try process.wait {
                    let now = FileManager.default.contents(atPath: manifest)
                    return now != nil && now != before
                }
                usleep(450_000)
                process.send(signal: signal)
            }
            let ended = try process.wait(limit: 120)
            #expect([0, 3, 6, -SIGKILL].contains(ended.exitCode), "\(ended.errors)")
        }
        switch history {
        case .finished: try once(nil)
        case .stopped: try once(SIGINT)
        case .killed: try once(SIGKILL)
        case .stoppedTwice:
            try once(SIGINT)
            try once(SIGINT)
        case .killedThenStopped:
            try once(SIGKILL)
            try once(SIGINT)
        case .canary:
            try once(SIGINT, ["--canary", "200"])
            try once(SIGINT, ["--canary", "200"])
        case .limited: try once(SIGINT, ["--limit", "1000"])
        case .limitedLess:
            try once(SIGKILL, ["--limit", "2500"])
            try once(nil, ["--limit", "300"])
        }
    }

    /// Token -> state, of all rows.
    private func states(_ ledger: String, in campaign: Campaign) throws -> [String: String] {
        let names = [
            "accepted", "rejected", "invalid", "skipped", "failed", "unknown", "remaining",
            "in-doubt",
        ]
        let exported = try Broadside.run(
            ["ledger", "export", "--ledger", ledger] + names.flatMap { ["--state", $0] },
            in: campaign.directory)
        #expect(exported.exitCode == 0, "\(exported.errors)")
        var states: [String: String] = [:]
        for row in try ExportedRow.read(exported.output) {
            #expect(states.updateValue(row.state, forKey: row.token) == nil)
        }
        return states
    }

    // MARK: Damage

    private struct Random {
        var state: UInt64

        /// SplitMix64.
        mutating func below(_ limit: Int) -> Int {
            state &+= 0x9e37_79b9_7f4a_7c15
            var word = state
            word = (word ^ word >> 30) &* 0xbf58_476d_1ce4_e5b9
            word = (word ^ word >> 27) &* 0x94d0_49bb_1331_11eb
            return Int((word ^ word >> 31) % UInt64(max(1, limit)))
        }
    }

    private func hurt(_ ledger: String, by damage: Damage, _ random: inout Random) throws {
        let names = try FileManager.default.contentsOfDirectory(atPath: ledger)
            .filter { $0.hasPrefix("segment-") }.sorted()
        let name = names[random.below(names.count)]
        let path = "\(ledger)/\(name)"
        var bytes = try [UInt8](Data(contentsOf: URL(filePath: path)))
        switch damage {
        case .flip:
            bytes[random.below(bytes.count)] ^= 1 << UInt8(random.below(8))
        case .zeros:
            let start = random.below(bytes.count)
            for place in start..<min(bytes.count, start + 1 + random.below(4_096)) {
                bytes[place] = 0
            }
        case .truncate:
            // Blocks end at multiples of 8: there, what a kill leaves looks alike.
            bytes.removeLast(bytes.count - (random.below(bytes.count) | 1))
        case .remove:
            try FileManager.default.removeItem(atPath: path)
            return
        case .header:
            bytes[random.below(32)] ^= 0x55
        case .foreign:
            guard let other = names.first(where: { $0 != name }) else { return }
            bytes = try [UInt8](Data(contentsOf: URL(filePath: "\(ledger)/\(other)")))
        case .manifest:
            let manifest = "\(ledger)/manifest.json"
            var text = try [UInt8](Data(contentsOf: URL(filePath: manifest)))
            text[random.below(text.count)] ^= 0x10
            try Data(text).write(to: URL(filePath: manifest))
            bytes[random.below(bytes.count)] ^= 1
        case .several:
            for _ in 0..<5 { bytes[random.below(bytes.count)] ^= 0x80 }
        }
        try Data(bytes).write(to: URL(filePath: path))
    }
}
