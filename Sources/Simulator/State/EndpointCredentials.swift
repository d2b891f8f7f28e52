internal import BroadsideTLS

/// What the threads of an endpoint need to know whom they talk to.
struct EndpointCredentials: Sendable {
    let tls: TLSContext
    let keys: [ProviderKey]
    let topics: TopicTable
    /// Which client certificates are accepted.
    var certificates = ClientCertificateRule()
}
