import BroadsideTestSupport
import Foundation
import Testing

/// Runs whose connections resume TLS sessions, through a relay that does not like it.
@Suite(.timeLimit(.minutes(60)))
struct TicketRelayTests {
    @Test(arguments: ["close", "reset", "silence", "midway"])
    func `A relay that fails resumed sessions costs one connection`(_ way: String) throws {
        let server = try LocalAPNs(["--scenario", "goaway"])
        let campaign = try Campaign(rows: 2_000)
        let directory = try TemporaryDirectory()
        let record = "\(directory.path)/record"
        let relay = try PythonServer(
            "ticket_relay.py", ["--to", "\(server.port)", "--way", way, "--record", record],
            in: directory)
        let sent = try campaign.send(to: "localhost:\(relay.port)", ["--connections", "1"])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let journal = try server.finish()
        #expect(journal.count == 2_000 && Set(journal.map { $0[4] }).count == 2_000)
        let hellos = try String(contentsOfFile: record, encoding: .utf8).split(separator: "\n")
        // The first one that has a ticket to offer is the last.
        #expect(hellos.count { $0 == "ticket" } == 1, "\(hellos)")
        #expect(hellos.count >= 4)
    }

    @Test func `With a client certificate each connection makes a full handshake`() throws {
        let server = try LocalAPNs(["--scenario", "goaway"])
        let campaign = try Campaign(rows: 2_000)
        let directory = try TemporaryDirectory()
        let record = "\(directory.path)/record"
        let relay = try PythonServer(
            "ticket_relay.py", ["--to", "\(server.port)", "--way", "close", "--record", record],
            in: directory)
        let identity = try campaign.authority.clientCertificate(
            topics: [Campaign.topic], in: campaign.directory)
        let sent = try Broadside.run(
            campaign.arguments(
                to: "localhost:\(relay.port)",
                [
                    "--connections", "1", "--certificate", identity.certificate, "--private-key",
                    identity.key,
                ], without: ["auth-key", "key-id", "team-id"]), in: campaign.directory)
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let hellos = try String(contentsOfFile: record, encoding: .utf8).split(separator: "\n")
        #expect(hellos.count >= 4 && !hellos.contains("ticket"), "\(hellos)")
    }
}
