import BroadsideAPNs
import BroadsideTLS

extension FuzzTarget {
    /// Keys and certificates from files: PEM, PKCS#12, DER, and what a certificate is for.
    static let credentialFiles = FuzzTarget(name: "credential-files") { bytes in
        var input = FuzzInput(bytes)
        let kind = input.choice(below: 5)
        let file = input.bytes
        // OpenSSL takes as long as the file asks for to derive a key: no such files.
        guard file.count < 8192 else { return }
        switch kind {
        case 0:
            guard let key = try? SigningKey(pem: file) else { return }
            let signature = try? key.signES256([1, 2, 3])
            precondition(signature == nil || signature?.count == SigningKey.signatureByteCount)
        case 1: _ = try? PrivateKey(pem: file, passphrase: Array("word\0".utf8))
        case 2: look(at: (try? Certificate.all(pem: file)) ?? [])
        case 3: look(at: (try? Certificate(der: file)).map { [$0] } ?? [])
        default:
            _ = try? TLSIdentity.read(
                certificate: file, key: nil, passphrase: Array("word".utf8))
        }
    }

    private static func look(at certificates: [Certificate]) {
        for certificate in certificates.prefix(4) {
            _ = (certificate.subject, certificate.issuer, certificate.alternativeNames)
            _ = (certificate.firstDay, certificate.lastDay)
            _ = (certificate.notBefore, certificate.notAfter)
            _ = certificate.subjectAttribute(CertificateScope.userIDAttribute)
            _ = certificate.extensionValue(CertificateScope.topicsExtension)
            if let again = try? Certificate(der: certificate.der) {
                precondition(again.subject == certificate.subject)
            }
        }
    }
}
