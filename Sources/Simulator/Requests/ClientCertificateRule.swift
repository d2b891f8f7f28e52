internal import BroadsideAPNs
internal import BroadsideTLS

/// Whom a client certificate speaks for, and whether it is accepted: one rule for the provider API,
/// the legacy gateway and the feedback service.
///
/// TLS has verified that the simulator's authority signed it. Source: Apple, "Establishing a
/// certificate-based connection to APNs".
struct ClientCertificateRule: Sendable {
    /// SHA-256 of the certificates that are revoked.
    var revoked: [[UInt8]] = []
    var environment = Endpoints.Environment.production

    /// What a certificate is for; nil if its list of topics can't be read.
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

    /// Why a certificate is refused; nil if it is accepted.
    ///
    /// One that names no environment, by extension or by name, is accepted in both, for tests that
    /// make their own.
    func refusal(_ certificate: Certificate) -> Reason? {
        if revoked.contains(sha256(certificate.der)) { return .badCertificate }
        guard let scope = Self.scope(of: certificate) else { return .badCertificate }
        guard scope.environments.isEmpty || scope.environments.contains(environment) else {
            return .badCertificateEnvironment
        }
        return nil
    }
}
