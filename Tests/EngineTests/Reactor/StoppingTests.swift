import BroadsideHygiene
import BroadsidePolicy
import BroadsideRows
import BroadsideSupport
import Testing

@testable import BroadsideEngine

/// How a run ends before its list does, and what it holds back at its beginning.
@Suite(.timeLimit(.minutes(60)))
struct StoppingTests {
    private static let slack = second / 5

    private func accept(_ request: ScriptedServer.Request, of run: ScriptedRun) {
        run.say(
            ScriptedServer.answer(request.stream, status: 200, reason: nil, retryAfter: nil),
            on: request.connection)
    }

    // MARK: Signals

    /// Three requests are out, ten rows are left.
    private func interrupted() throws -> ScriptedRun {
        let run = try ScriptedRun(rows: 13) { $0.requestTimeout = 25 * second }
        run.maxStreams = 3
        run.reply = { _ in .silence }
        run.run { run.requests.count == 3 }
        run.coordinator.stop(.signal)
        return run
    }

    @Test func `After a signal no request starts, and responses are awaited for --request-timeout`()
        throws
    {
        let run = try interrupted()
        run.run(for: 5 * second)
        accept(run.requests[0], of: run)
        run.run(for: 5 * second)
        #expect(!run.isFinished)
        run.run()
        #expect(run.requests.count == 3)
        #expect(run.time >= 25 * second && run.time <= 28 * second)
        let states = try run.rows().map(\.state)
        #expect(states[0] == .accepted && states[1...2].allSatisfy { $0 == .unknown })
        #expect(states[3...].allSatisfy { $0 == .remaining })
    }

    @Test func `After a signal the run ends with the last response`() throws {
        let run = try interrupted()
        run.run(for: 5 * second)
        for request in run.requests { accept(request, of: run) }
        run.run()
        #expect(run.time < 8 * second)
        #expect(try run.rows().count { $0.state == .accepted } == 3)
    }

    @Test func `A second signal ends a run with unanswered requests at once`() throws {
        let run = try interrupted()
        run.run(for: second)
        run.coordinator.stopAtOnce()
        run.run()
        #expect(run.time < 2 * second)
        #expect(try run.rows().count { $0.state == .unknown } == 3)
    }

    @Test(arguments: [false, true])
    func `A read of the list that does not end is not awaited`(isLate: Bool) throws {
        // 1,000 a second, so that a chunk is a part of the list.
        let run = try ScriptedRun(rows: 20_000) { $0.milliRatePerConnection = 1_000_000 }
        run.run { run.requests.count >= 100 }
        run.holdsReads = true
        let requests = run.requests.count
        let reads = run.chunkRequests
        run.run { run.chunkRequests > reads && run.requests.count > requests }
        run.run(for: 5 * second)
        run.coordinator.stop(.signal)
        if isLate {
            // Chunks that come now are not reserved.
            run.holdsCloses = true
            run.run(for: second / 2)
            #expect(!run.isFinished)
            run.endReads()
        }
        run.run()
        let sent = run.requests.count
        let rows = try run.rows()
        #expect(rows.count { $0.state == .accepted } == sent && sent < 20_000)
        #expect(rows.allSatisfy { $0.state == .accepted || $0.state == .remaining })
        #expect(run.isFinished && run.time < 12 * second)
    }

    @Test func `An abort awaits its responses as a signal does`() throws {
        let run = try ScriptedRun(rows: 30, abortAfter: 4) { $0.requestTimeout = 25 * second }
        run.maxStreams = 10
        run.reply = { _ in .silence }
        run.run { run.requests.count == 4 }
        accept(run.requests[0], of: run)
        run.run { run.requests.count == 11 }
        for request in run.requests[1...4] {
            run.say(
                ScriptedServer.answer(
                    request.stream, status: 403, reason: "Forbidden", retryAfter: nil), on: 0)
        }
        run.run(for: second)
        guard run.coordinator.stopCause?.isAbort == true else {
            Issue.record("\(String(describing: run.coordinator.stopCause))")
            return
        }
        for request in run.requests[5...9] { accept(request, of: run) }
        run.run()
        #expect(run.requests.count == 11)
        #expect(run.time >= 25 * second && run.time <= 28 * second)
        let rows = try run.rows()
        #expect(rows.count { $0.state == .accepted } == 6)
        #expect(rows.count { $0.state == .unknown } == 1)
        #expect(rows.count { $0.state == .remaining } == 23)
    }

    // MARK: Giving up

    @Test(arguments: ["refused", "no answer", "no SETTINGS", "silent", "reset"])
    func `No response within --give-up-after while rows wait ends the run`(
        trouble: String
    ) throws {
        let run = try ScriptedRun(rows: 300) { $0.giveUpAfter = 40 * second }
        run.opening = { _ in
            switch trouble {
            case "refused": .fails(errno: 111)
            case "silent": .silent
            case "no SETTINGS": .noSettings
            default: .open
            }
        }
        run.reply = { _ in trouble == "reset" ? .reset : .silence }
        run.run { run.coordinator.stopCause != nil }
        guard let cause = run.coordinator.stopCause, cause.isGivingUp else {
            Issue.record("\(String(describing: run.coordinator.stopCause))")
            return
        }
        let message = run.lastLine(cause)
        #expect(message.contains("no response for 40 s"))
        #expect(run.time >= 40 * second && run.time <= 40 * second + Self.slack)
        #expect(run.coordinator.lastResponse == nil)
        run.run()
        #expect(run.isFinished)
    }

    /// One request in 100 seconds.
    @Test(arguments: ["in all", "per connection"])
    func `A rate below one request in --give-up-after is not silence`(rate: String) throws {
        let run = try ScriptedRun(rows: 20) {
            $0.giveUpAfter = 40 * second
            if rate == "per connection" { $0.milliRatePerConnection = 10 }
        }
        if rate == "in all" { run.coordinator.milliRate = 10 }
        run.run { run.requests.count == 4 }
        #expect(run.coordinator.stopCause == nil && run.time >= 300 * second)
        run.reply = { _ in .silence }
        run.run { run.coordinator.stopCause != nil }
        #expect(run.coordinator.stopCause?.isGivingUp == true)
        #expect(run.time >= 440 * second && run.time <= 540 * second + Self.slack)
    }

    @Test(arguments: [(900, 1_000), (300, 500)])
    func `A slow rate is not silence if --give-up-after is a second or less`(
        milliRate: UInt64, milliseconds: UInt64
    ) throws {
        let run = try ScriptedRun(rows: 20) { $0.giveUpAfter = milliseconds * millisecond }
        run.coordinator.milliRate = milliRate
        run.run { run.requests.count == 4 || run.coordinator.stopCause != nil }
        #expect(run.coordinator.stopCause == nil && run.requests.count == 4)
        run.reply = { _ in .silence }
        run.run { run.coordinator.stopCause != nil }
        #expect(run.coordinator.stopCause?.isGivingUp == true)
    }

    /// Each request is refused at once, and the next one waits for the rate.
    @Test(arguments: ["in all", "per connection"])
    func `Requests that are refused as fast as the rate allows them are silence`(
        rate: String
    ) throws {
        let run = try ScriptedRun(rows: 300, connections: rate == "in all" ? 8 : 1) {
            $0.giveUpAfter = 40 * second
            if rate == "per connection" { $0.milliRatePerConnection = 1_000 }
        }
        if rate == "in all" { run.coordinator.milliRate = 5_000 }
        run.reply = { _ in .refuse }
        run.run { run.coordinator.stopCause != nil }
        #expect(run.coordinator.stopCause?.isGivingUp == true)
        #expect(run.time >= 40 * second && run.time <= 40 * second + Self.slack, "\(run.time)")
        #expect(run.requests.count >= (rate == "in all" ? 200 : 35), "\(run.requests.count)")
    }

    @Test func `The time of a suspension does not count as silence`() throws {
        let run = try ScriptedRun(rows: 13) { $0.giveUpAfter = 40 * second }
        run.maxStreams = 3
        run.reply = { $0.time < 60 * second ? .silence : .status(200) }
        run.run { run.requests.count == 3 }
        run.stop(for: 90 * second)
        run.run()
        #expect(run.coordinator.stopCause == nil)
        #expect(try run.rows().count { $0.state == .accepted } == 10)
    }

    @Test func `The time to give up continues after a suspension`() throws {
        let run = try ScriptedRun(rows: 13) { $0.giveUpAfter = 40 * second }
        run.reply = { _ in .silence }
        run.opening = { _ in .fails(errno: 111) }
        run.run(for: 10 * second)
        run.stop(for: 90 * second)
        let continued = run.time
        run.run { run.coordinator.stopCause != nil }
        #expect(run.coordinator.stopCause?.isGivingUp == true)
        #expect(run.time >= continued + 30 * second)
        #expect(run.time <= continued + 30 * second + Self.slack)
    }

    @Test func `A pause does not count as silence, and the time before it does`() throws {
        let run = try ScriptedRun(rows: 20) { $0.giveUpAfter = 40 * second }
        run.opening = { _ in .fails(errno: 111) }
        run.run(for: 10 * second)
        run.coordinator.pause(true)
        run.run(for: 300 * second)
        #expect(run.coordinator.stopCause == nil)
        run.coordinator.pause(false)
        let continued = run.time
        run.run { run.coordinator.stopCause != nil }
        #expect(run.coordinator.stopCause?.isGivingUp == true)
        #expect(run.time >= continued + 30 * second)
        #expect(run.time <= continued + 30 * second + Self.slack)
    }

    @Test func `Any response restarts the time to give up, a temporary refusal too`() throws {
        let run = try ScriptedRun(rows: 1) { $0.giveUpAfter = 40 * second }
        run.reply = { request in
            request.time < 200 * second ? .status(429, retryAfter: "35") : .silence
        }
        run.run { run.coordinator.stopCause != nil }
        let last = try #require(run.requests.last { $0.time < 200 * second })
        #expect(run.requests.count == 7 && run.time >= last.time + 40 * second)
        #expect(run.time <= last.time + 40 * second + Self.slack)
        #expect(run.coordinator.lastResponse != nil)
    }

    @Test(arguments: [429, 503])
    func `A wait that the server asks for counts as silence and is named`(status: Int) throws {
        let run = try ScriptedRun(rows: 20) { $0.giveUpAfter = 40 * second }
        run.maxStreams = 1
        run.reply = { request in
            ScriptedRun.row(request) < 5 ? .status(200) : .status(status, retryAfter: "90")
        }
        run.run()
        guard let cause = run.coordinator.stopCause, cause.isGivingUp else {
            Issue.record("\(String(describing: run.coordinator.stopCause))")
            return
        }
        let message = run.lastLine(cause)
        #expect(
            message.contains("no response for 40 s (10.0.0.1:443: \(status) with "), "\(message)")
        #expect(message.contains("Retry-After: 90 s, which is longer than --give-up-after"))
        let last = try #require(run.requests.last)
        #expect(run.time >= last.time + 40 * second && run.time < last.time + 43 * second)
        // Refused and not sent: all of it stays for a resume.
        let rows = try run.rows()
        #expect(rows.count == 20 && run.isFinished)
        #expect(rows[..<5].allSatisfy { $0.state == .accepted })
        #expect(rows[5...].allSatisfy { $0.state == .remaining })
    }

    @Test func `A wait shorter than --give-up-after is waited for`() throws {
        let run = try ScriptedRun(rows: 20) { $0.giveUpAfter = 40 * second }
        run.reply = { request in
            run.requests.count == 1 ? .status(503, retryAfter: "30") : .status(200)
        }
        run.run()
        #expect(run.coordinator.stopCause == nil && run.time >= 30 * second)
        #expect(try run.rows().allSatisfy { $0.state == .accepted })
    }

    @Test func `Without --give-up-after three failed attempts end a run that reached no server`()
        throws
    {
        let run = try ScriptedRun(rows: 1) { $0.giveUpAfterIsExplicit = false }
        run.opening = { _ in .fails(errno: 111) }
        run.addressCount = 2
        run.run()
        guard run.coordinator.stopCause?.isGivingUp == true else {
            Issue.record("\(String(describing: run.coordinator.stopCause))")
            return
        }
        #expect(run.links.count == 6 && run.time < 5 * second)
    }

    // MARK: Until the first 200

    @Test(arguments: [(50, 1, 3), (7, 2, 2), (3, 3, 1), (2, 3, 2), (1, 4, 1)])
    func `At most --abort-after requests are in flight until one is accepted`(
        abortAfter: Int, reactors: Int, connections: Int
    ) throws {
        let run = try ScriptedRun(
            rows: 600, reactors: reactors, connections: connections, abortAfter: abortAfter)
        var isOpen = false
        run.reply = { _ in isOpen ? .status(200) : .silence }
        run.run(for: 5 * second)
        #expect(run.requests.count <= abortAfter)
        #expect(run.requests.count > abortAfter / 2)
        // Answers that accept nothing let others follow, as many.
        for request in run.requests {
            run.say(
                ScriptedServer.answer(
                    request.stream, status: 410, reason: "Unregistered", retryAfter: nil),
                on: request.connection)
        }
        let before = run.requests.count
        run.run(for: second)
        #expect(run.requests.count > before && run.requests.count <= before + abortAfter)
        isOpen = true
        for request in run.requests.dropFirst(before) { accept(request, of: run) }
        run.run()
        #expect(try run.rows().allSatisfy { $0.state.isSettled })
        #expect(try run.rows().count { $0.state == .accepted } == 600 - before)
    }

    @Test(arguments: [(50, 1), (7, 2), (50, 3), (2, 3), (1, 4)])
    func `At most --abort-after requests are sent if none is accepted`(
        abortAfter: Int, reactors: Int
    ) throws {
        for (status, reason) in [(400, "BadDeviceToken"), (400, "BadTopic")] {
            let run = try ScriptedRun(rows: 600, reactors: reactors, abortAfter: abortAfter)
            run.reply = { _ in .status(status, reason) }
            run.run()
            #expect(run.requests.count == abortAfter)
            #expect(run.coordinator.stopCause != nil)
        }
    }

    @Test func `The one request that --abort-after 1 allows may be sent in parts`() throws {
        let run = try ScriptedRun(rows: 3, abortAfter: 1)
        run.streamWindow = 4
        for streams in [[1], [3, 5]] as [[UInt32]] {
            run.run(for: second)
            for stream in streams { run.say(ScriptedServer.windowUpdate(6, stream: stream), on: 0) }
        }
        run.run(for: second)
        #expect(run.isFinished && Set(run.requests.map(\.stream)) == [1, 3, 5])
        #expect(try run.rows().allSatisfy { $0.state == .accepted && $0.attempts == 1 })
    }

    @Test func `The last rows of a list are sent although none before them was accepted`() throws {
        // More rows than two reactors take at the start, and requests for two at a time: the third
        // reactor's go out because the others give their leave back.
        let run = try ScriptedRun(rows: 2000, reactors: 3, abortAfter: 2)
        run.reply = { _ in .status(410, "Unregistered") }
        run.run(for: 50 * second)
        #expect(run.isFinished && run.coordinator.stopCause == nil)
        #expect(Set(run.requests.map { run.links[$0.connection].reactor }) == [0, 1, 2])
        #expect(try run.rows().count { $0.state == .rejected } == 2000)
    }

    // MARK: Guards

    @Test(arguments: [60, 61, 62, 63])
    func `Refusals count in a row in the order of their responses`(rows: Int) throws {
        // Six answers come in a turn: two that refuse, one that accepts, and so on; of the rows
        // from 60 on none is accepted.
        let run = try ScriptedRun(rows: rows, abortAfter: 3)
        run.maxStreams = 6
        run.reply = { request in
            let row = ScriptedRun.row(request)
            return row >= 60 || row % 3 != 2 ? .status(400, "BadTopic") : .status(200)
        }
        run.run()
        #expect(run.requests.count == rows)
        #expect((run.coordinator.stopCause == nil) == (rows < 63))
        #expect(try run.rows().count { $0.state == .accepted } == 20)
    }

    @Test(arguments: [5000, 5001])
    func `More than half of 10,000 responses with bad tokens stop the run`(bad: Int) throws {
        let run = try ScriptedRun(rows: 10_000)
        run.maxStreams = 100
        // Good ones among the first, so that nothing else stops it.
        run.reply = { request in
            let row = ScriptedRun.row(request)
            return row % 2 == 0 || row == 1 && bad > 5000
                ? .status(400, "BadDeviceToken") : .status(200)
        }
        run.run()
        if bad == 5000 {
            #expect(run.coordinator.stopCause == nil)
        } else {
            guard let cause = run.coordinator.stopCause, cause.isAbort else {
                Issue.record("\(String(describing: run.coordinator.stopCause))")
                return
            }
            let message = run.lastLine(cause)
            #expect(message.contains("--max-bad-tokens"))
        }
        #expect(run.requests.count == 10_000)
    }

    // MARK: Attempts and time

    @Test func `A row fails only when attempts and time are both used up`() throws {
        for (attempts, time, isByTime) in [(3, 40 * second, true), (9, second, false)] {
            let run = try ScriptedRun(rows: 1) {
                $0.retryPolicy = RetryPolicy(
                    maximumAttempts: attempts, retryForNanoseconds: time)
            }
            run.reply = { _ in .status(429, "TooManyRequests") }
            run.run()
            let last = try #require(run.requests.last)
            #expect(last.time >= time)
            #expect(
                isByTime ? run.requests.count > attempts : run.requests.count == attempts,
                "\(run.requests.count)")
            // Not one too many: the attempt before came too early, or was none too few.
            #expect(!isByTime || run.requests.dropLast().last!.time < time)
            #expect(
                try run.rows() == [
                    .init(
                        state: .failed, status: 429, reason: "TooManyRequests",
                        attempts: run.requests.count)
                ])
        }
    }
}
