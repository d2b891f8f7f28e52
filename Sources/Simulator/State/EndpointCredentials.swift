internal import BroadsideTLS

/// The data with which an endpoint's threads authenticate clients.
struct EndpointCredentials: Sendable {
    let tls: TLSContext
    let keys: [ProviderKey]
    let topics: TopicTable
    /// The rule for accepting client certificates.
    var certificates = ClientCertificateRule()
}
