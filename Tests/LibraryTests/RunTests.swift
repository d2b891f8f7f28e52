import Broadside
import BroadsideSimulatorTesting
import Foundation
import Testing

@Suite(.timeLimit(.minutes(10)))
struct RunTests {
    @Test
    func `A run sends a sequence, tells its progress, and its ledger lists the rows`() async throws
    {
        let apns = try SimulatedAPNs {
            $0.unregistered = 0.1
        }
        let campaign = apns.campaign(rows: 3_000)
        let run = try await Broadside.start(
            campaign, ledger: apns.file("ledger"), options: .init(server: apns.server))
        var last: RunProgress?
        for await progress in run.progress { last = progress }
        let result = try await run.result
        let totals = apns.stop()

        #expect(result.outcome == .complete && result.remaining == 0 && result.rows == 3_000)
        #expect(result.counts.accepted == UInt64(totals.accepted))
        #expect(result.counts.accepted + result.counts.rejected == 3_000)
        #expect(result.counts.reasons == ["Unregistered": result.counts.rejected])
        #expect(last?.phase == .finished && last?.counts == result.counts)

        var rejected: [LedgerRow] = []
        for try await row in result.ledger.rows(state: .rejected) { rejected.append(row) }
        #expect(UInt64(rejected.count) == result.counts.rejected && rejected.count > 100)
        let first = try #require(rejected.first)
        #expect(first.status == 410 && first.reason == "Unregistered" && first.attempts == 1)
        #expect(first.unregisteredAt != nil)
        #expect(try #require(first.settledAt).timeIntervalSinceNow > -600)
        let line = try #require(first.line)
        #expect(first.token == token(Int(line) - 1))
        // The journal is another witness of what the ledger says.
        let identifier = try #require(first.notificationID)
        let entry = try #require(
            try apns.journal.first { $0.lowercased().contains(identifier) })
        #expect(entry.contains(token(Int(line) - 1)) && entry.contains("Unregistered"))
        #expect(try await result.ledger.counts() == result.counts)
    }

    @Test
    func `A cancelled task gets the result of a drained run, and the ledger continues`()
        async throws
    {
        let apns = try SimulatedAPNs()
        let campaign = apns.campaign(rows: 2_000)
        let ledger = apns.file("ledger")
        let run = try await Broadside.start(
            campaign, ledger: ledger, options: .init(server: apns.server, rate: 30))
        let waiting = Task { try await run.result }
        for await progress in run.progress where progress.counts.accepted > 0 { break }
        waiting.cancel()
        let stopped = try await waiting.value
        #expect(stopped.outcome == .stopped && stopped.counts.unknown == 0)
        let rest = try #require(stopped.remaining)
        #expect(rest > 0 && stopped.counts.accepted + rest == 2_000)

        let second = try await Broadside.start(
            campaign, ledger: ledger, options: .init(server: apns.server, ledgerUse: .resume))
        let whole = try await second.result
        #expect(whole.outcome == .complete && whole.counts.accepted == 2_000)
        #expect(apns.stop().accepted == 2_000)
    }

    @Test
    func `A run obeys a pause, a rate and a stop, and refuses requests when it has ended`()
        async throws
    {
        let apns = try SimulatedAPNs()
        let run = try await Broadside.start(
            apns.campaign(rows: 5_000), ledger: apns.file("ledger"),
            options: .init(server: apns.server, rate: 100))
        try await run.pause()
        for await progress in run.progress where progress.phase == .paused { break }
        try await run.setRate(250)
        try await run.resume()
        for await progress in run.progress where progress.rateLimit == 250 { break }
        try await run.stop()
        let result = try await run.result
        #expect(result.outcome == .stopped && result.counts.accepted < 5_000)
        let error = await #expect(throws: CampaignError.self) { try await run.pause() }
        #expect(error?.code == .stopped)
        await #expect(throws: CampaignError.self) { try await run.setRate(-1) }
        for await _ in run.progress {}
        apns.stop()
    }

    @Test
    func `A request to a run that is stopping is refused as stopped`() async throws {
        let apns = try SimulatedAPNs { $0.latencyNanoseconds = 2_000_000_000 }
        let run = try await Broadside.start(
            apns.campaign(rows: 1_000), ledger: apns.file("ledger"),
            options: .init(server: apns.server, rate: 100))
        try await run.stop()
        let error = await #expect(throws: CampaignError.self) { try await run.stop() }
        #expect(error?.code == .stopped)
        #expect(try await run.result.message?.contains("control") == false)
        apns.stop()
    }

    @Test
    func `Runs at once keep apart`() async throws {
        let apns = try SimulatedAPNs()
        let counts = try await withThrowingTaskGroup(of: UInt64.self) { group in
            for number in 0..<4 {
                let (campaign, server) = (apns.campaign(rows: 500 + number), apns.server)
                let ledger = apns.file("ledger-\(number)")
                group.addTask {
                    let run = try await Broadside.start(
                        campaign, ledger: ledger, options: .init(server: server))
                    return try await run.result.counts.accepted
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }.sorted()
        }
        #expect(counts == [500, 501, 502, 503])
        #expect(apns.stop().accepted == 2_006)
    }

    @Test
    func `A second run of a ledger in use is refused`() async throws {
        let apns = try SimulatedAPNs()
        let ledger = apns.file("ledger")
        var options = RunOptions(server: apns.server, rate: 10)
        let campaign = apns.campaign(rows: 1_000)
        let run = try await Broadside.start(campaign, ledger: ledger, options: options)
        for use in SendOptions.LedgerUse.allCases {
            options.ledgerUse = use
            let error = await #expect(throws: CampaignError.self) {
                try await Broadside.start(campaign, ledger: ledger, options: options)
            }
            #expect(error?.code == .inUse)
        }
        run.stopAtOnce()
        let result = try await run.result
        #expect(result.outcome == .stopped)
        #expect(result.message?.contains("signal") == false)
        apns.stop()
    }

    @Test
    func `An error names the property with the wrong value, and no option`() async throws {
        let apns = try SimulatedAPNs()
        var campaign = apns.campaign(rows: 10)
        let log = Log()
        var options = RunOptions(server: apns.server)
        options.logger = log
        func failure() async -> CampaignError? {
            await #expect(throws: CampaignError.self) {
                try await Broadside.start(
                    campaign, ledger: apns.file("ledger"), options: options)
            }
        }
        campaign.topic = "com.example.My App"
        var error = try #require(await failure())
        #expect(error.code == .invalid && error.property == "Campaign.topic")
        campaign.topic = apns.topic
        campaign.credential = .key(pem: "none", keyID: "A", teamID: "B")
        error = try #require(await failure())
        #expect(error.code == .invalid && error.property == "Campaign.credential")
        #expect(!"\(campaign.credential)".contains("none"))
        campaign.credential = apns.credential
        campaign.tokens = .rows(Recipients(count: 10_000, failsAt: 9_000))
        error = try #require(await failure())
        #expect(error.code == .invalid && error.property == "Campaign.tokens")
        campaign.tokens = .rows(Recipients(count: 10_000))
        options.tokensByteLimit = 100_000
        error = try #require(await failure())
        #expect(error.property == "Campaign.tokens")
        #expect(error.message.contains("RunOptions.tokensByteLimit"))
        // Nothing was left behind that a corrected campaign would stumble over.
        options.tokensByteLimit = 1 << 30
        let run = try await Broadside.start(
            campaign, ledger: apns.file("ledger"), options: options)
        #expect(try await run.result.counts.accepted == 10_000)
        error = try #require(await failure())
        #expect(error.code == .invalid && !error.message.contains("--"))
        #expect(log.entries.contains { $0.kind == "started" })
        #expect(log.entries.allSatisfy { !$0.message.contains("--") })
        apns.stop()
    }

    @Test
    func `A refused campaign throws, and the error has its counts`() async throws {
        let apns = try SimulatedAPNs { $0.badToken = 1 }
        let run = try await Broadside.start(
            apns.campaign(rows: 20_000), ledger: apns.file("ledger"),
            options: .init(server: apns.server))
        let error = await #expect(throws: CampaignError.self) { try await run.result }
        #expect(error?.code == .refused)
        let counts = try #require(error?.result?.counts)
        #expect(counts.rejected > 0 && counts.accepted == 0)
        apns.stop()
    }

    @Test
    func `A task that is cancelled while rows are supplied sends nothing`() async throws {
        let apns = try SimulatedAPNs()
        var campaign = apns.campaign(rows: 0)
        let (rows, continuation) = AsyncStream.makeStream(of: Recipient.self)
        campaign.tokens = .rows(rows)
        let (asked, ledger, server) = (campaign, apns.file("ledger"), apns.server)
        let starting = Task {
            try await Broadside.start(asked, ledger: ledger, options: .init(server: server))
        }
        continuation.yield(Recipient(token(1)))
        try await Task.sleep(for: .milliseconds(200))
        starting.cancel()
        let error = await #expect(throws: CampaignError.self) { _ = try await starting.value }
        #expect(error?.code == .stopped)
        // No ledger is left that a run could continue.
        #expect(error?.message.contains("resume") == false)
        #expect(apns.stop().requests == 0)
    }

    @Test
    func `An iterator of rows that is given up ends its thread`() async throws {
        let apns = try SimulatedAPNs()
        let run = try await Broadside.start(
            apns.campaign(rows: 40_000), ledger: apns.file("ledger"),
            options: .init(server: apns.server))
        let result = try await run.result
        for _ in 0..<20 {
            for try await row in result.ledger.rows() {
                #expect(row.state == .accepted)
                break
            }
        }
        // Otherwise twenty threads would stay blocked, with their ledger open.
        for _ in 0..<1_000 where try openFiles(in: apns.file("ledger")) > 0 {
            try await Task.sleep(for: .milliseconds(10))
        }
        #expect(try openFiles(in: apns.file("ledger")) == 0)
        apns.stop()
    }
}

final class Log: RunLogger, @unchecked Sendable {
    private let lock = NSLock()
    private var all: [RunLogEntry] = []

    var entries: [RunLogEntry] { lock.withLock { all } }

    func log(_ entry: RunLogEntry) { lock.withLock { all.append(entry) } }
}

/// Number of descriptors of this process for files in a directory.
func openFiles(in directory: URL) throws -> Int {
    let files = FileManager.default
    return try files.contentsOfDirectory(atPath: "/proc/self/fd").count { descriptor in
        let target = try? files.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(descriptor)")
        return target?.hasPrefix(directory.path) ?? false
    }
}
