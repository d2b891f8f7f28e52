import BroadsideHygiene
import BroadsidePolicy
import BroadsideRows
import BroadsideSupport
import Testing

@testable import BroadsideEngine

/// What servers in trouble cost: refused requests, outages and broken protocols.
@Suite(.timeLimit(.minutes(60)))
struct ServerTroubleTests {
    /// Turns come at most this late.
    private static let slack = second / 10

    // MARK: Silence that is none of a server's

    @Test(arguments: [true, false])
    func `While only a read of the list is awaited no server is given up`(
        isReachable: Bool
    ) throws {
        let run = try ScriptedRun(rows: 20)
        run.holdsReads = true
        if !isReachable { run.opening = { _ in .silent } }
        run.run(for: 300 * second)
        #expect(run.coordinator.stopCause == nil && run.requests.isEmpty)
        // From then on silence counts.
        run.endReads()
        run.run(for: 300 * second)
        if isReachable {
            #expect(try run.rows().allSatisfy { $0.state == .accepted })
        } else {
            guard case .noResponse(60, _) = run.coordinator.stopCause else {
                Issue.record("\(String(describing: run.coordinator.stopCause))")
                return
            }
            #expect(run.time >= 360 * second)
        }
    }

    // MARK: Refused requests

    @Test(arguments: [4, 3000])
    func `Refused requests wait from a millisecond to a second until the run gives up`(
        rows: Int
    ) throws {
        let run = try ScriptedRun(rows: rows)
        run.reply = { _ in .refuse }
        run.run()
        guard case .noResponse(_, let last) = run.coordinator.stopCause else {
            Issue.record("\(String(describing: run.coordinator.stopCause))")
            return
        }
        #expect(last?.problem == "the server refuses requests with RST_STREAM")
        // What goes out together is refused together: a round.
        let rounds = run.requests.map(\.time).reduce(into: [UInt64]()) { rounds, time in
            if rounds.last != time { rounds.append(time) }
        }
        let gaps = zip(rounds, rounds.dropFirst()).map { $1 - $0 }
        for (doubling, gap) in gaps.enumerated() {
            let pause = min(millisecond << UInt64(min(doubling, 10)), second)
            #expect(gap >= pause && gap <= pause + Self.slack, "\(doubling): \(gap)")
        }
        #expect(rounds.count < 75 && run.requests.count <= rounds.count * min(rows, 50))
        #expect(try run.rows().allSatisfy { $0.state == .remaining && $0.attempts == 0 })
    }

    @Test func `Any response on the connection ends its pause`() throws {
        let run = try ScriptedRun(rows: 60)
        run.maxStreams = 1
        // Every tenth request gets a response, in turn of each kind.
        run.reply = { _ in
            guard run.requests.count % 10 == 0 else { return .refuse }
            return .status([200, 410, 400][run.requests.count / 10 % 3])
        }
        run.run { run.requests.count == 100 }
        let times = run.requests.map(\.time)
        for answered in stride(from: 9, to: 90, by: 10) {
            let pause = times[answered + 2] - times[answered + 1]
            #expect(pause >= millisecond && pause < 2 * millisecond, "\(pause)")
            #expect(times[answered + 9] - times[answered + 8] >= 128 * millisecond)
        }
    }

    @Test func `Rows above a GOAWAY's last stream ID wait over several connections`()
        throws
    {
        let run = try ScriptedRun(rows: 500)
        // Each connection accepts its first request and disowns the others.
        run.reply = { request in
            guard request.stream > 1 else { return .status(200) }
            if request.stream == 3 {
                run.say(
                    ScriptedServer.goAway(lastStream: 1, code: 0, reason: "Shutdown"),
                    on: request.connection)
            }
            return .silence
        }
        run.run(for: 20 * second)
        // Ten connections a second at most, and each has a response: one row gets on each time.
        #expect(run.links.count <= 210 && run.requests.count < 210 * 500)
        let rows = run.requests.map(ScriptedRun.row)
        for (index, request) in run.requests.enumerated() where index > 0 {
            let before = run.requests[..<index].last { ScriptedRun.row($0) == rows[index] }
            if let before { #expect(request.time - before.time >= millisecond) }
            if index > 2000 { break }
        }
    }

    @Test func `A server that refuses and closes again and again is tried ever more rarely`()
        throws
    {
        let run = try ScriptedRun(rows: 500) { $0.giveUpAfter = 120 * second }
        run.reply = { request in
            if request.stream == 1 {
                run.say(
                    ScriptedServer.goAway(lastStream: 0, code: 0, reason: nil),
                    on: request.connection)
            }
            return .silence
        }
        run.run()
        #expect(run.links.count < 10, "\(run.links.count)")
        let after = run.requests.filter { $0.connection > 0 }
        #expect(after.allSatisfy { $0.stream == 1 }, "one request on trial")
    }

    @Test func `A replacing connection inherits the pause of the one before`() throws {
        let run = try ScriptedRun(rows: 60)
        run.maxStreams = 1
        var refused: UInt64 = 0
        run.reply = { request in
            // One response, so that the goodbye is in order and the successor comes at once.
            guard request.connection == 0, request.stream > 1 else { return .status(200) }
            refused = request.time
            if run.requests.count == 10 {
                run.say(
                    ScriptedServer.goAway(lastStream: request.stream, code: 0, reason: nil),
                    on: request.connection)
            }
            return .refuse
        }
        run.run()
        #expect(try run.rows().allSatisfy { $0.state == .accepted })
        let successor = try #require(run.links.dropFirst().first)
        #expect(successor.begun < refused + second / 10, "at once")
        let first = try #require(run.requests.first { $0.connection == 1 })
        #expect(first.time - refused >= 128 * millisecond, "\(first.time - refused)")
    }

    // MARK: Wrong connections

    @Test(arguments: [408, 421])
    func `A connection that responds 408 or 421 to all is replaced at once, and rows are accepted`(
        status: Int
    ) throws {
        let run = try ScriptedRun(rows: 200)
        run.reply = { $0.connection == 0 ? .status(status) : .status(200) }
        run.run()
        #expect(try run.rows().allSatisfy { $0.state == .accepted })
        #expect(run.links.count == 2)
        let told = try #require(run.requests.first?.time)
        let successor = try #require(run.links.dropFirst().first)
        #expect(successor.begun < told + Self.slack)
    }

    @Test func `After 421 on eight connections in a row the next connection stays`() throws {
        let run = try ScriptedRun(rows: 100) {
            $0.retryPolicy = RetryPolicy(maximumAttempts: 3, retryForNanoseconds: 0)
        }
        run.maxStreams = 1
        run.reply = { _ in .status(421) }
        run.run(for: 900 * second)
        #expect(run.links.count == 9)
        #expect(try run.rows().allSatisfy { $0.state == .failed && $0.status == 421 })
    }

    // MARK: Outages

    @Test(arguments: [1, 4])
    func `A refused trial of an address leaves the next one to another connection`(
        reactors: Int
    ) throws {
        let run = try ScriptedRun(
            rows: 6000, reactors: reactors, connections: 4, abortAfter: 6000)
        var outage: UInt64 = .max
        var refusing: Int?
        run.reply = { request in
            if run.requests.count == 300 { outage = run.time }
            guard request.time >= outage else { return .status(200) }
            if request.time < outage + second / 2 { return .status(503, "ServiceUnavailable") }
            if refusing == nil { refusing = request.connection }
            return request.connection == refusing ? .refuse : .status(200)
        }
        run.run()
        #expect(try run.rows().allSatisfy { $0.state == .accepted })
        let others = try #require(
            run.requests.first { $0.time > outage + second / 2 && $0.connection != refusing })
        let first = try #require(run.requests.first { $0.connection == refusing })
        #expect(others.time - first.time < Self.slack, "\(others.time - first.time)")
    }

    @Test(arguments: [1, 3], [nil, 60 as UInt64])
    func `After a pause one request tries the address, and then the others follow`(
        reactors: Int, tokenAge: UInt64?
    ) throws {
        let run = try ScriptedRun(
            rows: 6000, reactors: reactors, connections: 4, tokenAge: tokenAge, abortAfter: 6000)
        var outage: UInt64 = .max
        let end = 40 * second
        var asked: ScriptedServer.Request?
        run.reply = { request in
            if run.requests.count == 300 { outage = run.time }
            guard request.time >= outage else { return .status(200) }
            if request.time < end { return .status(503, "ServiceUnavailable") }
            guard asked == nil else { return .status(200) }
            asked = request
            return .silence
        }
        run.run { asked != nil }
        let trial = try #require(asked)
        let count = run.requests.count
        run.run(for: 5 * second)
        #expect(run.requests.count == count, "nothing follows before the response")
        run.say(
            ScriptedServer.answer(trial.stream, status: 410, reason: nil, retryAfter: nil),
            on: trial.connection)
        run.run()
        #expect(try run.rows().count { $0.state == .accepted } == 5999)
        let times = run.requests.map(\.time)
        let tries = times.filter { $0 > outage + second / 2 && $0 < end }
        // After 1, 3, 7, 15 and 31 seconds, or a quarter sooner.
        #expect((4...6).contains(tries.count), "\(tries)")
        let pauses = zip([outage] + tries, tries).map { $1 - $0 }
        for (doubling, pause) in pauses.enumerated() {
            #expect(pause > (second << UInt64(doubling)) / 4 * 3 - Self.slack, "\(pauses)")
        }
        let followed = run.requests.filter {
            $0.time >= trial.time + 5 * second && $0.time < trial.time + 7 * second
        }
        #expect(followed.count > 1000, "\(followed.count)")
        #expect(Set(followed.map(\.connection)).count > 1, "the others as well")
    }

    @Test func `A run that gives up on a server names its last 5xx`() throws {
        let run = try ScriptedRun(rows: 6000) { $0.giveUpAfter = 20 * second }
        run.maxStreams = 1
        run.reply = { _ in .status(503, "ServiceUnavailable") }
        run.run()
        guard case .noResponse(20, let last) = run.coordinator.stopCause else {
            Issue.record("\(String(describing: run.coordinator.stopCause))")
            return
        }
        #expect(last?.problem == "the last response is 503 ServiceUnavailable")
    }

    @Test func `A reactor without a row for the trial leaves it to another`() throws {
        let run = try ScriptedRun(rows: 400, reactors: 2, connections: 1)
        // One reactor's rows wait for 40 s, but for one, whose response speaks of an outage after a
        // second. The other's wait for 3 s, with a connection that stands and got no response yet.
        run.reply = { request in
            guard request.time < second / 10 else {
                return request.time < 2 * second ? .status(502) : .status(200)
            }
            if run.links[request.connection].reactor == 0 {
                return .status(429, retryAfter: request.stream == 1 ? "1" : "40")
            }
            if request.stream == 3 {
                run.say(
                    ScriptedServer.goAway(lastStream: 1 << 30, code: 0, reason: nil),
                    on: request.connection)
            }
            return .status(429, retryAfter: "3")
        }
        run.run()
        let rows = try run.rows()
        #expect(rows.count { $0.state == .accepted } == 399)
        #expect(rows.count { $0.state == .unknown && $0.status == 502 } == 1)
        let accepted = run.requests.filter { $0.time > 2 * second }
        let others = accepted.filter { run.links[$0.connection].reactor == 1 }
        #expect(others.count > 50 && others.count < 350, "\(others.count)")
        #expect(others.allSatisfy { $0.time < 4 * second }, "\(others.map { $0.time / second })")
        #expect(accepted.allSatisfy { $0.time < 42 * second })
    }

    // MARK: Broken servers

    private static let violation = ScriptedServer.frame(type: 1, flags: 5, stream: 1, [0xbe])

    @Test func `A protocol violation is a failure of the connection and logged once`() throws {
        let run = try ScriptedRun(rows: 5)
        run.reply = { _ in .silence }
        run.run { !run.requests.isEmpty }
        run.say(Self.violation, on: 0)
        run.run { run.links.count == 2 }
        #expect(run.failures == 1)
        let told = run.events.filter { $0.kind == .connectionLost }
        #expect(told.count == 1)
        let tally = try #require(run.reactors[0].machine.report().connections.first)
        #expect(tally.failures == 1 && tally.lastFailure == told.first?.message)
    }

    @Test(
        arguments: [
            (nil, "one after the other (INTERNAL_ERROR)"),
            ([0x88, 0x88], "the response is malformed: it has more than one :status"),
        ] as [([UInt8]?, String)])
    func `A connection whose requests all end without a response fails with the cause`(
        block: [UInt8]?, words: String
    ) throws {
        let run = try ScriptedRun(rows: 300)
        run.reply = { request in
            guard let block else { return .reset }
            run.say(
                ScriptedServer.frame(type: 1, flags: 5, stream: request.stream, block),
                on: request.connection)
            return .silence
        }
        run.run { run.failures > 0 }
        let told = try #require(run.events.first { $0.kind == .connectionLost })
        #expect(told.message.contains(words), "\(told.message)")
    }

    @Test(arguments: [1, 2])
    func `Each cause of lost requests is logged once per run, over all reactors`(
        reactors: Int
    ) throws {
        let run = try ScriptedRun(rows: 400, reactors: reactors, connections: 2)
        run.reply = { request in
            switch ScriptedRun.row(request) % 10 {
            case 0: return .reset
            case 5:
                run.say(
                    ScriptedServer.frame(type: 1, flags: 5, stream: request.stream, []),
                    on: request.connection)
                return .silence
            case 7: return .status(202)
            case 8: return .status(204)
            default: return .status(200)
            }
        }
        run.run()
        #expect(try run.rows().count { $0.state == .unknown } == 160)
        let told = run.events.filter { $0.kind == .requestsLost }
        #expect(told.count == 3 && told.allSatisfy { $0.level == .warning }, "\(told)")
        #expect(told.contains { $0.message.contains("requests are reset with INTERNAL_ERROR") })
        #expect(told.contains { $0.message.contains("malformed: it has no :status") })
        #expect(
            told.contains {
                $0.message.contains("responses have status 20") && $0.fields.status ?? 0 > 201
            })
    }

    @Test(arguments: [1, 2])
    func `Three connections that break the protocol in a row end the run`(reactors: Int) throws {
        let run = try ScriptedRun(rows: 5000, reactors: reactors, connections: 1)
        run.reply = { request in
            run.say(Self.violation, on: request.connection)
            return .silence
        }
        run.run()
        guard case .brokenServer(let trouble) = run.coordinator.stopCause else {
            Issue.record("\(String(describing: run.coordinator.stopCause))")
            return
        }
        #expect(trouble.message.contains("a header block can't be decoded"))
        let rows = try run.rows()
        // Until the first 200 at most 50 are in flight.
        #expect(rows.count { $0.state == .unknown } <= 150)
        #expect(rows.allSatisfy { $0.state == .unknown || $0.state == .remaining })
        #expect(Set(run.requests.map(\.connection)).count <= 2 + reactors)
    }

    @Test func `An accepted row restarts the count of violations, and ten in a minute end the run`()
        throws
    {
        let run = try ScriptedRun(rows: 5000, connections: 4)
        run.addressCount = 8
        run.maxStreams = 3
        run.reply = { request in
            if request.stream < 9 { return .status(200) }
            run.say(Self.violation, on: request.connection)
            return .silence
        }
        run.run()
        guard case .brokenServer = run.coordinator.stopCause else {
            Issue.record("\(String(describing: run.coordinator.stopCause))")
            return
        }
        let broken = Set(run.requests.filter { $0.stream >= 9 }.map(\.connection))
        #expect((10...12).contains(broken.count), "\(broken.count)")
        #expect(try run.rows().contains { $0.state == .accepted })
    }

    @Test func `A server that breaks each connection after many accepted rows is tolerated`()
        throws
    {
        // One of eight addresses is broken; its pause doubles to a minute.
        let run = try ScriptedRun(rows: 4000, connections: 8) {
            $0.milliRatePerConnection = 1000
        }
        run.addressCount = 8
        run.reply = { request in
            guard run.links[request.connection].address == 3 else {
                return run.acceptTen(request)
            }
            run.say(Self.violation, on: request.connection)
            return .silence
        }
        run.run()
        #expect(run.coordinator.stopCause == nil)
        #expect(try run.rows().count { $0.state == .accepted } > 3900)
        let broken = Set(run.requests.map(\.connection)).count { run.links[$0].address == 3 }
        #expect(broken > 10, "\(broken)")
    }

    @Test(arguments: [(1 as UInt32, true), (9, true), (2, false), (11, false)])
    func `A GOAWAY with a protocol error of ours counts as well`(
        code: UInt32, isBroken: Bool
    ) throws {
        let run = try ScriptedRun(rows: 5000)
        run.reply = { request in
            run.say(
                ScriptedServer.goAway(lastStream: request.stream, code: code, reason: nil),
                on: request.connection)
            run.hangUp(request.connection)
            return .silence
        }
        run.run(for: 30 * second)
        if case .brokenServer = run.coordinator.stopCause {
            #expect(isBroken && run.links.count == 3)
        } else {
            #expect(!isBroken)
        }
    }
}
