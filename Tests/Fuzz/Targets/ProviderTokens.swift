import APNs

extension FuzzTarget {
    /// A provider token made elsewhere: what its claims say.
    static let providerToken = FuzzTarget(name: "provider-token") { octets in
        guard let parsed = try? ProviderTokenClaims.parse(octets) else { return }
        let again = try? ProviderTokenClaims.parse(octets)
        precondition(again == parsed)
    }
}
