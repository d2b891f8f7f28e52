import BroadsideAPNs
import Testing

/// Which hosts are Apple's.
@Suite struct EndpointsTests {
    @Test(arguments: [
        "api.push.apple.com", "API.Push.Apple.COM", "api.push.apple.com.", "api.push.apple.com..",
        "gateway.push.apple.com", "1-api.push.apple.com",
    ])
    func `Each spelling of an Apple production host is production`(host: String) {
        #expect(Endpoints.environment(ofHost: host) == .production)
    }

    @Test(arguments: [
        "api.sandbox.push.apple.com", "api.development.push.apple.com",
        "GATEWAY.sandbox.push.apple.com.",
    ])
    func `Each spelling of an Apple sandbox host is development`(host: String) {
        #expect(Endpoints.environment(ofHost: host) == .development)
    }

    @Test(arguments: [
        "", ".", "push.apple.com", "apple.com", "api.push.apple.com.example.com", "localhost",
        "api.push.apple.example", "apipush.apple.com", "api.push-apple.com", "17.188.143.35", "::1",
        "api..push.apple.org",
    ])
    func `Another host, or an address, belongs to no environment of Apple`(host: String) {
        #expect(Endpoints.environment(ofHost: host) == nil)
    }

    @Test(arguments: Endpoints.Environment.allCases)
    func `The host of each environment leads back to the environment`(
        environment: Endpoints.Environment
    ) {
        #expect(Endpoints.environment(ofHost: Endpoints.host(environment)) == environment)
    }

    @Test func `Gateways and feedback services of Apple are switched off, and no other host is`() {
        for host in [
            "gateway.push.apple.com", "GATEWAY.sandbox.push.apple.com.", "feedback.push.apple.com",
        ] {
            #expect(Endpoints.isSwitchedOff(host), "\(host)")
        }
        for host in ["api.push.apple.com", "gateway.example.com", "gateway.push.apple.example"] {
            #expect(!Endpoints.isSwitchedOff(host), "\(host)")
        }
    }
}
