import TLS

/// TLS as the record layer of a connection.
struct TLSRecords: RecordLayer, ~Copyable {
    /// What every session of a run is made from.
    struct Recipe: Sendable {
        var context: TLSContext
        var serverName: ServerName
    }

    private var session: TLSSession

    init(recipe: Recipe) throws(RecordLayerError) {
        do {
            session = try TLSSession(context: recipe.context, serverName: recipe.serverName)
        } catch {
            throw RecordLayerError(error)
        }
    }

    var isEstablished: Bool { session.isEstablished }

    mutating func receive(
        _ input: RawSpan, at offset: inout Int, plaintext: inout OutputRawSpan,
        ciphertext: inout OutputRawSpan
    ) -> RecordLayerResult {
        switch session.receive(
            input, at: &offset, plaintext: &plaintext, ciphertext: &ciphertext)
        {
        case .more: .more
        case .plaintextFull: .plaintextFull
        case .ciphertextFull:
            .failed(
                RecordLayerError(
                    message: "the server asks for more handshakes than it takes answers",
                    isLasting: false))
        case .closed: .closed
        case .failed(let error): .failed(RecordLayerError(error))
        }
    }

    mutating func seal(_ plaintext: RawSpan, ciphertext: inout OutputRawSpan) -> Bool {
        session.seal(plaintext, ciphertext: &ciphertext)
    }

    mutating func close(ciphertext: inout OutputRawSpan) {
        session.close(ciphertext: &ciphertext)
    }

    static func sealedCount(_ plaintextCount: Int) -> Int {
        TLSSession.sealedCount(plaintextCount)
    }
}

extension RecordLayerError {
    init(_ error: TLSError) {
        let isLasting =
            switch error.code {
            case .certificateUnknownAuthority, .certificateExpired, .certificateNotYetValid,
                .hostNameMismatch, .certificateRefused, .noALPN, .notTLS, .protocolVersion,
                .clientCertificateRequired, .clientCertificateRefused:
                true
            default:
                false
            }
        self.init(message: error.message, isLasting: isLasting)
    }
}
