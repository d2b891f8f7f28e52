@testable import BroadsideTLS
import Testing

@Suite("Sessions, client against server") struct TLSSessionTests {
    @Test(arguments: [TLSVersion.tls12, .tls13], [1, 7, Int.max])
    func `Handshake and data work in pieces of any size`(version: TLSVersion, pieces: Int) throws {
        let (client, server) = try World.pair(client: { $0.versions = (version, version) })
        pump(client, server, pieces: pieces)
        #expect(client.error == nil && server.error == nil)
        #expect(client.isEstablished && server.isEstablished)
        #expect(client.applicationProtocol == "h2")
        #expect(server.applicationProtocol == "h2")
        #expect(client.versionName == (version == .tls12 ? "TLSv1.2" : "TLSv1.3"))
        #expect(server.versionName == client.versionName)
        #expect(client.peerCertificate?.subject == "CN=push.test")
        #expect(server.peerCertificate == nil)

        client.send(Array("request".utf8))
        server.send(Array("answer".utf8))
        pump(client, server, pieces: pieces)
        #expect(server.plaintext == Array("request".utf8))
        #expect(client.plaintext == Array("answer".utf8))
    }

    @Test(arguments: [TLSVersion.tls12, .tls13])
    func `Records of all sizes arrive in order, with at most 64 bytes more for each`(
        version: TLSVersion
    ) throws {
        let (client, server) = try World.pair(client: { $0.versions = (version, version) })
        pump(client, server)
        var all: [UInt8] = []
        for count in [1, 16_383, 16_384, 16_385, 3 * 16_384, 100_000] {
            let bytes = randomBytes(count)
            all += bytes
            client.send(bytes)
            // One record header and at most 64 bytes more for each 16 KiB.
            let records = (count + 16_383) / 16_384
            #expect(client.outgoing.count <= count + records * 64)
            #expect(client.outgoing.count > count)
            pump(client, server, pieces: 5000)
        }
        for _ in 0..<500 {
            client.send([1, 2, 3])
            all += [1, 2, 3]
        }
        pump(client, server)
        #expect(server.plaintext == all)
    }

    /// A full record is one record: header 5, content type 1, tag 16 (RFC 8446 section 5.2).
    @Test func `16 KiB of plaintext are one record`() throws {
        let (client, server) = try World.pair()
        pump(client, server)
        client.send(randomBytes(TLSSession.recordLimit))
        #expect(client.outgoing.count == TLSSession.recordLimit + 22)
        #expect(client.outgoing[0] == 23)
    }

    @Test(arguments: [1, 100, 16_384])
    func `Little room for plaintext loses nothing`(room: Int) throws {
        let (client, server) = try World.pair()
        pump(client, server)
        server.plaintextRoom = room
        let bytes = randomBytes(20_000)
        client.send(bytes)
        client.send(Array(bytes.prefix(100)))
        pump(client, server)
        #expect(server.plaintext == bytes + bytes.prefix(100))
    }

    @Test func `Without room for plaintext a session reports that it is full and continues later`()
        throws
    {
        let (client, server) = try World.pair()
        pump(client, server)
        var offset = 0
        var plaintext = OutputRawSpan()
        var ciphertext = OutputRawSpan()
        let nothing = server.session.receive(
            RawSpan(), at: &offset, plaintext: &plaintext, ciphertext: &ciphertext)
        #expect(nothing == .more)
        client.send([1])
        let sealed = client.takeOutgoing()
        let full = server.session.receive(
            sealed.span.bytes, at: &offset, plaintext: &plaintext, ciphertext: &ciphertext)
        #expect(full == .plaintextFull)
        server.receive(Array(sealed[offset...]))
        #expect(server.plaintext == [1])
    }

    @Test(arguments: [TLSVersion.tls12, .tls13])
    func `A handshake with room for 10 bytes succeeds in more calls`(version: TLSVersion) throws {
        let (client, server) = try World.pair(client: { $0.versions = (version, version) })
        client.ciphertextRoom = 10
        server.ciphertextRoom = 10
        pump(client, server)
        #expect(client.isEstablished && server.isEstablished)
    }

    @Test(arguments: [TLSVersion.tls12, .tls13])
    func `close_notify ends each direction after its last data`(version: TLSVersion) throws {
        let (client, server) = try World.pair(client: { $0.versions = (version, version) })
        pump(client, server)
        server.send([7])
        server.close()
        pump(client, server)
        #expect(client.plaintext == [7] && client.isClosed)
        #expect(client.receiveEnd() == nil)
        client.send([8])
        client.close()
        pump(client, server)
        #expect(server.isClosed && server.plaintext == [8])
        #expect(server.receiveEnd() == nil)
    }

    @Test func `An end without close_notify is an error`() throws {
        let (client, server) = try World.pair()
        pump(client, server)
        let error = client.receiveEnd()
        #expect(error?.code == .closed)
        #expect(error?.message.contains("close_notify") == true)
    }

    @Test func `Closing before the handshake sends nothing`() throws {
        let (client, _) = try World.pair()
        client.receive([])
        _ = client.takeOutgoing()
        client.close()
        #expect(client.outgoing.isEmpty)
    }

    @Test func `A changed record fails the session for good`() throws {
        let (client, server) = try World.pair()
        pump(client, server)
        client.send(Array("unchanged".utf8))
        var bytes = client.takeOutgoing()
        bytes[bytes.count - 1] ^= 1
        server.receive(bytes)
        #expect(server.error?.code == .protocolViolation)
        #expect(server.plaintext.isEmpty && !server.outgoing.isEmpty)
        server.error = nil
        server.receive([])
        #expect(server.error?.code == .protocolViolation)
        server.append(TLSSession.sealedCount(1)) { session, span in
            let bytes: [UInt8] = [1]
            #expect(!session.seal(bytes.span.bytes, ciphertext: &span))
        }
        client.receive(server.takeOutgoing())
        #expect(client.error?.code == .protocolViolation)
        #expect(client.error?.message.contains("ended the TLS session") == true)
    }

    @Test func `A wildcard in a certificate stands for one label`() throws {
        let (client, server) = try World.pair(name: .host("a.wild.test"))
        pump(client, server)
        #expect(client.isEstablished)
        let (other, otherServer) = try World.pair(name: .host("a.b.wild.test"))
        pump(other, otherServer)
        #expect(other.error?.code == .hostNameMismatch)
    }

    /// RFC 6066 section 3: SNI carries host names, never addresses.
    @Test(arguments: ["127.0.0.1", "::1"])
    func `An IP address is verified and not sent as SNI`(address: String) throws {
        let (client, server) = try World.pair(name: .address(address))
        client.receive([])
        let hello = client.outgoing
        #expect(!contains(hello, Array(address.utf8)))
        pump(client, server)
        #expect(client.isEstablished)

        let (named, _) = try World.pair()
        named.receive([])
        #expect(contains(named.outgoing, Array("push.test".utf8)))
    }

    private func contains(_ bytes: [UInt8], _ part: [UInt8]) -> Bool {
        bytes.indices.contains { bytes[$0...].starts(with: part) }
    }

    @Test func `A client certificate reaches the server with its extensions`() throws {
        let topics: [UInt8] = [0x30, 0x05, 0x0c, 0x03, 0x61, 0x2e, 0x62]
        let identity = try World.authority.client(
            subject: [
                ("UID", "com.example.MyApp"), ("CN", "Apple Push Services: com.example.MyApp"),
            ],
            extensions: [
                ("1.2.840.113635.100.6.3.6", topics), ("1.2.840.113635.100.6.3.1", [5, 0]),
            ])
        for authorities in [nil, World.authority.certificate.pem] {
            let (client, server) = try World.pair(
                client: { $0.identity = identity },
                server: { $0.clientCertificates = .required(authorities: authorities) })
            pump(client, server)
            #expect(server.error == nil)
            let certificate = try #require(server.peerCertificate)
            #expect(certificate.extensionValue("1.2.840.113635.100.6.3.6") == topics)
            #expect(certificate.extensionValue("1.2.840.113635.100.6.3.1") == [5, 0])
            #expect(certificate.extensionValue("1.2.840.113635.100.6.3.2") == nil)
            #expect(
                certificate.subjectAttribute("0.9.2342.19200300.100.1.1") == "com.example.MyApp")
        }
    }

    /// APNs asks token clients too; they answer with no certificate and go on.
    @Test(arguments: [TLSVersion.tls12, .tls13])
    func `A certificate that is requested and not given does not fail the handshake`(
        version: TLSVersion
    ) throws {
        let (client, server) = try World.pair(
            client: { $0.versions = (version, version) },
            server: { $0.clientCertificates = .requested(authorities: nil) })
        pump(client, server)
        #expect(client.isEstablished && server.isEstablished)
        #expect(server.peerCertificate == nil)
    }

    @Test func `Our server accepts a client without ALPN`() throws {
        let (client, server) = try World.pair(client: { $0.applicationProtocols = [] })
        pump(client, server)
        #expect(client.isEstablished && server.applicationProtocol == nil)
    }
}
