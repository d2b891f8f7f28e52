@testable import BroadsideTLS
import Testing

/// Sessions that resume earlier ones.
@Suite struct SessionTicketTests {
    /// A session of each context that was pumped until nothing moved, with data both ways.
    private func meet(
        _ client: TLSContext, _ server: TLSContext, name: ServerName = World.host
    ) throws -> (client: Endpoint, server: Endpoint) {
        let pair = (client: try Endpoint(client, name), server: try Endpoint(server))
        pump(pair.client, pair.server)
        if pair.client.error == nil, pair.server.error == nil {
            pair.server.send([4, 5, 6])
            pair.client.send([1, 2, 3])
            pump(pair.client, pair.server)
        }
        return pair
    }

    private func clientContext(
        _ change: (inout ClientConfiguration) -> Void = { _ in }
    ) throws -> TLSContext {
        try World.clientContext {
            $0.resumesSessions = true
            change(&$0)
        }
    }

    private func serverContext(
        _ change: (inout ServerConfiguration) -> Void = { _ in }
    ) throws -> TLSContext {
        try World.serverContext {
            $0.issuesTickets = true
            change(&$0)
        }
    }

    @Test func `Sessions after the first are resumed, with the same peer certificate`() throws {
        let (client, server) = (try clientContext(), try serverContext())
        let first = try meet(client, server)
        #expect(!first.client.isResumed)
        for _ in 0..<3 {
            let next = try meet(client, server)
            #expect(next.client.isResumed && next.server.isResumed)
            #expect(next.client.plaintext == [4, 5, 6] && next.server.plaintext == [1, 2, 3])
            #expect(next.client.applicationProtocol == "h2")
            #expect(next.client.peerCertificate?.pem == first.client.peerCertificate?.pem)
        }
    }

    /// What follows from a verification rests on it for ten minutes, however often it is resumed.
    @Test func `A ticket is used for ten minutes after its certificate was verified`() throws {
        let (client, server) = (try clientContext(), try serverContext())
        let before = ContinuousClock.now
        _ = try meet(client, server)
        let tickets = try #require(client.tickets)
        let verified = try #require(tickets.verified)
        #expect(verified >= before)
        #expect(try meet(client, server).client.isResumed)
        #expect(tickets.verified == verified)
        #expect(tickets.ticket(for: World.host, at: verified + .seconds(599)) != nil)
        #expect(tickets.ticket(for: World.host, at: verified + .seconds(600)) == nil)
    }

    /// A ticket that comes late on a connection rests on the certificate that was verified at its beginning.
    @Test
    func `A ticket that comes late counts from the verification at the connection's beginning`()
        throws
    {
        let context = try clientContext()
        let (client, server) = (
            try Endpoint(context, World.host), try Endpoint(try serverContext())
        )
        func pass(_ from: Endpoint, _ to: Endpoint) {
            let bytes = from.outgoing
            from.outgoing = []
            to.receive(bytes)
        }
        client.receive([])
        pass(client, server)
        pass(server, client)
        try #require(client.isEstablished && context.tickets?.verified == nil)
        pass(client, server)
        let late = ContinuousClock.now
        pass(server, client)
        #expect(try #require(context.tickets?.verified) < late)
    }

    @Test(arguments: [(false, true), (true, false)])
    func `A session is resumed only if client and server both want it`(
        client wanted: Bool, server issues: Bool
    ) throws {
        let client = try World.clientContext { $0.resumesSessions = wanted }
        let server = try World.serverContext { $0.issuesTickets = issues }
        _ = try meet(client, server)
        let next = try meet(client, server)
        #expect(next.client.error == nil && !next.client.isResumed)
    }

    @Test func `A session under another name is not resumed`() throws {
        let (client, server) = (try clientContext(), try serverContext())
        _ = try meet(client, server)
        let other = try meet(client, server, name: .address("127.0.0.1"))
        #expect(other.client.error == nil && !other.client.isResumed)
        let wrong = try meet(client, server, name: .host("other.test"))
        #expect(wrong.client.error?.code == .hostNameMismatch)
    }

    @Test func `TLS 1.2 sessions make a full handshake`() throws {
        let client = try clientContext { $0.versions = (.tls12, .tls12) }
        let server = try serverContext()
        _ = try meet(client, server)
        let next = try meet(client, server)
        #expect(next.client.versionName == "TLSv1.2")
        #expect(next.client.error == nil && !next.client.isResumed)
    }

    @Test func `A server that does not know the ticket makes a full handshake`() throws {
        let client = try clientContext()
        _ = try meet(client, try serverContext())
        let next = try meet(client, try serverContext())
        #expect(next.client.error == nil && !next.client.isResumed)
        #expect(next.client.plaintext == [4, 5, 6])
    }

    @Test func `A resumed session has the client certificate of the first`() throws {
        let identity = try World.authority.client(subject: [("CN", "Sender")])
        let client = try clientContext { $0.identity = identity }
        let server = try serverContext {
            $0.clientCertificates = .required(authorities: World.authority.certificate.pem)
        }
        _ = try meet(client, server)
        let next = try meet(client, server)
        #expect(next.server.isResumed)
        #expect(next.server.peerCertificate?.subject == "CN=Sender")
    }

    /// A failure with a ticket says nothing that lasts, and is the only one.
    @Test func `After a ticket was refused the next handshakes are full`() throws {
        let (client, server) = (try clientContext(), try serverContext())
        _ = try meet(client, server)
        let refused = try Endpoint(client, World.host)
        refused.receive([])
        // Alert handshake_failure, and what else could be of a certificate's kind.
        refused.receive([21, 3, 3, 0, 2, 2, 42])
        #expect(refused.error?.code == .handshakeFailed)
        let next = try meet(client, server)
        #expect(next.client.error == nil && !next.client.isResumed)
        let after = try meet(client, server)
        #expect(after.client.error == nil && !after.client.isResumed)
    }

    /// The same alert to who offered none says what it says.
    @Test func `An alert without a ticket keeps its meaning`() throws {
        let identity = try World.authority.client(subject: [("CN", "Sender")])
        let client = try Endpoint(try clientContext { $0.identity = identity }, World.host)
        client.receive([])
        client.receive([21, 3, 3, 0, 2, 2, 42])
        #expect(client.error?.code == .clientCertificateRefused)
    }

    /// How a session with a ticket ends does not matter, if the server has said nothing in it.
    @Test(arguments: [false, true])
    func `A resumed session that ends before the server sent anything counts as refused`(
        afterHandshake: Bool
    ) throws {
        let (client, server) = (try clientContext(), try serverContext())
        _ = try meet(client, server)
        do {
            let (ended, peer) = (try Endpoint(client, World.host), try Endpoint(server))
            ended.receive([])
            if afterHandshake {
                pump(ended, peer)
                #expect(ended.isResumed && ended.error == nil)
            }
        }
        let next = try meet(client, server)
        #expect(next.client.error == nil && !next.client.isResumed)
        #expect(client.tickets?.ticket(for: World.host) == nil)
    }

    /// A connection that ends while it resumes counts as refused, too.
    @Test func `A connection that ends while it resumes counts as refused`() throws {
        let (client, server) = (try clientContext(), try serverContext())
        _ = try meet(client, server)
        let ended = try Endpoint(client, World.host)
        ended.receive([])
        #expect(ended.receiveEnd()?.code == .handshakeFailed)
        #expect(try !meet(client, server).client.isResumed)
    }
}
