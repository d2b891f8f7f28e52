import Broadside
import BroadsideSimulatorTesting
import Foundation
import Testing

/// The examples of docs/library.md and README.md, so that they compile. Their test compares them.
private struct User {
    var token: String
    var name: String
}

private func campaignExamples(pem: String, users: [User]) async throws {
    let campaign = Campaign(
        topic: "com.example.MyApp",
        credential: .key(pem: pem, keyID: "ABC123DEFG", teamID: "DEF123GHIJ"),
        payload: .json(Data(#"{"aps":{"alert":"Good evening, {{name}}"}}"#.utf8)),
        tokens: .file(URL(filePath: "tokens.csv")))
    let run = try await Broadside.start(
        campaign, ledger: URL(filePath: "tonight"),
        options: .init(rate: 5_000, deadline: .seconds(7_200)))
    let result = try await run.result
    _ = result
    await sequenceExample(campaign, users)
    try await runExample(run)
    let rest = try await Broadside.start(
        campaign, ledger: URL(filePath: "tonight"), options: .init(ledgerUse: .resume))
    _ = rest
    await errorExample(campaign)
}

private func sequenceExample(_ other: Campaign, _ users: [User]) async {
    var campaign = other
    let rows = AsyncStream { continuation in
        for user in users { continuation.yield(Recipient(user.token, fields: ["name": user.name])) }
        continuation.finish()
    }
    campaign.tokens = .rows(rows)
    _ = campaign
}

private func runExample(_ run: Run) async throws {
    Task {
        for await progress in run.progress {
            print("\(progress.counts.accepted) accepted, \(progress.responsesPerSecond) per second")
        }
    }
    try await run.setRate(2_000)
    try await run.pause()
    try await run.resume()
    let result = try await run.result
    print("\(result.outcome): \(result.counts.accepted) accepted")
    for try await row in result.ledger.rows(state: .rejected) {
        print(row.token ?? "", row.reason ?? "", row.unregisteredAt ?? "")
    }
}

private func errorExample(_ campaign: Campaign) async {
    do {
        _ = try await Broadside.start(campaign, ledger: URL(filePath: "tonight"))
    } catch  where error.code == .inUse {
        print("another server sends this campaign")
    } catch {
        print(error.property ?? "", error.message)
    }
}

private func readmeExample(pem: String) async throws {
    let run = try await Broadside.start(
        Campaign(
            topic: "com.example.MyApp",
            credential: .key(pem: pem, keyID: "ABC123DEFG", teamID: "DEF123GHIJ"),
            payload: .json(Data(#"{"aps":{"alert":"Good evening"}}"#.utf8)),
            tokens: .file(URL(filePath: "tokens.txt"))),
        ledger: URL(filePath: "tonight"), options: .init(rate: 5_000))
    for await progress in run.progress { print(progress.counts.accepted) }
    let result = try await run.result
    _ = result
}

private func clientExample(pem: String, token: String) async throws {
    let client = try await Client(
        credential: .key(pem: pem, keyID: "ABC123DEFG", teamID: "DEF123GHIJ"))
    let response = try await client.send(
        Push(
            token: token, topic: "com.example.MyApp",
            payload: Data(#"{"aps":{"alert":"Ada wrote to you"}}"#.utf8)))
    switch response.meaning {
    case .accepted: break
    case .deadToken: print("forget the token")
    case .tryLater: print("try again in some minutes")
    case .refused, .refusedCredential, .unknown: print(response.status, response.reason ?? "")
    }
    await client.close()
}

private func renewalExample(_ client: Client) async throws {
    try await client.replaceCredential(
        .keyFile(
            URL(filePath: "AuthKey_NEWKEY0000.p8"), keyID: "NEWKEY0000", teamID: "DEF123GHIJ"))
}

private func proxyExample() -> ClientOptions {
    var options = ClientOptions()
    options.proxy = APNsProxy(
        host: "proxy.example.com", port: 3128, loginFile: URL(filePath: "/etc/app/proxy-login"))
    return options
}

private func simulatorExample() throws {
    var options = SimulatorOptions(state: "apns")
    options.listen = "127.0.0.1:0"
    options.unregistered = 0.02
    let apns = try ProviderEndpoint(options)
    // Send to apns.address; trust apns.state.file("ca.pem"), sign with apns.state.authKeyFile.
    let totals = apns.stop()
    _ = totals
}

// MARK: Stand-ins for swift-log and swift-metrics, with the names of those packages

private struct Logger {
    enum Level {
        case info, notice, warning
    }

    let label: String

    func log(level: Level, _ message: String, metadata: [String: String]) {}
}

private struct Gauge {
    let label: String

    func record(_ value: Double) {}
}

private struct LogAdapter: RunLogger {
    let logger: Logger

    func log(_ entry: RunLogEntry) {
        let level: Logger.Level =
            switch entry.level {
            case .info: .info
            case .notice: .notice
            case .warning: .warning
            }
        logger.log(level: level, "\(entry.message)", metadata: ["kind": "\(entry.kind)"])
    }
}

private struct MetricsAdapter: RunMetrics {
    func record(_ progress: RunProgress) {
        Gauge(label: "broadside_accepted").record(Double(progress.counts.accepted))
        Gauge(label: "broadside_in_flight").record(Double(progress.inFlight))
        Gauge(label: "broadside_responses_per_second").record(progress.responsesPerSecond)
    }
}

private func observedOptions() -> RunOptions {
    var options = RunOptions(rate: 5_000)
    options.logger = LogAdapter(logger: Logger(label: "campaign"))
    options.metrics = MetricsAdapter()
    return options
}

@Test(.simulatedAPNs { $0.unregistered = 0.1 })
func `A dead token is forgotten`() async throws {
    let apns = try #require(SimulatedAPNs.current)
    let client = try await Client(
        credential: apns.credential, options: ClientOptions(server: apns.server))
    let response = try await client.send(
        Push(token: "0badcafe", topic: apns.topic, payload: Data(#"{"aps":{}}"#.utf8)))
    #expect(response.isAccepted || response.meaning == .deadToken)
    await client.close()
    #expect(apns.stop().requests == 1)
}

struct LibraryExampleTests {
    @Test(arguments: [
        "docs/library.md", "README.md", "Sources/Library/Broadside.docc/Broadside.md",
        "Sources/Simulator/Simulator.docc/Simulator.md",
    ])
    func `Each example of a page is in this file and compiles`(page: String) throws {
        func words(_ text: some StringProtocol) -> String {
            text.split { $0.isWhitespace }.joined(separator: " ")
                .replacing("private struct", with: "struct")
        }
        let root = URL(filePath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let text = try String(contentsOf: root.appending(path: page), encoding: .utf8)
        let file = words(try String(contentsOf: URL(filePath: #filePath), encoding: .utf8))
        let blocks = text.components(separatedBy: "```swift\n").dropFirst().map {
            $0.components(separatedBy: "```")[0]
        }.filter { !$0.contains("Package.swift") }
        #expect(!blocks.isEmpty)
        for block in blocks {
            let code = words(block.replacing(/import \w+\n/, with: ""))
            #expect(file.contains(code), "not here: \(block)")
        }
    }
}
