internal import BroadsideAPNs
internal import BroadsideTLS

/// The rule that accepts or rejects client certificates, shared by the provider API, the legacy
/// gateway and the feedback service.
///
/// TLS has already verified that the simulator's authority signed the certificate. Source: Apple,
/// "Establishing a certificate-based connection to APNs".
struct ClientCertificateRule: Sendable {
    /// SHA-256 fingerprints of the revoked certificates.
    var revoked: [[UInt8]] = []
    var environment = Endpoints.Environment.production

    /// Returns the topics and environments of a certificate, or nil if its list of topics is
    /// unreadable.
    static func scope(of certificate: Certificate) -> CertificateScope? {
        var environments: Set<Endpoints.Environment> = []
        if certificate.extensionValue(CertificateScope.developmentExtension) != nil {
            environments.insert(.development)
        }
        if certificate.extensionValue(CertificateScope.productionExtension) != nil {
            environments.insert(.production)
        }
        return CertificateScope(
            topicsExtension: certificate.extensionValue(CertificateScope.topicsExtension),
            voipExtension: certificate.extensionValue(CertificateScope.voipExtension),
            userID: certificate.subjectAttribute(CertificateScope.userIDAttribute),
            commonName: certificate.subjectAttribute(CertificateScope.commonNameAttribute),
            environments: environments)
    }

    /// Returns the reason for rejecting a certificate, or nil if it is accepted.
    ///
    /// A certificate is accepted in both environments if neither its extensions nor its name state
    /// an environment. Tests that create their own certificates need this.
    func refusal(_ certificate: Certificate) -> Reason? {
        if revoked.contains(sha256(certificate.der)) { return .badCertificate }
        guard let scope = Self.scope(of: certificate) else { return .badCertificate }
        guard scope.environments.isEmpty || scope.environments.contains(environment) else {
            return .badCertificateEnvironment
        }
        return nil
    }
}
