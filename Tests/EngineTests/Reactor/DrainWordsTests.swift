import BroadsideHygiene
import BroadsideRows
import Testing

@testable import BroadsideEngine

/// What is told of a connection that carries no more requests because of an answer.
@Suite(.timeLimit(.minutes(60)))
struct DrainWordsTests {
    struct Case: Sendable {
        var status: Int
        var reason: String?
        var words: String
    }

    private func drained(_ run: ScriptedRun) -> [RunEvent] {
        run.events.filter { $0.kind == .connectionDrained }
    }

    @Test(arguments: [
        Case(status: 503, reason: "ServiceUnavailable", words: "503 ServiceUnavailable"),
        Case(status: 500, reason: "InternalServerError", words: "500 InternalServerError"),
        Case(status: 503, reason: nil, words: "503 without a known reason"),
        Case(status: 503, reason: "Feierabend", words: "503 Feierabend"),
        Case(status: 503, reason: "Feier\u{202e}abend", words: "503 Feier\\u{202e}abend"),
        Case(status: 403, reason: "ExpiredProviderToken", words: "403 ExpiredProviderToken"),
    ])
    func `A draining response is logged with status and reason once for each connection`(one: Case)
        throws
    {
        let run = try ScriptedRun(rows: 20, tokenAge: 1800)
        // The first connection answers two, and then so all that is in flight.
        run.reply = { request in
            let isBad = request.connection == 0 && run.requests.count > 2
            return isBad ? .status(one.status, one.reason) : .status(200)
        }
        run.run()
        let told = drained(run)
        try #require(told.count == 1)
        #expect(run.requests.count { $0.connection == 0 } > 4)
        #expect(
            told[0].message == "10.0.0.1:443: drained after 3 responses because of \(one.words)")
        #expect(told[0].connection == 1 && told[0].level == .notice)
        // What it carried is nobody's business.
        for request in run.requests {
            #expect(!told[0].message.contains(request.token.suffix(8)))
            #expect(!told[0].message.contains(try #require(request.authorization)))
        }
        // Before it is closed, and no other one is.
        let order = run.events.filter { $0.connection == 1 }.map(\.kind)
        #expect(order.prefix(2) == [.connectionOpen, .connectionDrained])
    }

    @Test func `A response that keeps its connection is not logged`() throws {
        let run = try ScriptedRun(rows: 20)
        run.reply = { request in
            ScriptedRun.row(request) % 3 == 0
                ? .status(410, "Unregistered")
                : run.requests(row: ScriptedRun.row(request)).count == 1
                    ? .status(429, "TooManyRequests") : .status(200)
        }
        run.run()
        #expect(run.links.count == 1 && drained(run).isEmpty)
    }

    @Test func `A response on a draining connection is not logged`() throws {
        let run = try ScriptedRun(rows: 3)
        run.maxStreams = 2
        run.reply = { $0.connection == 0 ? .silence : .status(200) }
        run.run { run.requests.count == 2 }
        run.say(ScriptedServer.goAway(lastStream: 3, code: 0, reason: nil), on: 0)
        for stream: UInt32 in [1, 3] {
            run.say(
                ScriptedServer.answer(
                    stream, status: 503, reason: "ServiceUnavailable", retryAfter: nil), on: 0)
        }
        run.run()
        #expect(drained(run).isEmpty)
        #expect(run.events.contains { $0.kind == .goAway })
        #expect(try run.rows().allSatisfy { $0.state == .accepted })
    }
}
