import BroadsideAPNs
import BroadsideLedgerFormat
import BroadsideRows
import BroadsideSupport
import BroadsideTestSupport
import Foundation
import Testing

@testable import BroadsideCampaigns

/// A broadcast whose ledger fails after its request.
@Suite struct BroadcastLedgerTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private var path: String { "\(directory.path)/ledger" }

    private func open() throws -> BroadcastLedger {
        let identity = CampaignIdentity(
            listByteCount: nil, listFormat: CampaignIdentity.broadcastProtocol, columns: [],
            payloadSHA256: "", topic: "com.example.MyApp",
            pushType: PushType.liveActivity.rawValue, priority: 10, expiration: nil,
            collapseID: nil, environment: "production", shard: nil, suppressSHA256: nil,
            wireProtocol: CampaignIdentity.broadcastProtocol, channel: "channel")
        return try BroadcastLedger(
            path: path, identity: identity, expiration: .at(0), name: nil, now: Clock.now())
    }

    private func reserved() throws -> BroadcastLedger {
        let ledger = try open()
        try ledger.begin(server: "localhost:2197", Clock.now())
        try ledger.reserve(reopening: [], Clock.now())
        return ledger
    }

    private func failure(
        _ body: () throws(BroadsideError) -> Void
    ) throws -> BroadsideError {
        var found: BroadsideError?
        do throws(BroadsideError) { try body() } catch { found = error }
        return try #require(found)
    }

    @Test(
        arguments: [
            (.accepted, 200, "APNs accepted the broadcast", true),
            (.rejected, 400, "APNs refused the broadcast", false),
            (.failed, 503, "APNs did not process the broadcast", false),
            (.unknown, 0, "devices may have received the broadcast", true),
        ] as [(RowState, UInt16, String, Bool)])
    func `A ledger that is removed while the request is in flight does not hide the outcome`(
        _ state: RowState, _ status: UInt16, _ outcome: String, _ mayRepeat: Bool
    ) throws {
        let ledger = try reserved()
        try FileManager.default.removeItem(atPath: path)
        let error = try failure { () throws(BroadsideError) in
            try ledger.settle(state, status: status, reason: nil, Clock.now())
        }
        #expect(error.exitCode == 5)
        #expect(
            error.message.hasPrefix("\(outcome), but its ledger can't record this: \(path)/"),
            "\(error.message)")
        #expect(error.message.contains("No such file or directory: another program removed"))
        #expect(!error.message.contains("must belong"), "\(error.message)")
        let repeats = error.message.hasSuffix(
            "; a start without this ledger sends the broadcast again")
        #expect(repeats == mayRepeat, "\(error.message)")
    }

    @Test func `A ledger that can't replace its manifest still keeps a second start from sending`()
        throws
    {
        // A directory in the place of the temporary file.
        let obstacle = "\(path)/.manifest.json.new"
        do {
            let ledger = try reserved()
            try FileManager.default.createDirectory(
                atPath: obstacle, withIntermediateDirectories: false)
            let error = try failure { () throws(BroadsideError) in
                try ledger.settle(.accepted, status: 200, reason: nil, Clock.now())
            }
            #expect(error.message.hasPrefix("APNs accepted the broadcast, but"), "\(error.message)")
            #expect(
                error.message.hasSuffix(
                    "; with the same --ledger, only --retry unknown could send the broadcast again"),
                "\(error.message)")
        }
        try FileManager.default.removeItem(atPath: obstacle)
        #expect(try open().outcome.state == .accepted)
    }

    @Test func `A request that was not processed is named if its ledger was removed`() throws {
        let ledger = try reserved()
        try FileManager.default.removeItem(atPath: path)
        let error = try failure { () throws(BroadsideError) in try ledger.release(Clock.now()) }
        #expect(error.message.hasPrefix("APNs did not process the broadcast, but its ledger"))
        #expect(!error.message.contains("sends the broadcast again"), "\(error.message)")
    }
}
