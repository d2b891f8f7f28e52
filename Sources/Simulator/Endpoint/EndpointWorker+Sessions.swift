internal import APNs
internal import TLS

extension EndpointWorker {
    /// The HTTP/2 session of a connection whose handshake is over.
    func openSession(
        _ connection: EndpointConnection, _ records: borrowing TLSSession
    ) -> EndpointConnection.Session {
        var topics = context.tokenTopics
        var hasCertificate = false
        if let certificate = records.peerCertificate {
            hasCertificate = true
            topics = CertificateTopics.table(of: certificate)
        }
        let credential = ConnectionCredential(hasCertificate: hasCertificate)
        if context.options.isFast {
            return .fast(
                FastSession(
                    context: context, credential: credential, topics: topics,
                    slot: connection.slot, generation: connection.generation))
        }
        let session = ServerSession(
            context: context, credential: credential, topics: topics, slot: connection.slot,
            generation: connection.generation, number: connection.number)
        session.start()
        if let refusal = certificateRefusal(records) { session.refuseCertificate(refusal) }
        connection.reading = context.run?.scenario.reading
        return .strict(session)
    }

    /// Why a client certificate that the authority signed is still refused; nil where it is not.
    private func certificateRefusal(_ records: borrowing TLSSession) -> Reason? {
        guard let certificate = records.peerCertificate else { return nil }
        let fingerprint = sha256(certificate.der)
        if credentials.revoked.contains(fingerprint) { return .badCertificate }
        let isDevelopment =
            certificate.extensionValue(CertificateTopics.developmentIdentifier) != nil
        let isProduction =
            certificate.extensionValue(CertificateTopics.productionIdentifier) != nil
        // One that names no environment is taken, as in tests that make their own.
        guard isDevelopment || isProduction else { return nil }
        let fits = context.options.environment == .production ? isProduction : isDevelopment
        return fits ? nil : .badCertificateEnvironment
    }
}
