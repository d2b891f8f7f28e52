@testable import BroadsideTLS
import Testing

/// Our sessions against the `openssl` command over loopback sockets.
@Suite("Against openssl s_server and s_client", .serialized) struct OpenSSLCommandTests {
    private let folder = Folder()

    /// Starts `openssl s_server -rev`, which answers each line backwards.
    private func server(_ options: [String]) throws -> (command: Command, port: UInt16) {
        let command = try Command(
            [
                "s_server", "-accept", "127.0.0.1:0", "-rev",
                "-cert", try folder.file("server.pem", World.server.certificateChain),
                "-key", try folder.file("server.key", World.server.privateKey),
            ] + options)
        while let line = command.line() {
            if line.hasPrefix("ACCEPT "), let port = line.split(separator: ":").last {
                return (command, try #require(UInt16(port)))
            }
        }
        command.stop()
        throw TLSError(.library, "openssl s_server did not start")
    }

    private func client(
        _ port: UInt16, _ change: (inout ClientConfiguration) -> Void = { _ in }
    ) throws -> (Endpoint, LoopbackSocket) {
        let client = try Endpoint(World.clientContext(change), World.host)
        client.receive([])
        return (client, LoopbackSocket(connectingTo: port))
    }

    @Test func `A certificate's first and last day are those that openssl prints`() throws {
        let pem = World.server.certificateChain
        let (status, output) = try Command.run(
            ["x509", "-noout", "-startdate", "-enddate", "-dateopt", "iso_8601"], input: pem)
        #expect(status == 0)
        let printed = String(decoding: output, as: UTF8.self).split(separator: "\n").map {
            String($0.drop { $0 != "=" }.dropFirst()).replacing(" ", with: "T")
        }
        let certificate = try Certificate.all(pem: pem)[0]
        #expect(printed == [certificate.firstDay, certificate.lastDay])
    }

    @Test(arguments: ["-tls1_2", "-tls1_3"])
    func `Our client and openssl s_server exchange data over TLS 1.2 and 1.3`(version: String)
        throws
    {
        let (command, port) = try server([version, "-alpn", "h2"])
        defer { command.stop() }
        let (client, socket) = try client(port)
        client.run(over: socket) { client.isEstablished }
        #expect(client.error == nil && client.applicationProtocol == "h2")
        #expect(client.versionName == (version == "-tls1_2" ? "TLSv1.2" : "TLSv1.3"))
        let text = String(repeating: "abcdefghij", count: 1500)
        client.send(Array((text + "\n").utf8))
        client.run(over: socket) { client.plaintext.count > text.utf8.count }
        #expect(client.plaintext == Array((String(text.reversed()) + "\n").utf8))
        client.send(Array("CLOSE\n".utf8))
        client.run(over: socket) { false }
        #expect(client.isClosed && client.error == nil)
    }

    @Test(arguments: ["-tls1_2", "-tls1_3"])
    func `openssl s_server without ALPN fails`(version: String) throws {
        let (command, port) = try server([version])
        defer { command.stop() }
        let (client, socket) = try client(port)
        client.run(over: socket) { client.isEstablished }
        #expect(client.error?.code == .noALPN)
    }

    @Test(arguments: ["-tls1_2", "-tls1_3"])
    func `openssl s_server that requires a certificate accepts ours and refuses a client without`(
        version: String
    ) throws {
        let authority = try folder.file("ca.pem", World.authority.certificate.pem)
        let (command, port) = try server([
            version, "-alpn", "h2", "-Verify", "1", "-verify_return_error", "-CAfile", authority,
        ])
        defer { command.stop() }
        let (bare, socket) = try client(port)
        bare.run(over: socket) { false }
        #expect(bare.error?.code == .clientCertificateRequired)

        let identity = try World.authority.client(subject: [("CN", "known")])
        let (known, second) = try client(port) { $0.identity = identity }
        known.run(over: second) { known.isEstablished }
        known.send(Array("ab\n".utf8))
        known.run(over: second) { known.plaintext.count == 3 }
        #expect(known.plaintext == Array("ba\n".utf8))
    }

    /// Tickets that hold the session, and such that name one in the server's memory.
    @Test(arguments: [["-tls1_3"], ["-tls1_3", "-no_ticket"], ["-tls1_3", "-num_tickets", "1"]])
    func `Our client resumes sessions of openssl s_server by stateful and stateless tickets`(
        options: [String]
    ) throws {
        let (command, port) = try server(options + ["-alpn", "h2"])
        defer { command.stop() }
        let context = try World.clientContext { $0.resumesSessions = true }
        for number in 0..<3 {
            let client = try Endpoint(context, World.host)
            client.receive([])
            let socket = LoopbackSocket(connectingTo: port)
            client.run(over: socket) { client.isEstablished }
            client.send(Array("ab\n".utf8))
            client.run(over: socket) { client.plaintext.count == 3 }
            #expect(client.error == nil && client.plaintext == Array("ba\n".utf8))
            #expect(client.isResumed == (number > 0))
            client.send(Array("CLOSE\n".utf8))
            client.run(over: socket) { false }
        }
    }

    @Test func `openssl s_server with TLS 1.1 only fails`() throws {
        let (command, port) = try server(["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"])
        defer { command.stop() }
        let (client, socket) = try client(port)
        client.run(over: socket) { client.isEstablished }
        #expect(client.error?.code == .protocolVersion)
    }

    @Test(arguments: ["-tls1_2", "-tls1_3"])
    func `openssl s_client and our server exchange data over TLS 1.2 and 1.3`(version: String)
        throws
    {
        let listener = LoopbackSocket(listening: ())
        let command = try Command([
            "s_client", "-connect", "127.0.0.1:\(listener.port)", "-servername", "push.test",
            "-verify_hostname", "push.test", "-verify_return_error", "-alpn", "h2", "-quiet",
            "-CAfile", try folder.file("ca.pem", World.authority.certificate.pem), version,
        ])
        defer { command.stop() }
        command.write("hello\n")
        let socket = listener.accept()
        let server = try Endpoint(World.serverContext())
        server.run(over: socket) { server.plaintext.count >= 6 }
        #expect(server.error == nil && server.applicationProtocol == "h2")
        #expect(server.plaintext == Array("hello\n".utf8))
        let answer = String(repeating: "x", count: 40_000)
        server.send(Array((answer + "\n").utf8))
        server.close()
        server.run(over: socket) { true }
        #expect(command.line() == answer)
    }

    @Test func `openssl s_client that offers only HTTP/1.1 fails`() throws {
        let listener = LoopbackSocket(listening: ())
        let command = try Command([
            "s_client", "-connect", "127.0.0.1:\(listener.port)", "-alpn", "http/1.1", "-quiet",
        ])
        defer { command.stop() }
        let socket = listener.accept()
        let server = try Endpoint(World.serverContext())
        server.run(over: socket) { server.isEstablished }
        #expect(server.error?.code == .noALPN)
    }

    /// A client's certificate of theirs reaches our server with what it holds.
    @Test
    func `The certificate of openssl s_client reaches our server with subject and extensions`()
        throws
    {
        let identity = try World.authority.client(subject: [("UID", "com.example.MyApp")])
        let listener = LoopbackSocket(listening: ())
        let command = try Command([
            "s_client", "-connect", "127.0.0.1:\(listener.port)", "-alpn", "h2", "-quiet",
            "-cert", try folder.file("client.pem", identity.certificateChain),
            "-key", try folder.file("client.key", identity.privateKey),
        ])
        defer { command.stop() }
        let socket = listener.accept()
        let server = try Endpoint(
            World.serverContext {
                $0.clientCertificates = .requested(authorities: World.authority.certificate.pem)
            })
        server.run(over: socket) { server.isEstablished }
        #expect(server.error == nil && server.peerCertificate?.subject == "UID=com.example.MyApp")
    }
}
