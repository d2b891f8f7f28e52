import BroadsideLedgerFormat
import BroadsideLedgers
import BroadsideObservability
import BroadsidePolicy
import BroadsideSupport
import BroadsideTestSupport
import Foundation
import Synchronization
import Testing

@testable import BroadsideCampaigns

/// What a run does between the check of its inputs and its first row.
@Suite struct PreparedRunTests {
    /// Options with a list of two rows. By default, the list begins no campaign with waves, because
    /// most of its zones are unknown.
    private static func options(
        _ campaign: Campaign, zones: [String] = ["Berlin", "Paris"]
    ) throws -> SendOptions {
        let tokens = ["ab", "cd"].map { String(repeating: $0, count: 32) }
        var options = SendOptions()
        options.tokens = .file(
            try campaign.directory.write(
                "token,tz\n\(tokens[0]),\(zones[0])\n\(tokens[1]),\(zones[1])\n", to: "list.csv"))
        options.payload = campaign.payloadFile
        options.topic = Campaign.topic
        options.authKey = campaign.authority.authKey
        options.keyID = Campaign.keyID
        options.teamID = Campaign.teamID
        options.endpoint = "localhost:1"
        options.delivery.deliverAt = TimeOfDay("09:00")
        options.delivery.zoneColumn = "tz"
        options.delivery.zoneDefault = "UTC"
        options.ledger = campaign.ledger
        options.ledgerUse = .resumeOrBegin
        options.progress = .none
        return options
    }

    private static func open(_ campaign: Campaign) throws -> LedgerDirectory {
        try LedgerDirectory.openForRun(campaign.ledger, resumes: true)
    }

    /// Begins the campaign, as another start of the command does.
    private static func begin(_ run: CheckedRun, _ campaign: Campaign) throws {
        _ = try LedgerSession(
            run.plan, list: run.list, part: nil, skips: run.skips, directory: open(campaign),
            now: Clock.now())
    }

    @Test func `A list that is refused discards the ledger of this run, but not that of another`()
        throws
    {
        let campaign = try Campaign(rows: 1)
        let run = try CheckedRun(Self.options(campaign), spooling: nil)
        #expect(!run.isBegun)
        #expect(throws: BroadsideError.self) {
            try PreparedRun(run, directory: Self.open(campaign))
        }
        #expect(!FileManager.default.fileExists(atPath: campaign.ledger))
        try Self.begin(run, campaign)
        let prepared = try PreparedRun(run, directory: Self.open(campaign))
        #expect(prepared.session.isResumed)
        #expect(FileManager.default.fileExists(atPath: "\(campaign.ledger)/manifest.json"))
    }

    @Test func `A resume on a system without a zone of the first start changes nothing`() throws {
        let campaign = try Campaign(rows: 1)
        let run = try CheckedRun(
            Self.options(campaign, zones: ["Asia/Tokyo", "America/New_York"]), spooling: nil)
        do {
            let first = try PreparedRun(run, directory: Self.open(campaign))
            #expect(first.session.manifest.zones == ["America/New_York", "Asia/Tokyo"])
            // A zone that the system of the first start knew.
            try first.session.record(zones: ["Mars/Base"])
        }
        func manifest() -> Data? {
            FileManager.default.contents(atPath: "\(campaign.ledger)/manifest.json")
        }
        let before = manifest()
        #expect(before != nil)
        let error = try #require(throws: BroadsideError.self) {
            try PreparedRun(run, directory: Self.open(campaign))
        }
        #expect(error.exitCode == 2)
        #expect(error.message.contains("Mars/Base, which this system lacks"), "\(error.message)")
        #expect(manifest() == before)
    }

    @Test(
        arguments: [
            (1_500, .plain, "contains zero bytes: the file is damaged"),
            (40_000, .gzip, "fewer fields than the rows before: was the list cut off?"),
        ] as [(Int, Packing, String)])
    func `Before its first wave, a campaign warns of missing rows anywhere in the list`(
        rows: Int, packing: Packing, warning: String
    ) throws {
        let campaign = try Campaign(rows: 1)
        var lines = ["token,tz"] + (0..<rows).map { "\(hexToken($0)),Asia/Tokyo" }
        lines[packing == .plain ? 1_200 : rows] =
            packing == .plain ? String(repeating: "\0", count: 600) : hexToken(rows)
        let list = try packing.write(
            Array(lines.joined(separator: "\n").utf8), to: "damaged.csv", in: campaign.directory)
        var options = try Self.options(campaign)
        options.tokens = .file(list)
        options.delivery.date = CalendarDate("2099-06-01")
        let run = try CheckedRun(options, spooling: nil)
        let output = Mutex<[String]>([])
        let host = HostedRun { line in output.withLock { $0.append(line) } }
        for _ in 0..<2 {
            try HostedRun.$current.withValue(host) {
                _ = try PreparedRun(run, directory: Self.open(campaign))
            }
        }
        let warnings = output.withLock { $0 }.filter { $0.contains(warning) }
        #expect(warnings.count == 1, "\(output.withLock { $0 })")
    }

    @Test(arguments: [false, true])
    func `A deadline before the next wave causes a warning at each start, also of a part`(
        isPart: Bool
    ) throws {
        let campaign = try Campaign(rows: 1)
        var options = try Self.options(campaign, zones: ["Asia/Tokyo", "America/New_York"])
        options.delivery.date = CalendarDate("2099-06-01")
        options.deadline = 86_400 * second
        if isPart { (options.part, options.campaignID) = (CampaignPart("1/1"), 7) }
        let run = try CheckedRun(options, spooling: nil)
        let output = Mutex<[String]>([])
        let host = HostedRun { line in output.withLock { $0.append(line) } }
        for starts in 1...2 {
            try HostedRun.$current.withValue(host) {
                _ = try PreparedRun(run, directory: Self.open(campaign))
            }
            let lines = output.withLock { $0 }
            let warnings = lines.filter { $0.contains("ends before any row is due") }
            #expect(warnings.count == starts, "\(lines)")
        }
    }

    @Test func `The plan of a resume has no counts that include rows of earlier runs`() throws {
        let campaign = try Campaign(rows: 1)
        var options = try Self.options(campaign, zones: ["", "Asia/Tokyo"])
        options.delivery.date = CalendarDate("2099-06-01")
        let run = try CheckedRun(options, spooling: nil)
        func lines() throws -> [String] {
            let prepared = try PreparedRun(run, directory: Self.open(campaign))
            return try #require(prepared.waves).planLines(deadline: nil)
        }
        let first = try lines()
        #expect(first.count == 3 && first.last?.contains("1 of these rows have no zone") == true)
        #expect(try lines() == Array(first.dropLast()))
    }

    @Test func `A resume waits for no wave in which all rows are of erased devices`() throws {
        let campaign = try Campaign(rows: 1)
        var options = try Self.options(campaign, zones: ["Asia/Tokyo", "America/New_York"])
        options.delivery.date = CalendarDate("2099-06-01")
        let run = try CheckedRun(options, spooling: nil)
        do {
            let first = try PreparedRun(run, directory: Self.open(campaign))
            #expect(first.waves?.waves.count == 2)
        }
        let now = Clock.now().wallMilliseconds
        /// Erases the devices of rows. Returns the waves of a resume, and whether it waits.
        func resume(erasing rows: [UInt64]) throws -> (waves: WavePlan, waits: Bool) {
            let directory = try Self.open(campaign)
            var manifest = try directory.readManifest()
            manifest.record(erasedRows: ErasedRows(rows))
            try directory.save(manifest)
            let prepared = try PreparedRun(run, directory: directory)
            let waves = try #require(prepared.waves)
            let passes = RunPasses(
                waves, hook: nil, isDueLeft: prepared.session.mayHaveDueRows(waves),
                isRowLeft: prepared.session.mayHaveRows, now: now)
            return (waves, passes.dueAt > now)
        }
        let (one, waitsForOne) = try resume(erasing: [0])
        #expect(one.coming.map(\.rows) == [1] && one.earlier.isEmpty && waitsForOne)
        #expect(one.waves.count == 2, "an erasure changes no wave's number in the report")
        let (none, waitsForNone) = try resume(erasing: [1])
        #expect(none.coming.isEmpty && none.earlier.isEmpty && !waitsForNone)
        #expect(none.next(after: now) == nil)
    }
}
