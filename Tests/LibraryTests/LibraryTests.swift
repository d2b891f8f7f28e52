import Broadside
import BroadsideSimulator
import Foundation
import Testing

/// A campaign as the command sends it: public names alone, as a program of anyone's uses them.
@Test(.timeLimit(.minutes(60)))
func `A program runs a local APNs and a campaign`() throws {
    let folder = NSTemporaryDirectory() + "/broadside-library-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let tokens = (0..<1000).map { String(format: "%064x", $0) }.joined(separator: "\n")
    try tokens.write(toFile: "\(folder)/tokens.txt", atomically: true, encoding: .utf8)

    var simulator = SimulatorOptions(state: "\(folder)/apns")
    simulator.listen = "127.0.0.1:0"
    simulator.raisesProcessLimits = false
    let apns = try ProviderEndpoint(simulator)

    var send = SendOptions()
    send.endpoint = apns.address
    send.caFile = apns.state.file("ca.pem")
    send.authKey = apns.state.authKeyFile
    send.keyID = apns.state.keyID
    send.teamID = apns.state.teamID
    send.topic = apns.state.topic
    send.tokens = .file("\(folder)/tokens.txt")
    send.payloadBytes = Array(#"{"aps":{"alert":"Good evening"}}"#.utf8)
    send.ledger = "\(folder)/ledger"
    send.progress = .none
    let exitCode = try CampaignRun.run(send)

    let totals = apns.stop()
    #expect(exitCode == 0)
    #expect(totals.accepted == 1000)
}

/// Types of Apple's that options have, by their names.
private struct Choice {
    var pushType: PushType
    var priority: Priority?
    var expiration: Expiration?
    var environment: Endpoints.Environment
    var command: BinaryCommand
}

@Test
func `Each option's type is usable with the library's import alone`() {
    let choice = Choice(
        pushType: PushType.background, priority: Priority.normal,
        expiration: Expiration("+2h"), environment: Endpoints.Environment.development,
        command: BinaryCommand.simple)
    var send = SendOptions()
    send.pushType = choice.pushType
    send.priority = choice.priority
    send.expiration = choice.expiration
    send.environment = choice.environment
    send.binaryCommand = choice.command
    send.pace = PaceMode.fixed
    send.onLost = LostResponsePolicy.resend
    send.format = TokenListFormat.csv
    send.shard = ListShard("2/3")
    send.progress = ProgressMode.json
    send.log = EventLogFormat.json
    send.wireProtocol = WireProtocol.binary
    send.headerIndexing = IndexingPolicy.compact
    send.ledgerUse = SendOptions.LedgerUse.resumeOrBegin
    #expect(send.pushType.topicSuffix == nil && send.priority?.rawValue == 5)
    #expect(send.expiration == Expiration.after(7200))
}
