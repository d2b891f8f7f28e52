import Broadside
import BroadsideSimulatorTesting
import Foundation
import Testing

/// Values of a campaign and of its options, as a program sets them.
@Suite(.timeLimit(.minutes(10)))
struct CampaignValueTests {
    private let apns: SimulatedAPNs

    init() throws { apns = try SimulatedAPNs() }

    /// Starts a campaign after a change; returns the error.
    private func failure(
        _ change: (inout Campaign, inout RunOptions) -> Void
    ) async -> CampaignError? {
        var campaign = apns.campaign(rows: 10)
        var options = RunOptions(server: apns.server)
        change(&campaign, &options)
        do throws(CampaignError) {
            let run = try await Broadside.start(
                campaign, ledger: apns.file("refused"), options: options)
            run.stopAtOnce()
            return nil
        } catch {
            return error
        }
    }

    @Test
    func `A payload in memory is filled in for each row and loses its blanks`() async throws {
        var campaign = apns.campaign(rows: 3)
        campaign.payload = .json(Data("{\n \"aps\": {\"alert\": \"Number {{number}}\"} }\n".utf8))
        let run = try await Broadside.start(
            campaign, ledger: apns.file("ledger"), options: .init(server: apns.server))
        #expect(try await run.result.counts.accepted == 3)
        let received = apns.control("received")
        for number in 0..<3 {
            #expect(received.contains(#"{"aps":{"alert":"Number \#(number)"}}"#))
        }
    }

    @Test(arguments: [
        "", "hello", #"{"aps":{"alert":"Hello"}} and more"#, #"{"aps":{"alert":1}}"#, #"{"x":1}"#,
        #"{"aps":{"alert":"\#(String(repeating: "x", count: 5_000))"}}"#,
        #"{"aps":{"alert":"Hello {{nome}}"}}"#,
    ])
    func `A payload in memory that must not be sent is refused`(text: String) async throws {
        let error = try #require(
            await failure { campaign, _ in campaign.payload = .json(Data(text.utf8)) })
        #expect(error.code == .invalid)
        #expect(error.message.contains(text.contains("nome") ? "nome" : "Campaign.payload"))
        #expect(apns.stop().requests == 0)
    }

    private static let wrongOptions:
        [(property: String, change: @Sendable (inout RunOptions) -> Void)] = [
            ("RunOptions.rate", { $0.rate = 0 }), ("RunOptions.rate", { $0.rate = -1 }),
            ("RunOptions.rate", { $0.rate = .nan }),
            ("RunOptions.connections", { $0.connections = 0 }),
            ("RunOptions.connections", { $0.connections = .max }),
            ("RunOptions.reactors", { $0.reactors = -1 }),
            ("RunOptions.reactors", { $0.reactors = .max }),
            ("RunOptions.maxAttempts", { $0.maxAttempts = 0 }),
            ("RunOptions.canary", { $0.canary = -1 }), ("RunOptions.limit", { $0.limit = 0 }),
            ("RunOptions.requestTimeout", { $0.requestTimeout = .zero }),
            ("RunOptions.giveUpAfter", { $0.giveUpAfter = .seconds(-1) }),
            ("SendOptions.maxBadTokens", { $0.configure = { $0.maxBadTokens = -1 } }),
            ("SendOptions.abortAfter", { $0.configure = { $0.abortAfter = 0 } }),
            ("SendOptions.maxStreams", { $0.configure = { $0.maxStreams = -1 } }),
            ("SendOptions.ratePerConnection", { $0.configure = { $0.ratePerConnection = .nan } }),
        ]

    @Test
    func `A value that the command line would refuse is refused with its property`() async throws {
        for (property, change) in Self.wrongOptions {
            let error = try #require(await failure { _, options in change(&options) })
            #expect(error.code == .invalid && error.property == property, "\(error.message)")
        }
        for name in ["", "two\nlines", String(repeating: "n", count: 201)] {
            let error = try #require(await failure { campaign, _ in campaign.name = name })
            #expect(error.code == .invalid && error.property == "Campaign.name")
        }
        let error = try #require(
            await failure { campaign, _ in campaign.expiration = .after(.max) })
        #expect(error.code == .invalid && error.property == "Campaign.expiration")
        #expect(apns.stop().requests == 0)
    }

    @Test
    func `The URL of a web page is not read as a file`() async throws {
        let page = try #require(URL(string: "https://example.com/tokens.txt"))
        let changes:
            [(property: String, change: @Sendable (inout Campaign, inout RunOptions) -> Void)] = [
                ("Campaign.tokens", { campaign, _ in campaign.tokens = .file(page) }),
                ("Campaign.payload", { campaign, _ in campaign.payload = .file(page) }),
                (
                    "Campaign.credential",
                    { campaign, _ in campaign.credential = .providerTokenFile(page) }
                ),
                ("RunOptions.suppress", { _, options in options.suppress = page }),
            ]
        for (property, change) in changes {
            let error = try #require(await failure(change))
            #expect(error.code == .invalid && error.property == property)
            #expect(error.message.contains(page.absoluteString))
        }
        let error = await #expect(throws: CampaignError.self) {
            try await Broadside.start(
                apns.campaign(rows: 1), ledger: page, options: .init(server: apns.server))
        }
        #expect(error?.code == .invalid)
        let unread = await #expect(throws: CampaignError.self) {
            try await CampaignLedger(page).counts()
        }
        #expect(unread?.code == .invalid)
    }

    @Test
    func `Options that print are refused at the start`() async throws {
        let changes: [(property: String, change: @Sendable (inout SendOptions) -> Void)] = [
            ("SendOptions.isDryRun", { $0.isDryRun = true }),
            ("SendOptions.preview", { $0.preview = 1 }),
            ("SendOptions.summary", { $0.summary = "-" }),
            ("SendOptions.progress", { $0.progress = .auto }),
        ]
        for (property, change) in changes {
            let error = try #require(await failure { _, options in options.configure = change })
            #expect(error.code == .invalid && error.property == property, "\(error.message)")
        }
        #expect(apns.stop().requests == 0)
    }
}
