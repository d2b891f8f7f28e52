import Testing

@testable import BroadsideLocalHTTP

@Suite struct HTTPHostTests {
    @Test(
        arguments: [
            "localhost", "LOCALHOST:9100", "127.0.0.1", "127.0.0.1:9100", "[::1]", "[::1]:9100",
            "10.0.0.7:80", "[fe80::1]", "localhost:",
        ])
    func `A host of an endpoint may be an address or localhost`(host: String) {
        #expect(HTTPHost.isAllowed(host))
    }

    @Test(
        arguments: [
            "", "evil.example", "evil.example:9100", "localhost.evil.example",
            "127.0.0.1.evil.example",
            "localhost:80x", "[::1", "[::1]x", "[evil]", "::1", "user@localhost", "localhost/x",
            ":9100",
            "127.1", "127.0.0.1:9100:1",
        ])
    func `A host of an endpoint may not be another name`(host: String) {
        #expect(!HTTPHost.isAllowed(host))
    }

    @Test func `A loopback address is recognized in each form`() {
        for host in ["127.0.0.1", "127.3.2.1", "::1", "::ffff:127.0.0.1"] {
            #expect(HTTPHost.isLoopback(host))
        }
        for host in ["0.0.0.0", "::", "10.0.0.7", "128.0.0.1"] {
            #expect(!HTTPHost.isLoopback(host))
        }
    }
}
