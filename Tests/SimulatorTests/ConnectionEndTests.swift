import Foundation
import Glibc
import Testing

@testable import BroadsideSimulator

/// How the endpoint ends connections by itself, seen by a client that nobody here wrote.
@Suite(.enabled(if: IndependentClient.isThere, "python3-h2 is not installed"))
struct ConnectionEndTests {
    typealias Client = IndependentClient

    private let folder = Folder()
    private var output: String { folder.file("output") }
    private var done: String { folder.file("done") }

    /// Closes in a shell all that it has inherited.
    static let closeInherited =
        "for f in /proc/self/fd/*; do f=${f##*/}; ((f > 2)) && eval \"exec $f>&-\"; done"

    /// Starts a client, and returns when its request is there. The shell starts it in the background, so that no thread of
    /// ours waits for it. What it inherits is closed, or Foundation would take the shell for running.
    private func start(_ words: [String], with harness: EndpointHarness) throws {
        let command = words.map { "'\($0)'" }.joined(separator: " ")
        _ = try run([
            "bash", "-c",
            "(\(Self.closeInherited); \(command) > '\(output)' 2>&1; touch '\(done)') &",
        ])
        for _ in 0..<3000 where harness.endpoint.requestCount == 0 { usleep(10_000) }
    }

    /// What a client in the background saw, once it has ended.
    private func events() throws -> [Client.Event] {
        for _ in 0..<3000 where access(done, F_OK) != 0 { usleep(10_000) }
        let text = String(decoding: try Data(contentsOf: URL(filePath: output)), as: UTF8.self)
        return try Client.events(of: CommandResult(status: 0, output: text, errors: text))
    }

    /// Idle for too long: GOAWAY with Apple's reason as JSON, as plain text, or without.
    @Test(arguments: [
        ("json", "{\"reason\":\"IdleTimeout\"}"), ("text", "IdleTimeout"), ("none", ""),
    ])
    func `An idle connection ends with GOAWAY IdleTimeout in the form of the scenario`(
        _ form: String, debug: String
    ) throws {
        let file = try folder.write(
            "idle.json5", "{ idle_timeout: '200ms', goaway: '\(form)' }")
        let harness = try EndpointHarness()
        let fields = Client.fields(harness, bearer: try harness.providerToken())
        let words = try Client.words(harness, [.request(fields, body: "{}"), .read(seconds: 10)])
        try start(words, with: harness)
        // Before its request the connection would be idle for as long as the client is busy.
        #expect(harness.endpoint.control("scenario \(file)").contains("\"ok\":true"))
        let events = try events()
        #expect(events.contains { $0.status == 200 })
        let goAway = try #require(events.first { $0.kind == "goaway" }, "\(events)")
        #expect(goAway.code == 0 && goAway.stream == 1 && goAway.debug == debug)
        #expect(events.last?.kind == "end")
    }

    /// A stop says Shutdown and still gives the answers that wait.
    @Test func `PINGs are answered in order with their own bytes`() throws {
        let harness = try EndpointHarness()
        let fields = Client.fields(harness, bearer: try harness.providerToken())
        let events = try Client.converse(
            harness,
            [.ping("eight of"), .request(fields, body: "{}"), .ping("8 bytes."), .ping("87654321")])
        #expect(
            events.filter { $0.kind == "ping" }.compactMap(\.body) == [
                "eight of", "8 bytes.", "87654321",
            ])
        #expect(events.contains { $0.status == 200 })
    }

    @Test(arguments: ["json", "text"])
    func `A stop sends GOAWAY Shutdown and the pending responses`(_ form: String) throws {
        let file = try folder.write(
            "end.json5", "{ goaway: '\(form)', latency: '700ms' }")
        let harness = try EndpointHarness { $0.scenario = file }
        let fields = Client.fields(harness, bearer: try harness.providerToken())
        let words = try Client.words(
            harness, [.flood(count: 1, fields, body: "{}"), .read(seconds: 10)])
        try start(words, with: harness)
        let totals = harness.stop()
        #expect(totals.accepted == 1)
        let events = try events()
        let goAway = try #require(events.first { $0.kind == "goaway" }, "\(events)")
        #expect(goAway.code == 0 && goAway.stream == 1)
        #expect(events.contains { $0.status == 200 })
        #expect(goAway.debug == (form == "json" ? "{\"reason\":\"Shutdown\"}" : "Shutdown"))
        #expect(events.last?.kind == "end")
    }

    /// Who connects and says nothing is not waited for.
    @Test func `A connection without a handshake is closed after handshake_timeout`() throws {
        let file = try folder.write("slow.json5", "{ handshake_timeout: '200ms' }")
        let harness = try EndpointHarness { $0.scenario = file }
        let program = try folder.write(
            "mute.py",
            """
            import socket, sys
            s = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=20)
            print("ended" if s.recv(10) == b"" else "data")
            """)
        let result = try run(["/usr/bin/python3", program, "\(harness.endpoint.port)"])
        #expect(result.output == "ended\n", "\(result.errors)")
        #expect(harness.stop().handshakesFailed == 1)
    }

    /// Two steps (RFC 9113 section 6.8): the highest number, then the true one; none is refused.
    @Test func `A GOAWAY with notice announces the highest ID first, then the last one it took`()
        throws
    {
        let file = try folder.write(
            "steps.json5",
            "{ faults: [{ do: 'goaway', at: 1, reason: 'Shutdown', notice: '300ms' }] }")
        let harness = try EndpointHarness { $0.scenario = file }
        let fields = Client.fields(harness, bearer: nil)
        // Both requests come at once, and so the second one before the second step. A certificate permits that.
        let events = try Client.converse(
            harness, certificate: "client",
            [.flood(count: 2, fields, body: "{}"), .read(seconds: 10)])
        let goAways = events.filter { $0.kind == "goaway" }
        #expect(goAways.map(\.stream) == [0x7fff_ffff, 3], "\(events)")
        #expect(goAways.allSatisfy { $0.code == 0 && $0.debug == "{\"reason\":\"Shutdown\"}" })
        #expect(events.filter { $0.status == 200 }.count == 2)
        #expect(events.last?.kind == "end")
    }
}
