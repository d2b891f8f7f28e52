import Testing

@testable import BroadsideRing

@Suite("Addresses and names") struct SocketAddressTests {
    @Test(arguments: [
        ("127.0.0.1", "127.0.0.1:443"), ("255.1.2.3", "255.1.2.3:443"), ("::1", "[::1]:443"),
        ("[::1]", "[::1]:443"), ("2001:DB8::0:17", "[2001:db8::17]:443"),
        ("::ffff:1.2.3.4", "[::ffff:1.2.3.4]:443"),
    ])
    func `Numeric IPv4 and IPv6 text is parsed and printed in canonical form`(
        text: String, description: String
    ) throws {
        let address = try #require(SocketAddress(numeric: text, port: 443))
        #expect(address.description == description)
        #expect(SocketAddress(numeric: address.host, port: 443) == address)
    }

    @Test(arguments: [
        "", "localhost", "1.2.3", "1.2.3.4.5", "256.0.0.1", "[::1", ":::", "1.2.3.4 ",
    ])
    func `Text that is not a numeric address is not parsed`(text: String) {
        #expect(SocketAddress(numeric: text, port: 1) == nil)
    }

    @Test func `Setting the port of an address keeps the rest`() {
        var address = SocketAddress.loopback(port: 1)
        address.port = 65535
        #expect(address == .v4(0x7f00_0001, port: 65535))
        var six = SocketAddress.v6(high: 0, low: 1, scope: 2, port: 3)
        six.port = 4
        #expect(six == .v6(high: 0, low: 1, scope: 2, port: 4))
    }

    @Test func `A numeric host resolves to itself`() throws {
        #expect(try Resolver.resolve("127.0.0.1", port: 9) == [.loopback(port: 9)])
        #expect(try Resolver.resolve("[::1]", port: 9) == [.v6(high: 0, low: 1, scope: 0, port: 9)])
    }

    @Test func `localhost resolves to loopback without duplicates`() throws {
        let addresses = try Resolver.resolve("localhost", port: 2197)
        #expect(addresses.contains(.loopback(port: 2197)))
        #expect(Set(addresses).count == addresses.count)
        #expect(addresses.allSatisfy { $0.port == 2197 })
    }

    @Test func `A name that cannot be resolved is in the error`() {
        let error = #expect(throws: RingError.self) {
            try Resolver.resolve("no such.invalid", port: 1)
        }
        #expect(error?.operation == .resolve)
        #expect(error?.description.hasPrefix("cannot resolve no such.invalid: ") == true)
    }
}
