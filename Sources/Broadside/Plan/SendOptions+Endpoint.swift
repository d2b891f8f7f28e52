package import BroadsideAPNs
package import BroadsideSupport

extension SendOptions {
    /// Apple's environment that connections go to, by the endpoint's host or by option; nil for
    /// other servers.
    var appleEnvironment: Endpoints.Environment? {
        guard let endpoint else { return environment }
        return Self.appleEnvironment(ofEndpoint: endpoint)
    }

    /// Environment of the campaign's device tokens: that of Apple's server, if `endpoint` names one.
    var tokenEnvironment: Endpoints.Environment { appleEnvironment ?? environment }

    /// Apple's environment of an endpoint, by its host; nil for other servers.
    package static func appleEnvironment(ofEndpoint text: String) -> Endpoints.Environment? {
        parseEndpoint(text).flatMap { Endpoints.environment(ofHost: $0.host) }
    }

    /// Returns an endpoint without its port.
    package static func endpointWithoutPort(_ text: String) -> String {
        guard parseEndpoint(text)?.port != nil, let colon = text.lastIndex(of: ":") else {
            return text
        }
        return String(text[..<colon])
    }

    /// Whether `port` decides which port connections go to. It does if the endpoint names no port.
    var allowsPort: Bool { endpoint.map { parseEndpoint($0)?.port == nil } ?? true }

    /// If no environment is chosen, chooses that of the endpoint's host, if it is one of Apple's.
    mutating func adoptEnvironmentOfEndpoint() {
        guard chosenEnvironment == nil else { return }
        environment = tokenEnvironment
    }

    /// If the endpoint is one of Apple's hosts, removes the endpoint and sets `environment` to the
    /// environment of that host. This is for commands that send to other hosts of Apple. They
    /// choose the host by the environment.
    package mutating func replaceAppleEndpoint() throws(BroadsideError) {
        guard endpoint != nil, let host = appleEnvironment else { return }
        _ = try Plan.endpoint(self)
        environment = host
        endpoint = nil
    }
}
