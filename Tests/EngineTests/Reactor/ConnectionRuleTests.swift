import BroadsideHygiene
import BroadsideLedgerFormat
import BroadsidePolicy
import BroadsideRows
import BroadsideSupport
import Glibc
import Testing

@testable import BroadsideEngine

/// When a connection is replaced, asked whether it lives, given up.
@Suite(.timeLimit(.minutes(60)))
struct ConnectionRuleTests {
    /// Timers that need no precision are looked at every 50 ms.
    private static let slack = second / 5

    /// A run that waits long for answers.
    private func patientRun(
        rows: Int, connections: Int = 1, onLost: LostResponsePolicy = .record
    ) throws -> ScriptedRun {
        let run = try ScriptedRun(rows: rows, connections: connections) {
            $0.requestTimeout = 7200 * second
            $0.giveUpAfter = 7200 * second
            $0.onLost = onLost
        }
        run.reply = { _ in .silence }
        return run
    }

    private func accept(_ stream: UInt32, on link: Int, of run: ScriptedRun) {
        run.say(ScriptedServer.answer(stream, status: 200, reason: nil, retryAfter: nil), on: link)
    }

    // MARK: GOAWAY and ends

    @Test(arguments: [false, true])
    func `GOAWAY after a response replaces the connection at once without counting later rows`(
        isTwoStep: Bool
    ) throws {
        let run = try patientRun(rows: 3)
        run.run { run.requests.count == 3 }
        let before = run.time
        run.reply = { _ in .status(200) }
        accept(1, on: 0, of: run)
        if isTwoStep {
            run.say(
                ScriptedServer.goAway(lastStream: 0x7fff_ffff, code: 0, reason: nil), on: 0)
        }
        run.say(ScriptedServer.goAway(lastStream: 3, code: 0, reason: "Shutdown"), on: 0)
        run.run { run.links.count == 2 && run.requests.count == 4 }
        #expect(run.links[1].begun == before && run.links[0].closed == nil)
        // The answer that it announced is awaited, and closes it.
        run.run(for: 20 * second)
        #expect(run.links[0].closed == nil)
        accept(3, on: 0, of: run)
        run.run()
        #expect(run.links[0].closed != nil && run.requests.count == 4)
        #expect(try run.rows().allSatisfy { $0.state == .accepted && $0.attempts == 1 })
    }

    @Test func `A response above GOAWAY's last stream is a warning, and other responses count`()
        throws
    {
        let run = try patientRun(rows: 4)
        run.run { run.requests.count == 4 }
        run.reply = { _ in .status(200) }
        accept(1, on: 0, of: run)
        run.say(ScriptedServer.goAway(lastStream: 3, code: 0, reason: nil), on: 0)
        run.run { run.requests.count == 6 }
        for stream: UInt32 in [7, 5, 3] { accept(stream, on: 0, of: run) }
        run.run()
        #expect(run.failures == 0 && run.requests.count == 6)
        #expect(try run.rows().allSatisfy { $0.state == .accepted && $0.attempts == 1 })
        let warnings = run.events.filter { $0.kind == .requestsLost && $0.level == .warning }
        #expect(warnings.count == 1)
        #expect(warnings.first?.message.contains("refused or excluded by GOAWAY") == true)
    }

    @Test(
        arguments: [
            (0, nil), (2, "INTERNAL_ERROR"), (11, "ENHANCE_YOUR_CALM"),
        ] as [(UInt32, String?)])
    func `GOAWAY before a response, or with an error, replaces the connection after a pause`(
        code: UInt32, error: String?
    ) throws {
        let run = try patientRun(rows: 2)
        run.run { run.requests.count == 2 }
        let before = run.time
        run.reply = { _ in .status(200) }
        if error != nil { accept(1, on: 0, of: run) }
        run.say(ScriptedServer.goAway(lastStream: 1, code: code, reason: nil), on: 0)
        run.run { run.links.count == 2 }
        let pause = run.links[1].begun - before
        #expect(pause >= second / 4 * 3 && pause <= second + Self.slack)
        // What the end of the run names if no response comes any more.
        let trouble = run.coordinator.lastTrouble?.message
        if let error {
            #expect(trouble?.hasSuffix("GOAWAY \(error)") == true, "\(trouble ?? "")")
        } else {
            #expect(
                trouble?.hasSuffix("GOAWAY NO_ERROR before any response") == true,
                "\(trouble ?? "")")
        }
    }

    @Test(arguments: LostResponsePolicy.allCases)
    func `An end without GOAWAY leaves rows in doubt and replaces the connection after a pause`(
        onLost: LostResponsePolicy
    ) throws {
        let run = try patientRun(rows: 3, onLost: onLost)
        run.maxStreams = 2
        run.run { run.requests.count == 2 }
        let before = run.time
        run.reply = { _ in .status(200) }
        accept(1, on: 0, of: run)
        run.run { run.requests.count == 3 }
        // One more is on its way and answered; the one before it never is.
        run.hangUp(0)
        run.run()
        // Where no row is left, nothing takes its place.
        try #require(run.links.count == (onLost == .record ? 1 : 2))
        let rows = try run.rows()
        switch onLost {
        case .record:
            #expect(rows.map(\.state) == [.accepted, .unknown, .accepted])
            #expect(rows[1].reason == "ConnectionLost" && run.requests.count == 3)
        case .resend:
            #expect(run.links[1].begun - before >= second / 4 * 3)
            #expect(rows.allSatisfy { $0.state == .accepted })
            #expect(rows[1].attempts == 2 && run.requests(row: 1).count == 2)
        }
    }

    @Test func `A refused stream goes out again soon and is not counted`() throws {
        let run = try ScriptedRun(rows: 20)
        run.reply = { request in
            let isFirst = run.requests(row: ScriptedRun.row(request)).count == 1
            return isFirst && ScriptedRun.row(request) % 7 == 3 ? .refuse : .status(200)
        }
        run.run()
        #expect(run.links.count == 1 && run.requests.count == 23)
        #expect(try run.rows().allSatisfy { $0.state == .accepted && $0.attempts == 1 })
    }

    @Test func `Refused streams alone wake the reactor for their retry`() throws {
        let run = try ScriptedRun(rows: 5)
        run.reply = { request in
            let count = run.requests(row: ScriptedRun.row(request)).count
            return count <= 3 ? .refuse : .status(200)
        }
        run.run()
        #expect(try run.rows().allSatisfy { $0.state == .accepted })
        // 1, 2 and 4 ms after the refusal before: nothing else would wake it for as long.
        let times = run.requests(row: 4).map(\.time)
        try #require(times.count == 4)
        for (place, pause) in zip(times, times.dropFirst()).map({ $1 - $0 }).enumerated() {
            #expect(pause >= millisecond << UInt64(place) && pause < 20 * millisecond, "\(pause)")
        }
    }

    @Test func `A name that is not found three times ends a run without --give-up-after`() throws {
        for isExplicit in [false, true] {
            let run = try ScriptedRun(rows: 5) { $0.giveUpAfterIsExplicit = isExplicit }
            run.resolves = false
            run.run(for: 300 * second)
            switch run.coordinator.stopCause {
            case .gaveUp(let trouble):
                #expect(!isExplicit && trouble.kind == .resolve && run.resolutions == 3)
            case .noResponse(60, let trouble):
                #expect(isExplicit && trouble?.kind == .resolve && run.resolutions > 30)
            default:
                Issue.record("\(String(describing: run.coordinator.stopCause))")
            }
        }
    }

    @Test func `A later pass of a run that reached APNs looks names up more than three times`()
        throws
    {
        let earlier = try ScriptedRun(rows: 1)
        earlier.run()
        let run = try ScriptedRun(rows: 5) { $0.giveUpAfterIsExplicit = false }
        run.coordinator.continueRun(of: earlier.coordinator, run.now)
        run.resolves = false
        run.run(for: 30 * second)
        #expect(run.coordinator.stopCause == nil && run.resolutions > 10)
        run.resolves = true
        run.run()
        #expect(try run.rows().allSatisfy { $0.state == .accepted })
    }

    @Test(arguments: [4, 60] as [UInt64])
    func `A name server that never replies is reported early and is the reason to give up`(
        seconds: UInt64
    ) throws {
        let run = try ScriptedRun(rows: 5) {
            $0.giveUpAfter = seconds * second
            $0.nameToResolve = "push.example"
        }
        run.holdsLookups = true
        run.run { !run.events.isEmpty }
        let patience = min(5, seconds / 2)
        #expect(run.time >= patience * second && run.time <= patience * second + Self.slack)
        #expect(run.coordinator.lastTrouble?.kind == .resolve)
        run.run(for: 300 * second)
        #expect(
            run.coordinator.stopCause
                == .noResponse(
                    seconds: seconds,
                    last: ConnectionTrouble(
                        .resolve,
                        "no name server has replied for \(seconds) s to the look-up of push.example"
                    ))
        )
        #expect(run.events.map(\.kind) == [.lookup] && run.resolutions == 1)
    }

    @Test(arguments: [false, true])
    func `A reactor sleeps while it waits for a name server`(hasTried: Bool) throws {
        let run = try ScriptedRun(rows: 500, reactors: 2, connections: 2) {
            $0.giveUpAfter = 300 * second
        }
        run.holdsLookups = !hasTried
        if hasTried {
            run.opening = { _ in .fails(errno: ECONNREFUSED) }
            run.run { run.time > 20 * second }
            run.holdsLookups = true
            run.run(for: 80 * second)
        }
        run.run(for: second)
        let resolutions = run.resolutions
        var turns = 0
        run.run(for: 10 * second) {
            turns += 1
            return false
        }
        #expect(run.resolutions == resolutions)
        // The clock is looked at every 50 ms.
        #expect(turns < 10 * 25 * run.reactors.count, "\(turns)")
    }

    @Test func `A look-up that has just begun is not the reason to give up`() throws {
        let run = try ScriptedRun(rows: 1) { $0.giveUpAfter = 30 * second }
        run.opening = { _ in .fails(errno: ECONNREFUSED) }
        run.run { run.time > 27 * second }
        run.holdsLookups = true
        run.run(for: 300 * second)
        guard case .noResponse(30, let trouble?) = run.coordinator.stopCause else {
            Issue.record("\(String(describing: run.coordinator.stopCause))")
            return
        }
        #expect(trouble.kind == .connect)
    }

    @Test func `At most ten connections per second replace others`() throws {
        let run = try ScriptedRun(rows: 120, connections: 5)
        run.addressCount = 3
        run.reply = { request in
            accept(request.stream, on: request.connection, of: run)
            run.say(
                ScriptedServer.goAway(lastStream: request.stream, code: 0, reason: nil),
                on: request.connection)
            return .silence
        }
        run.maxStreams = 1
        run.run()
        #expect(try run.rows().allSatisfy { $0.state == .accepted })
        let begun = run.links.dropFirst(5).map(\.begun)
        #expect(begun.count >= 100)
        for (first, eleventh) in zip(begun, begun.dropFirst(10)) {
            #expect(eleventh - first >= second)
        }
        // And no fewer where they are needed: twelve seconds for a hundred and twenty.
        #expect(begun.last! < 14 * second)
    }

    // MARK: Liveness

    @Test func `Ten seconds of silence with open requests lead to a PING, and ten more to an end`()
        throws
    {
        let run = try patientRun(rows: 1)
        run.run { run.requests.count == 1 }
        run.deafen(0)
        run.run { run.links[0].closed != nil }
        let (pings, closed) = (run.links[0].pings, try #require(run.links[0].closed))
        try #require(pings.count == 1)
        #expect(pings[0] >= 10 * second && pings[0] <= 10 * second + Self.slack)
        #expect(closed >= 20 * second && closed <= 20 * second + 2 * Self.slack)
        run.run()
        #expect(
            try run.rows() == [
                .init(state: .unknown, status: 0, reason: "ConnectionLost", attempts: 1)
            ])
    }

    @Test func `A server that responds only to PING lets the request time out`() throws {
        let run = try ScriptedRun(rows: 2) {
            $0.requestTimeout = 35 * second
            $0.giveUpAfter = 3600 * second
        }
        run.reply = { $0.connection == 0 ? .silence : .status(200) }
        run.maxStreams = 1
        run.run()
        #expect(run.links[0].pings.count == 3)
        let rows = try run.rows()
        #expect(rows[0] == .init(state: .unknown, status: 0, reason: "Timeout", attempts: 1))
        #expect(rows[1].state == .accepted)
        let next = run.requests[1]
        #expect(next.connection == 1 && next.time >= 35 * second)
    }

    @Test(arguments: [31, 45, 600] as [UInt64])
    func `After a suspension the process reads responses before it counts requests as lost`(
        seconds: UInt64
    ) throws {
        let run = try ScriptedRun(rows: 40)
        run.reply = { _ in .silence }
        run.run(for: second)
        #expect(run.requests.count == 40)
        for request in run.requests { accept(request.stream, on: 0, of: run) }
        run.stop(for: seconds * second)
        run.run()
        #expect(run.coordinator.stopCause == nil && run.links.count == 1)
        #expect(try run.rows().allSatisfy { $0.state == .accepted && $0.attempts == 1 })
    }

    @Test func `A second suspension before the scan also reads responses first`()
        throws
    {
        let run = try ScriptedRun(rows: 40)
        run.reply = { _ in .silence }
        run.run(for: second)
        run.stop(for: 2 * second)
        run.run(for: second / 2)
        for request in run.requests { accept(request.stream, on: 0, of: run) }
        run.stop(for: 45 * second)
        run.run()
        #expect(run.coordinator.stopCause == nil && run.links.count == 1)
        #expect(try run.rows().allSatisfy { $0.state == .accepted && $0.attempts == 1 })
    }

    @Test func `Repeated suspensions do not prevent the detection of lost requests`()
        throws
    {
        let run = try ScriptedRun(rows: 4)
        run.reply = { _ in .silence }
        run.run(for: second)
        for _ in 0..<60 where run.settled < 4 { run.stop(for: 2 * second) }
        #expect(run.settled == 4)
        #expect(try run.rows().allSatisfy { $0.state == .unknown })
    }

    @Test func `Requests lost during a suspension are detected soon after`() throws {
        let run = try ScriptedRun(rows: 4)
        run.reply = { _ in .silence }
        run.run(for: second)
        run.stop(for: 45 * second)
        let stopped = run.time
        run.run { run.settled == 4 }
        #expect(run.time <= stopped + 2 * second, "\(run.time - stopped)")
        #expect(try run.rows().allSatisfy { $0.state == .unknown })
    }

    @Test(arguments: [false, true])
    func `An idle connection gets a PING every ten minutes in a run`(isDeaf: Bool) throws {
        let run = try patientRun(rows: 2)
        run.reply = { request in
            ScriptedRun.row(request) == 1 && run.requests(row: 1).count == 1
                ? .status(429, retryAfter: "1500") : .status(200)
        }
        run.run { run.requests.count == 2 }
        if isDeaf { run.deafen(0) }
        run.run()
        let pings = run.links[0].pings
        try #require(pings.count >= 1)
        #expect(pings[0] >= 600 * second && pings[0] <= 600 * second + Self.slack)
        if isDeaf {
            let closed = try #require(run.links[0].closed)
            #expect(pings.count == 1 && closed >= 610 * second)
            #expect(closed <= 610 * second + 2 * Self.slack)
            #expect(run.requests.last?.connection == 1)
        } else {
            // The third precedes the request.
            #expect(pings.count == 3 && pings[1] >= 1200 * second && pings[2] >= 1500 * second)
            #expect(run.links.count == 1)
        }
        #expect(try run.rows().allSatisfy { $0.state == .accepted })
    }

    @Test(arguments: [true, false])
    func `An attempt without SETTINGS ends after 15 seconds`(isConnected: Bool) throws {
        let run = try ScriptedRun(rows: 1)
        run.opening = { $0 == 0 ? (isConnected ? .noSettings : .silent) : .open }
        run.run()
        let closed = try #require(run.links[0].closed)
        #expect(closed >= 15 * second && closed <= 15 * second + Self.slack)
        #expect(run.requests.allSatisfy { $0.connection == 1 })
        #expect(run.links[1].begun >= closed + second / 4 * 3)
        #expect(try run.rows().allSatisfy { $0.state == .accepted })
    }

    @Test func `Five reset requests in a row replace the connection after a pause`() throws {
        let run = try patientRun(rows: 12)
        run.maxStreams = 1
        run.reply = { $0.connection == 0 ? .reset : .status(200) }
        run.run()
        #expect(run.requests.count { $0.connection == 0 } == 5)
        let pause = run.links[1].begun - run.requests[4].time
        #expect(pause >= second / 4 * 3 && pause <= second + Self.slack)
        let rows = try run.rows()
        #expect(rows.count { $0.state == .unknown } == 5)
        #expect(rows.count { $0.state == .accepted } == 7)
    }

    @Test func `A connection in a used slot begins without losses`() throws {
        let run = try ScriptedRun(rows: 60) { $0.onLost = .resend }
        var seen: [Int: Int] = [:]
        run.reply = { request in
            seen[request.connection, default: 0] += 1
            let number = seen[request.connection]!
            if request.connection < 2, number == 5 {
                run.say(
                    ScriptedServer.goAway(lastStream: request.stream, code: 0, reason: nil),
                    on: request.connection)
            }
            // The first connection ends with three resets, the third, in the same slot, begins so.
            switch request.connection {
            case 0: return number < 3 ? .status(200) : .reset
            case 2: return number < 4 ? .reset : .status(200)
            default: return .status(200)
            }
        }
        run.maxStreams = 1
        run.run()
        #expect(run.isFinished && run.links.map(\.slot) == [0, 1, 0])
    }
}
