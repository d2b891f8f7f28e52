import Broadside
import BroadsideSimulator
import Foundation

/// Sends pushes one by one, many at once, as a server does whose users write to each other, and
/// cancels every second one; and a campaign. What it uses of its machine afterwards is its only output.
@main
struct Service {
    /// Results, by number of tasks.
    struct Tally: Sendable {
        var accepted = 0
        var cancelled = 0
        var others: [String: Int] = [:]

        mutating func add(_ outcome: Result<PushResponse, CampaignError>) {
            switch outcome {
            case .success(let response) where response.isAccepted: accepted += 1
            case .success(let response):
                others[response.reason ?? "\(response.status)", default: 0] += 1
            case .failure(let error) where error.code == .stopped: cancelled += 1
            case .failure(let error): others[error.code.rawValue, default: 0] += 1
            }
        }
    }

    static func main() async throws {
        Usage.lowerFileLimit()
        let start = try Usage()
        let count = CommandLine.arguments.dropFirst().first.flatMap(Int.init) ?? 100_000
        let folder = FileManager.default.temporaryDirectory
            .appending(path: "service-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        var simulator = SimulatorOptions(state: folder.path)
        simulator.listen = "127.0.0.1:0"
        simulator.raisesProcessLimits = false
        simulator.latencyNanoseconds = 2_000_000
        let apns = try ProviderEndpoint(simulator)

        let server = APNsServer.other(
            host: "127.0.0.1", port: apns.port, authorities: apns.state.file("ca.pem"))
        let credential = APNsCredential.key(
            pem: try String(contentsOfFile: apns.state.authKeyFile, encoding: .utf8),
            keyID: apns.state.keyID, teamID: apns.state.teamID)
        let sent = try await sendCampaign(
            to: server, credential, topic: apns.state.topic,
            ledger: folder.appending(path: "ledger"))

        // The first client lets buffers, pools and threads of the system grow.
        _ = try await send(count / 2, from: 0, to: server, credential, topic: apns.state.topic)
        let before = try Usage()
        let tally = try await send(
            count, from: count, to: server, credential, topic: apns.state.topic)
        var after = try Usage()
        // The simulator closes its ends of connections a little later.
        for _ in 0..<500 where after.descriptors > before.descriptors {
            try await Task.sleep(for: .milliseconds(10))
            after = try Usage()
        }
        let totals = apns.stop()

        print("pushes \(count)")
        print("accepted \(tally.accepted)")
        print("cancelled \(tally.cancelled)")
        print("others \(tally.others)")
        print("received \(Int(totals.accepted) - sent)")
        print("campaign \(sent)")
        print("limits \(after.limits == start.limits ? 1 : 0)")
        print("masks \(start.hasSameMasks(as: after) ? 1 : 0)")
        print("connections \(totals.connections)")
        print("grown \(after.residentBytes - before.residentBytes)")
        print("threads \(before.threads) \(after.threads)")
        print("descriptors \(before.descriptors) \(after.descriptors)")
    }

    /// Sends a campaign to 2,000 devices; returns how many accepted it.
    static func sendCampaign(
        to server: APNsServer, _ credential: APNsCredential, topic: String, ledger: URL
    ) async throws -> Int {
        let recipients = AsyncStream { continuation in
            for number in 0..<2_000 {
                continuation.yield(
                    Recipient(String(repeating: "5", count: 60) + "\(1_000 + number)"))
            }
            continuation.finish()
        }
        let run = try await Broadside.start(
            Campaign(
                topic: topic, credential: credential,
                payload: .json(Data(#"{"aps":{"alert":"To all"}}"#.utf8)), tokens: .rows(recipients)
            ),
            ledger: ledger, options: RunOptions(server: server))
        return Int(try await run.result.counts.accepted)
    }

    /// Sends pushes with a client of their own, a thousand at a time, and cancels those with an odd
    /// number, half of them on their way.
    static func send(
        _ count: Int, from first: Int, to server: APNsServer, _ credential: APNsCredential,
        topic: String
    ) async throws -> Tally {
        var options = ClientOptions(server: server)
        options.pushesLimit = 2_000
        let client = try await Client(credential: credential, options: options)
        let tally = await withTaskGroup(of: Result<PushResponse, CampaignError>.self) { group in
            var tally = Tally()
            for number in 0..<count {
                if number >= 1_000, let outcome = await group.next() { tally.add(outcome) }
                let digits = String(first + number, radix: 16)
                let push = Push(
                    token: String(repeating: "0", count: 64 - digits.count) + digits, topic: topic,
                    payload: Data(#"{"aps":{"alert":"A message"}}"#.utf8))
                group.addTask {
                    let task = Task { try await client.send(push) }
                    if number % 4 == 3 { try? await Task.sleep(for: .milliseconds(1)) }
                    if number % 2 == 1 { task.cancel() }
                    switch await task.result {
                    case .success(let response): return .success(response)
                    case .failure(let error as CampaignError): return .failure(error)
                    case .failure: preconditionFailure("every error is typed")
                    }
                }
            }
            for await outcome in group { tally.add(outcome) }
            return tally
        }
        await client.close()
        guard client.pushesAwaited == 0 else { preconditionFailure("pushes are still awaited") }
        return tally
    }
}
