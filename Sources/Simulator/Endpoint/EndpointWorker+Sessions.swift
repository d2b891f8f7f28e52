internal import BroadsideAPNs
internal import BroadsideRing
internal import BroadsideTLS

extension EndpointWorker {
    /// Creates the HTTP/2 session of a connection whose handshake has completed.
    func openSession(
        _ connection: EndpointConnection, _ records: borrowing TLSSession
    ) -> EndpointConnection.Session {
        var topics = context.tokenTopics
        var hasCertificate = false
        var certificateRefusal: Reason?
        if let certificate = records.peerCertificate {
            hasCertificate = true
            topics = TopicTable(ClientCertificateRule.scope(of: certificate))
            certificateRefusal = credentials.certificates.refusal(certificate)
            if let certificateRefusal {
                context.totals.countCertificate(refused: certificateRefusal)
            }
        }
        let credential = ConnectionCredential(
            hasCertificate: hasCertificate,
            address: try? Socket.peerAddress(of: connection.descriptor))
        if context.options.isFast {
            let session = FastSession(
                context: context, credential: credential, topics: topics,
                slot: connection.slot, generation: connection.generation)
            if let certificateRefusal { session.refuseCertificate(certificateRefusal) }
            return .fast(session)
        }
        let session = ServerSession(
            context: context, credential: credential, topics: topics, slot: connection.slot,
            generation: connection.generation, number: connection.number)
        session.start()
        if let certificateRefusal { session.refuseCertificate(certificateRefusal) }
        connection.reading = context.run?.scenario.reading
        return .strict(session)
    }
}
