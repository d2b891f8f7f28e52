import BroadsideTestSupport
import Foundation
import Testing

/// Campaigns that go through a proxy which nobody here wrote.
@Suite(.timeLimit(.minutes(60)))
struct ProxyTests {
    private static let login = "marked-user marked-word"

    private func authFile(_ campaign: Campaign, _ text: String) throws -> String {
        let file = try campaign.directory.write(text, to: "login")
        #expect(chmod(file, 0o600) == 0)
        return file
    }

    @Test(arguments: [false, true])
    func `A campaign is sent through a proxy, with and without password`(_ asksForPassword: Bool)
        throws
    {
        let server = try LocalAPNs()
        let proxy = try Tinyproxy(login: asksForPassword ? Self.login : nil)
        let campaign = try Campaign(rows: 20_000)
        var options = ["--proxy", proxy.url, "--connections", "4"]
        if asksForPassword {
            options += ["--proxy-auth-file", try authFile(campaign, "marked-user:marked-word\n")]
        }
        let sent = try campaign.send(to: server.endpoint, options)
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(!(sent.errors + sent.output).contains("marked-"))
        let journal = try server.finish()
        #expect(journal.count == 20_000)
        #expect(Set(journal.map { $0[4] }).count == 20_000)
        #expect(journal.allSatisfy { $0[5] == "200" })
        // Nothing went past it.
        #expect(try proxy.tunnels() == 4)
    }

    @Test func `The proxy resolves the server's name`() throws {
        let proxy = try Tinyproxy()
        let campaign = try Campaign(rows: 1)
        let sent = try campaign.send(to: "nowhere.invalid:443", ["--proxy", proxy.url])
        #expect(sent.exitCode == 1)
        #expect(sent.errors.contains("the proxy 127.0.0.1:\(proxy.port) could not open"))
        #expect(sent.errors.contains("nowhere.invalid:443"), "\(sent.errors)")
        #expect(!sent.errors.contains("cannot resolve"), "\(sent.errors)")
    }

    @Test func `A proxy's refusal is reported as the proxy's by send, probe and doctor`() throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 5)
        let proxy = try Tinyproxy(login: Self.login)
        let narrow = try Tinyproxy(connectPort: 443)
        let wrong = try authFile(campaign, "marked-user:marked-wrong")
        let closed = try Ports.free()
        for (options, word) in [
            (
                ["--proxy", proxy.url],
                "the proxy 127.0.0.1:\(proxy.port) refused CONNECT with 407 Proxy Authentication "
                    + "Required: add --proxy-auth-file"
            ),
            (
                ["--proxy", proxy.url, "--proxy-auth-file", wrong],
                "check user and password in --proxy-auth-file"
            ),
            (["--proxy", narrow.url], "refused CONNECT to \(server.endpoint) with 403"),
            (
                ["--proxy", "http://127.0.0.1:\(closed)"],
                "the proxy 127.0.0.1:\(closed): Connection refused"
            ),
            // An APNs is not a proxy.
            (["--proxy", "http://127.0.0.1:\(server.port)"], "the proxy 127.0.0.1:\(server.port)"),
        ] {
            var sending = campaign.arguments(
                to: server.endpoint, options + ["--ledger", campaign.directory.fresh("ledger")])
            let sent = try Broadside.run(sending, in: campaign.directory)
            #expect(sent.exitCode == 1)
            #expect(sent.errors.contains(word), "\(sent.errors)")
            #expect(sent.errorLines.count == 1)
            sending = campaign.arguments(
                to: server.endpoint, options + ["--ledger", campaign.directory.fresh("ledger")],
                without: ["payload"])
            let probed = try Broadside.run(
                ["probe"] + sending.dropFirst(), in: campaign.directory)
            #expect(probed.exitCode == 1)
            #expect(probed.errors.contains(word), "\(probed.errors)")
            let examined = try Broadside.run(
                [
                    "doctor",
                    "--json",
                ]
                    + campaign.arguments(
                        to: server.endpoint, options,
                        without: ["payload", "tokens", "ledger", "progress"]
                    ).dropFirst(), in: campaign.directory)
            #expect(examined.exitCode == 1)
            #expect(examined.output.contains(word), "\(examined.output)")
            #expect(!(sent.errors + probed.errors + examined.output).contains("marked-w"))
        }
        #expect(try server.finish().isEmpty)
    }

    @Test
    func `doctor works through a proxy, with a login that an editor of Windows wrote`() throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 1)
        let proxy = try Tinyproxy(login: Self.login)
        let login = try authFile(campaign, "\u{feff}marked-user:marked-word\r\n")
        let url = proxy.url.replacing("http:", with: "HTTP:")
        let examined = try Broadside.run(
            ["doctor", "--proxy", url, "--proxy-auth-file", login]
                + campaign.arguments(
                    to: server.endpoint, without: ["payload", "tokens", "ledger", "progress"]
                ).dropFirst(), in: campaign.directory)
        #expect(examined.exitCode == 0, "\(examined.output)")
        #expect(examined.output.contains("opened a tunnel to \(server.endpoint)"))
    }

    @Test(arguments: [
        ("127.0.0.1:3128", "http://HOST:PORT"), ("https://127.0.0.1:3128", "only plain http://"),
        ("socks5://127.0.0.1:1080", "only plain http://"), ("http://127.0.0.1", "host and port"),
        ("http://a:marked-b@127.0.0.1:3128", "--proxy-auth-file"),
        ("http://127.0.0.1:99999", "host and port"), ("http://:80", "host and port"),
    ])
    func `A --proxy that is not an http URL is refused before anything is connected`(
        _ url: String, _ word: String
    ) throws {
        let campaign = try Campaign(rows: 1)
        let refused = try campaign.send(to: "localhost:1", ["--proxy", url, "--dry-run"])
        #expect(refused.exitCode == 2)
        #expect(refused.errors.contains(word), "\(refused.errors)")
        #expect(!refused.errors.contains("marked-b"))
        #expect(refused.errorLines.count == 1)
    }

    @Test func `A password file without a colon, or without a proxy, is refused`() throws {
        let campaign = try Campaign(rows: 1)
        let file = try authFile(campaign, "nocolon\n")
        for options in [
            ["--proxy", "http://localhost:1", "--proxy-auth-file", file],
            ["--proxy-auth-file", file],
        ] {
            let refused = try campaign.send(to: "localhost:1", options + ["--dry-run"])
            #expect(refused.exitCode == 2)
            #expect(refused.errors.contains("--proxy-auth-file"), "\(refused.errors)")
        }
    }
}
