import BroadsideAPNs
import BroadsideLedgers
import BroadsideObservability
import BroadsideSupport
import BroadsideTestSupport
import Foundation
import Testing

@testable import BroadsideCampaigns
@testable import BroadsideLists

/// Ledgers of rehearsals: a server other than Apple's reported their dead tokens.
@Suite struct RehearsalLedgerTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    /// Writes a ledger of one dead token, or two in a rehearsal.
    ///
    /// - Parameter servers: Servers of its runs, separated by blanks; nil: unknown.
    private func ledger(_ name: String, _ servers: String?) throws -> String {
        let path = "\(directory.path)/\(name)"
        try writeLedger(
            path, deadCount: name == "rehearsal" ? 2 : 1, acceptedCount: name == "accepted" ? 1 : 0,
            endpoints: servers.map { $0.split(separator: " ").map(String.init) } ?? [nil])
        return path
    }

    @Test(
        arguments: [
            (nil, "127.0.0.1:2197", false), (nil, "api.push.apple.com:443", true),
            (nil, "api.sandbox.push.apple.com:2197", true), (nil, nil, true),
            ("api.push.apple.com", "relay.example:443", false),
            ("relay.example", "relay.example:443", true),
            ("relay.example", "127.0.0.1:2197", true),
            (nil, "127.0.0.1:2197 api.push.apple.com:443", false),
            (nil, "api.push.apple.com:443 api.push.apple.com:2197", true),
        ] as [(String?, String?, Bool)])
    func `Dead tokens of another server do not count for a send to Apple`(
        endpoint: String?, server: String?, isDead: Bool
    ) throws {
        var options = SendOptions()
        options.endpoint = endpoint
        options.skipDead = [try ledger("rehearsal", server)]
        options.deadFor = 100 * 365 * 86_400 * 1_000_000_000
        let earlier = try #require(options.earlierLedgers(topic: nil))
        let verdicts = try earlier.reader.read(RunningCampaign(number: 9))
        let token = Array(hexToken(0).utf8)
        #expect(verdicts.mayBeDead(TokenText.fingerprint(token.span.bytes)) == isDead)
    }

    @Test(
        arguments: [
            (nil, "127.0.0.1:2197", false), (nil, "api.push.apple.com:443", true),
            (nil, nil, true), ("relay.example", "127.0.0.1:2197", true),
            (nil, "127.0.0.1:2197 api.push.apple.com:443", true),
        ] as [(String?, String?, Bool)])
    func `A cap of a send to Apple does not count what another server accepted`(
        endpoint: String?, servers: String?, counts: Bool
    ) throws {
        var options = SendOptions()
        options.endpoint = endpoint
        options.cap = FrequencyCap(count: 1, milliseconds: 100 * 365 * 86_400_000)
        options.history = [try ledger("accepted", servers)]
        let earlier = try #require(options.earlierLedgers(topic: nil))
        let verdicts = try earlier.reader.read(RunningCampaign(number: 9))
        var capped = 0
        try verdicts.forEachCapped { _ in capped += 1 }
        #expect(capped == (counts ? 1 : 0))
    }

    @Test(
        arguments: [
            (["127.0.0.1:2197", "api.push.apple.com:443"], 1), (["127.0.0.1:2197", nil], 2),
            (["127.0.0.1:2197", "127.0.0.1:2198"], 2),
            (["api.push.apple.com:443", "api.push.apple.com:443"], 2),
            (["127.0.0.1:2197 api.push.apple.com:443", nil], 1),
        ] as [([String?], Int)])
    func `A prune leaves out a rehearsal's dead tokens beside a ledger of Apple's servers`(
        servers: [String?], removed: Int
    ) throws {
        let ledgers = [try ledger("rehearsal", servers[0]), try ledger("night", servers[1])]
        let list = try directory.write((0..<12).map { hexToken($0) + "\n" }.joined(), to: "list")
        let output = "\(directory.path)/out"
        _ = try PruneRun.run(PruneOptions(ledgers: ledgers, tokens: list, output: output))
        let left = try String(contentsOfFile: output, encoding: .utf8)
        #expect(left.split(separator: "\n").count == 12 - removed)
    }

    @Test func `The server of each run is known, of an earlier version's that of the latest run`()
        throws
    {
        let known = LedgerDirectory.unlocked(
            try ledger("night", "127.0.0.1:1 127.0.0.1:1 api.push.apple.com:443"))
        #expect(
            known.runsByEndpoint == ["127.0.0.1:1": [1, 2], "api.push.apple.com:443": [3]])
        let old = LedgerDirectory.unlocked(try ledger("old", nil))
        #expect(old.runsByEndpoint.isEmpty)
        var telemetry = Telemetry()
        telemetry.begin(
            1, atMilliseconds: 1, settings: [.init(name: "endpoint", value: "127.0.0.1:1")])
        try Data(telemetry.encoded).write(
            to: URL(fileURLWithPath: "\(old.path)/\(Telemetry.fileName)"))
        #expect(old.runsByEndpoint == ["127.0.0.1:1": [1]])
    }

    @Test(
        arguments: [
            (nil, "127.0.0.1:2197", 1), ("localhost:1", "127.0.0.1:2197", 1),
            ("127.0.0.1:1", "127.0.0.1:2197", nil), (nil, nil, nil),
            ("127.0.0.1:1", "api.push.apple.com:443", nil),
            (nil, "api.push.apple.com:2197", nil), (nil, "127.0.0.1:2197 relay.example:443", 1),
            (nil, "api.push.apple.com:443 127.0.0.1:2197", nil),
        ] as [(String?, String?, UInt64?)])
    func `Rows that earlier runs sent to another server than Apple's are counted`(
        endpoint: String?, servers: String?, count: UInt64?
    ) throws {
        var options = SendOptions()
        options.endpoint = endpoint
        let reader = try LedgerReader(path: ledger("night", servers))
        let (index, manifest) = try reader.current((reader.directory, reader.manifest))
        let rows = try RowsElsewhere(index, manifest, reader.directory, options)
        #expect(rows?.count == count)
        guard let rows else { return }
        #expect(rows.othersCount == 0)
        #expect(
            rows.warning(isNight: false)
                == "broadside: warning: 1 row went to 127.0.0.1:2197 in earlier runs, and is not sent "
                + "again: if that was a rehearsal, begin a new ledger")
    }
}
