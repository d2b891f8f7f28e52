import BroadsideAPNs
import BroadsideSupport
import Glibc
import Testing

@testable import BroadsideCampaigns

/// The server that options name.
@Suite struct EndpointTests {
    /// Host and port, or the option that an error names.
    private func endpoint(_ change: (inout SendOptions) -> Void) -> String {
        var options = SendOptions()
        change(&options)
        do throws(BroadsideError) {
            let (host, port) = try Plan.endpoint(options)
            return "\(host) \(port)"
        } catch {
            #expect(error.exitCode == 2)
            return "--\(error.option ?? "")"
        }
    }

    @Test func `--port is the port of Apple's hosts and of an endpoint without one`() {
        #expect(endpoint { $0.port = 2197 } == "api.push.apple.com 2197")
        #expect(endpoint { $0.endpoint = "relay" } == "relay 443")
        for name in ["relay", "relay:2197"] {
            let named = endpoint { options in
                options.endpoint = name
                options.port = 2197
            }
            #expect(named == "relay 2197")
        }
        let legacy = endpoint { options in
            options.endpoint = "[::1]"
            options.wireProtocol = .binary
        }
        #expect(legacy == "::1 2195")
    }

    @Test func `Only the ports of the legacy services lead to advice about them`() {
        #expect(Plan.legacyHint(port: 2195)?.contains("add --protocol binary") == true)
        #expect(Plan.legacyHint(port: 2196)?.contains("broadside feedback") == true)
        #expect(Plan.legacyHint(port: 2197) == nil && Plan.legacyHint(port: 443) == nil)
    }

    @Test func `--port is refused beside an endpoint with another port`() {
        for name in ["relay:443", "[::1]:8443"] {
            let refused = endpoint { options in
                options.endpoint = name
                options.port = 2197
            }
            #expect(refused == "--port")
        }
    }

    @Test func `An endpoint with a user is refused, and neither user nor password is shown`() {
        for address in ["sesame@relay", "sesame:sesame@relay", "https://u:sesame@relay:2197"] {
            var options = SendOptions()
            options.endpoint = address
            let error = #expect(throws: BroadsideError.self) { try Plan.endpoint(options) }
            let message = error?.message ?? ""
            #expect(message.hasPrefix("--endpoint contains a user, "), "\(message)")
            #expect(!message.contains("sesame"), "\(message)")
        }
    }

    @Test func `A chosen environment is refused beside Apple's host of the other one`() {
        for environment in Endpoints.Environment.allCases {
            let (own, other) = (Endpoints.host(environment), Endpoints.host(environment.other))
            func named(_ host: String) -> String {
                endpoint { options in
                    options.environment = environment
                    options.endpoint = host
                }
            }
            #expect(named(own) == "\(own) 443" && named("relay") == "relay 443")
            for host in [other, other.uppercased() + ".:2197"] {
                #expect(named(host) == "--environment")
            }
            #expect(endpoint { $0.endpoint = other } == "\(other) 443")
        }
    }

    @Test func `Without a choice, the endpoint's host decides the environment`() {
        var options = SendOptions()
        #expect(options.appleEnvironment == .production)
        options.endpoint = "api.sandbox.push.apple.com:2197"
        #expect(options.appleEnvironment == .development)
        options.endpoint = "localhost"
        #expect(options.appleEnvironment == nil)
    }

    @Test func `Advice about a closed port names --port only if it can change the port`() {
        var options = SendOptions()
        for (endpoint, allowsPort) in [
            (nil, true), ("relay", true), ("[::1]", true), ("relay:443", false),
            ("[::1]:443", false),
        ] as [(String?, Bool)] {
            options.endpoint = endpoint
            #expect(options.allowsPort == allowsPort)
        }
        let other = ConnectAdvice.text(errno: ETIMEDOUT, isProxy: false, otherPort: 2197)
        #expect(other.contains("try --port 2197"))
        let none = ConnectAdvice.text(errno: ETIMEDOUT, isProxy: false, otherPort: nil)
        #expect(!none.contains("--port"))
    }
}
