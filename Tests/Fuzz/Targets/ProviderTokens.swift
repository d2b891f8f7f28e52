import BroadsideAPNs

extension FuzzTarget {
    /// A provider token made elsewhere: what its claims say.
    static let providerToken = FuzzTarget(name: "provider-token") { bytes in
        guard let parsed = try? ProviderTokenClaims.parse(bytes) else { return }
        let again = try? ProviderTokenClaims.parse(bytes)
        precondition(again == parsed)
    }
}
