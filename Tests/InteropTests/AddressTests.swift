import BroadsideTestSupport
import Foundation
import Testing

/// The ways to a name: several addresses, IPv6.
@Suite(.timeLimit(.minutes(60)))
struct AddressTests {
    static let hasIPv6: Bool = {
        let descriptor = socket(AF_INET6, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_in6()
        address.sin6_family = sa_family_t(AF_INET6)
        address.sin6_addr = in6addr_loopback
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in6>.size)) == 0
            }
        }
    }()

    @Test(.enabled(if: hasIPv6, "this machine has no ::1"), arguments: ["[::1]", "localhost"])
    func `A campaign is sent over IPv6, by address and by name`(_ host: String) throws {
        let server = try LocalAPNs(address: "::1")
        let campaign = try Campaign(rows: 20_000)
        // Some machines' localhost has no IPv6 address.
        let hosts = try campaign.directory.write("::1 localhost\n", to: "hosts")
        let sent = try campaign.send(
            to: "\(host):\(server.port)", ["--connections", "2"],
            environment: FakeTime.names(in: hosts))
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let journal = try server.finish()
        #expect(journal.count == 20_000)
        #expect(Set(journal.map { $0[4] }).count == 20_000)
    }

    @Test func `Addresses that do not respond are skipped by send and doctor`() throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 100)
        let hosts = try campaign.directory.write(
            "127.0.0.2 localhost\n127.0.0.3 localhost\n127.0.0.1 localhost\n", to: "hosts")
        let names = try FakeTime.names(in: hosts)
        let options = campaign.arguments(
            to: server.endpoint, without: ["payload", "tokens", "ledger", "progress"])
        let found = try Broadside.run(
            ["doctor"] + options.dropFirst(), in: campaign.directory, environment: names)
        #expect(found.exitCode == 0, "\(found.output)")
        for address in ["127.0.0.1", "127.0.0.2", "127.0.0.3"] {
            #expect(found.output.contains("\(address):\(server.port)"), "\(found.output)")
        }
        let sent = try campaign.send(
            to: server.endpoint, ["--connections", "1"], environment: names)
        #expect(sent.exitCode == 0, "\(sent.errors)")
        // The doctor's request besides.
        #expect(try server.finish().count { $0[5] == "200" } == 100)
    }
}
