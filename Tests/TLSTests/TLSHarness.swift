@testable import BroadsideTLS

/// One end of a connection with what it received and what it wants to send.
final class Endpoint {
    var session: TLSSession
    var outgoing: [UInt8] = []
    var plaintext: [UInt8] = []
    var isClosed = false
    var error: TLSError?
    /// Room that each call is given.
    var plaintextRoom = 65_536
    var ciphertextRoom = 65_536

    init(_ context: TLSContext, _ name: ServerName? = nil) throws {
        session = try TLSSession(context: context, serverName: name)
    }

    // #expect takes no properties of noncopyable values.
    var isEstablished: Bool { session.isEstablished }
    var isResumed: Bool { session.isResumed }
    var applicationProtocol: String? { session.applicationProtocol }
    var versionName: String { session.versionName }
    var peerCertificate: Certificate? { session.peerCertificate }
    func receiveEnd() -> TLSError? { session.receiveEnd() }

    /// Feeds ciphertext until all of it is consumed or the session is over.
    func receive(_ input: [UInt8]) {
        var offset = 0
        while true {
            var plain = [UInt8](repeating: 0, count: plaintextRoom)
            var cipher = [UInt8](repeating: 0, count: ciphertextRoom)
            var plainCount = 0
            var cipherCount = 0
            let result = plain.withUnsafeMutableBytes { plainBuffer in
                cipher.withUnsafeMutableBytes { cipherBuffer in
                    var plainSpan = OutputRawSpan(buffer: plainBuffer, initializedCount: 0)
                    var cipherSpan = OutputRawSpan(buffer: cipherBuffer, initializedCount: 0)
                    let result = session.receive(
                        input.span.bytes, at: &offset, plaintext: &plainSpan,
                        ciphertext: &cipherSpan)
                    plainCount = plainSpan.finalize(for: plainBuffer)
                    cipherCount = cipherSpan.finalize(for: cipherBuffer)
                    return result
                }
            }
            plaintext += plain.prefix(plainCount)
            outgoing += cipher.prefix(cipherCount)
            switch result {
            case .more:
                precondition(offset == input.count, "all input is consumed")
                return
            case .plaintextFull: precondition(plainCount == plaintextRoom)
            case .ciphertextFull: precondition(cipherCount == ciphertextRoom)
            case .closed:
                isClosed = true
                return
            case .failed(let error):
                self.error = error
                return
            }
        }
    }

    /// Seals all, with exactly the room that `sealedCount` asks for.
    func send(_ bytes: [UInt8]) {
        append(TLSSession.sealedCount(bytes.count)) { session, span in
            precondition(session.seal(bytes.span.bytes, ciphertext: &span))
        }
    }

    func close() {
        append(TLSSession.sealedCount(2)) { session, span in session.close(ciphertext: &span) }
    }

    func append(_ room: Int, _ body: (inout TLSSession, inout OutputRawSpan) -> Void) {
        var cipher = [UInt8](repeating: 0, count: room)
        var count = 0
        cipher.withUnsafeMutableBytes { buffer in
            var span = OutputRawSpan(buffer: buffer, initializedCount: 0)
            body(&session, &span)
            count = span.finalize(for: buffer)
        }
        outgoing += cipher.prefix(count)
    }

    func takeOutgoing() -> [UInt8] {
        defer { outgoing = [] }
        return outgoing
    }
}

/// Carries bytes both ways, in pieces, until nothing moves any more.
func pump(_ client: Endpoint, _ server: Endpoint, pieces: Int = .max) {
    if !client.session.isEstablished && client.error == nil { client.receive([]) }
    while !client.outgoing.isEmpty || !server.outgoing.isEmpty {
        for (from, to) in [(client, server), (server, client)] {
            let bytes = from.takeOutgoing()
            var offset = 0
            while offset < bytes.count {
                let end = min(bytes.count, offset &+ min(pieces, bytes.count))
                if to.error == nil && !to.isClosed { to.receive(Array(bytes[offset..<end])) }
                offset = end
            }
        }
    }
}

/// One authority and one server certificate for all tests: making keys takes time.
enum World {
    static let authority = try! CertificateAuthority(commonName: "Test Authority")
    static let server = try! authority.server(
        hosts: ["push.test", "*.wild.test"], addresses: ["127.0.0.1", "::1"])
    static let host = ServerName.host("push.test")

    static func clientConfiguration() -> ClientConfiguration {
        var configuration = ClientConfiguration()
        configuration.trustsSystemRoots = false
        configuration.additionalAuthorities = authority.certificate.pem
        return configuration
    }

    static func serverContext(
        _ change: (inout ServerConfiguration) -> Void = { _ in }
    ) throws -> TLSContext {
        var configuration = ServerConfiguration(identity: server)
        change(&configuration)
        return try TLSContext(server: configuration)
    }

    static func clientContext(
        _ change: (inout ClientConfiguration) -> Void = { _ in }
    ) throws -> TLSContext {
        var configuration = clientConfiguration()
        change(&configuration)
        return try TLSContext(client: configuration)
    }

    static func pair(
        name: ServerName = host, client: (inout ClientConfiguration) -> Void = { _ in },
        server: (inout ServerConfiguration) -> Void = { _ in }
    ) throws -> (client: Endpoint, server: Endpoint) {
        (
            try Endpoint(clientContext(client), name),
            try Endpoint(serverContext(server))
        )
    }
}
