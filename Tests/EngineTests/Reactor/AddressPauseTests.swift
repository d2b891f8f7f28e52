import BroadsideHygiene
import BroadsidePolicy
import BroadsideRows
import BroadsideSupport
import Testing

@testable import BroadsideEngine

/// How long an address is left alone whose server is in trouble, and how it is taken up again.
@Suite(.timeLimit(.minutes(60)))
struct AddressPauseTests {
    /// Turns come at most this late.
    private static let slack = second / 10

    /// From each answer to the next attempt at a connection.
    private func pauses(_ run: ScriptedRun) -> [UInt64] {
        zip(run.requests, run.links.dropFirst()).map { $1.begun - $0.time }
    }

    @Test
    func `A paused address waits from one second to sixty, doubling, less a quarter's jitter`()
        throws
    {
        let run = try ScriptedRun(rows: 20)
        run.maxStreams = 1
        run.reply = { _ in .status(503, "ServiceUnavailable") }
        run.run { run.links.count == 11 }
        let pauses = pauses(run)
        #expect(pauses.count == 10)
        for (doubling, pause) in pauses.enumerated() {
            let whole = min(second << UInt64(doubling), 60 * second)
            #expect(pause > whole / 4 * 3 - 1 && pause <= whole + Self.slack, "\(pauses)")
        }
        #expect(Set(pauses.map { $0 % second }).count > 4)
    }

    @Test(arguments: ["3", "Fri, 15 Jan 2027 08:00:18 GMT", "90", "Fri, 15 Jan 2027 08:01:45 GMT"])
    func `Retry-After in seconds or as a date replaces the doubled pause`(
        retryAfter: String
    ) throws {
        // It is 08:00:00 at the start, and the fifth answer comes when four pauses are over.
        let run = try ScriptedRun(rows: 1) { $0.giveUpAfter = 3600 * second }
        var asked: UInt64 = 0
        run.reply = { request in
            guard request.connection == 4 else { return .status(503) }
            if let delay = UInt64(retryAfter) {
                asked = delay * second
            } else {
                let wall: UInt64 = retryAfter.contains(":18") ? 18 : 105
                asked = wall * second - request.time / second * second
            }
            return .status(503, retryAfter: retryAfter)
        }
        run.run { run.links.count == 6 }
        let pause = try #require(pauses(run).last)
        #expect(asked > 0 && asked < 100 * second)
        #expect(pause >= max(asked, second) && pause <= max(asked, second) * 5 / 4 + Self.slack)
    }

    @Test(arguments: ["40", "Fri, 15 Jan 2027 08:00:40 GMT"])
    func `Retry-After of a 429 holds for its row alone`(retryAfter: String) throws {
        let run = try ScriptedRun(rows: 5)
        run.reply = { _ in
            run.requests.count == 1
                ? .status(429, "TooManyRequests", retryAfter: retryAfter) : .status(200)
        }
        run.run()
        let again = run.requests(row: 0)
        #expect(again.count == 2 && again[1].time >= 40 * second)
        #expect(again[1].time <= 40 * second + Self.slack)
        #expect(run.requests(row: 4)[0].time < second && run.links.count == 1)
    }

    @Test func `One connection tries a paused address, and the others follow its response`() throws
    {
        let run = try ScriptedRun(rows: 40, connections: 4) {
            $0.requestTimeout = 3600 * second
            $0.giveUpAfter = 3600 * second
        }
        run.maxStreams = 2
        run.reply = { request in
            switch request.connection {
            case ..<4: .status(503)
            case 4: .silence
            default: .status(200)
            }
        }
        run.run(for: 300 * second) { run.links.count > 5 }
        #expect(run.links.count == 5, "there is one probe, however long its answer takes")
        let probe = try #require(run.requests.first { $0.connection == 4 })
        run.say(
            ScriptedServer.answer(probe.stream, status: 410, reason: nil, retryAfter: nil), on: 4)
        let answered = run.time
        run.run { run.links.count == 8 }
        #expect(run.links.count == 8 && run.links[7].begun - answered < Self.slack)
    }

    @Test(arguments: [200, 410, 400, 429])
    func `Any other response resets the doubling of the pause`(status: Int) throws {
        let run = try ScriptedRun(rows: 30)
        run.maxStreams = 1
        run.reply = { request in
            let isFirst = run.requests.count { $0.connection == request.connection } == 1
            let isNewRow = run.requests(row: ScriptedRun.row(request)).count == 1
            return request.connection < 4 || !isFirst && isNewRow ? .status(503) : .status(status)
        }
        run.run { run.links.count == 6 }
        let told = try #require(run.requests.last { $0.connection == 4 })
        let pause = run.links[5].begun - told.time
        #expect(pause >= second / 4 * 3 && pause <= second + Self.slack)
    }

    @Test func `At the list's end waiting for a response costs no turns`() throws {
        let run = try ScriptedRun(rows: 1, connections: 2) { $0.requestTimeout = 3600 * second }
        run.opening = { $0 == 1 ? .fails(errno: 111) : .open }
        run.reply = { _ in .silence }
        run.run { run.requests.count == 1 }
        let before = run.turns
        run.run(for: 10 * second) { run.turns - before >= 500 }
        #expect(run.links.count == 2 && run.turns - before < 500)
    }

    @Test func `While an address is paused another one is used`() throws {
        let run = try ScriptedRun(rows: 10)
        run.addressCount = 2
        run.maxStreams = 1
        run.reply = { run.links[$0.connection].address == 0 ? .status(503) : .status(200) }
        run.run()
        #expect(run.links.map(\.address) == [0, 1])
        #expect(run.links.allSatisfy { $0.begun == 0 })
        #expect(try run.rows().allSatisfy { $0.state == .accepted })
    }

    @Test func `Failed attempts are spread over all addresses, each with its own pause`()
        throws
    {
        let run = try ScriptedRun(rows: 1)
        run.addressCount = 3
        run.opening = { _ in .fails(errno: 111) }
        run.run(for: 59 * second)
        let counts = (0..<3).map { address in run.links.count { $0.address == address } }
        // After 0, 1, 3 and 7 seconds and then every 8 to 10, or a quarter sooner.
        #expect(counts.allSatisfy { (9...11).contains($0) }, "\(counts)")
    }
}
