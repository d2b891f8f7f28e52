import BroadsideCampaigns

/// Server that notifications go to.
public enum APNsServer: Sendable, Equatable {
    /// Apple's server for apps from the App Store and TestFlight.
    case production
    /// Apple's server for apps that Xcode installed.
    case development
    /// Another server, such as a simulated one.
    ///
    /// - Parameters:
    ///   - host: Name or address.
    ///   - port: TCP port.
    ///   - authorities: Path of a PEM file with the authorities to trust; nil: the system's.
    case other(host: String, port: UInt16 = 443, authorities: String? = nil)

    func apply(to options: inout SendOptions) {
        switch self {
        case .production: options.environment = .production
        case .development: options.environment = .development
        case .other(let host, let port, let authorities):
            options.endpoint = host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
            options.caFile = authorities
        }
    }
}
