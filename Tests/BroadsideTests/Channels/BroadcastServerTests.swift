import BroadsideAPNs
import BroadsideLedgerFormat
import BroadsideSupport
import BroadsideTestSupport
import Testing

@testable import BroadsideCampaigns

/// The environment and the server of a broadcast, and those of earlier starts. Nothing is connected.
struct BroadcastServerTests {
    private let directory: TemporaryDirectory
    private let payload: String
    private let authority: TestAuthority

    private static let sandbox = Endpoints.broadcastHost(.development)
    private static let production = Endpoints.broadcastHost(.production)

    init() throws {
        directory = try TemporaryDirectory()
        authority = try TestAuthority.shared()
        payload = try directory.write(
            #"{"aps":{"timestamp":1790000000,"event":"update","content-state":{}}}"#,
            to: "payload.json")
    }

    private func options(
        _ endpoint: String?, _ environment: Endpoints.Environment? = nil
    ) -> BroadcastOptions {
        var options = BroadcastOptions()
        options.payload = payload
        options.request.app = Campaign.topic
        options.request.channel = "YQ=="
        options.request.connection.authKey = authority.authKey
        options.request.connection.keyID = Campaign.keyID
        options.request.connection.teamID = Campaign.teamID
        options.request.connection.endpoint = endpoint
        if let environment { options.request.connection.environment = environment }
        return options
    }

    private func broadcast(
        _ endpoint: String?, _ environment: Endpoints.Environment? = nil
    ) throws(BroadsideError) -> Broadcast { try Broadcast(options(endpoint, environment)) }

    @Test func `One of Apple's hosts as the endpoint decides the environment of a broadcast`()
        throws
    {
        func identity(
            _ endpoint: String?, _ environment: Endpoints.Environment? = nil
        ) throws -> String { try broadcast(endpoint, environment).identity.environment }
        #expect(try identity(nil) == "production")
        #expect(try identity("localhost:2197") == "production")
        #expect(try identity("localhost:2197", .development) == "development")
        #expect(try identity(Self.production) == "production")
        #expect(try identity(Self.sandbox + ":2197") == "development")
        #expect(try identity(Self.sandbox, .development) == "development")
        #expect(throws: BroadsideError.self) { try broadcast(Self.sandbox, .production) }
    }

    @Test
    func `A start does not take what Apple's other environment accepted for its own broadcast`()
        throws
    {
        func accepted(by server: String) -> BroadcastLedger.Earlier {
            BroadcastLedger.Earlier(state: .accepted, expirationSeconds: 0, server: server)
        }
        let start = try broadcast(nil)
        for server in [Self.sandbox + ":443", "localhost:2197"] {
            let refused = #expect(throws: BroadsideError.self) {
                try start.refuseRehearsal(accepted(by: server))
            }
            #expect(refused?.message.contains("accepted, by \(server), but") == true)
        }
        for server in [Self.production + ":443", "api.push.apple.com:2197"] {
            try start.refuseRehearsal(accepted(by: server))
            #expect(!start.record(accepted(by: server)).contains(", by "))
        }
        // A relay passes the broadcast on to Apple.
        let relay = try broadcast("relay.invalid")
        #expect(!relay.record(accepted(by: Self.production + ":443")).contains(", by "))
        try relay.refuseRehearsal(accepted(by: "localhost:2197"))
    }

    @Test func `A dry run does not take a request in flight for one whose response was lost`()
        throws
    {
        var options = self.options("relay.invalid")
        options.request.isDryRun = true
        options.ledger = "\(directory.path)/ledger"
        let ledger = try BroadcastLedger(
            path: "\(directory.path)/ledger", identity: Broadcast(options).identity,
            expiration: .at(0), name: nil, now: Clock.now())
        try ledger.begin(server: "relay.invalid:443", Clock.now())
        try ledger.reserve(reopening: [], Clock.now())
        // The ledger is locked until it is freed.
        withExtendedLifetime(ledger) {
            let refused = #expect(throws: BroadsideError.self) { try BroadcastRun.run(options) }
            #expect(refused?.exitCode == ExitCode.inUse, "\(refused?.message ?? "")")
        }
    }
}
