import BroadsideLedgerFormat
import BroadsidePolicy
import BroadsideRows
import BroadsideSupport
import Testing

@testable import BroadsideEngine

/// Rows that always get a server error, beside rows that do not.
@Suite(.timeLimit(.minutes(60)))
struct FaultyRowTests {
    /// Turns come at most this late.
    private static let slack = second / 10

    @Test(arguments: [1, 4], [1, 2])
    func `Rows that always get a server error do not delay rows of the list`(
        connections: Int, reactors: Int
    ) throws {
        let run = try ScriptedRun(rows: 8000, reactors: reactors, connections: connections)
        run.maxStreams = 100
        func isFaulty(_ row: Int) -> Bool { row % 1000 == 500 }
        run.reply = { request in
            isFaulty(ScriptedRun.row(request)) ? .status(500, "InternalServerError") : .status(200)
        }
        run.run()
        let rows = try run.rows()
        #expect(rows.count { $0.state == .accepted } == 7992)
        #expect(rows.count { $0.state == .failed && $0.status == 500 && $0.attempts >= 5 } == 8)
        let last = try #require(
            run.requests.last { !isFaulty(ScriptedRun.row($0)) })
        #expect(last.time < 60 * second, "\(last.time / second) s")
        // A faulty row is tried for 30 minutes, `--retry-for`.
        #expect(run.time < 40 * 60 * second, "\(run.time / second) s")
    }

    /// What happens to the first request of a row that is sent again.
    enum Return: CaseIterable {
        case serverError, throttled, refused
    }

    @Test(arguments: Return.allCases, [(20, 1, 1), (20, 4, 2), (200, 4, 2)])
    func `Rows that always get a server error do not delay rows that wait to be sent again`(
        first: Return, scale: (faulty: Int, connections: Int, reactors: Int)
    ) throws {
        let run = try ScriptedRun(
            rows: 4000, reactors: scale.reactors, connections: scale.connections)
        run.maxStreams = 100
        func isFaulty(_ row: Int) -> Bool { row % (4000 / scale.faulty) == 5 }
        var seen: Set<Int> = []
        run.reply = { request in
            let row = ScriptedRun.row(request)
            if isFaulty(row) { return .status(500, "InternalServerError") }
            guard row >= 2000, row % 2 == 0, seen.insert(row).inserted else {
                return .status(200)
            }
            return switch first {
            case .serverError: row % 200 == 0 ? .status(500) : .status(200)
            case .throttled: .status(429, "TooManyRequests")
            case .refused: .refuse
            }
        }
        run.run()
        let rows = try run.rows()
        #expect(rows.count { $0.state == .accepted } == 4000 - scale.faulty)
        #expect(rows.count { $0.state == .failed && $0.status == 500 } == scale.faulty)
        let last = try #require(run.requests.last { !isFaulty(ScriptedRun.row($0)) })
        // The first server error of a row pauses its address for a second.
        let pauses = UInt64(scale.faulty + (first == .serverError ? 10 : 0))
        #expect(last.time < (pauses + 10) * second, "\(last.time / second) s")
    }

    @Test(arguments: ["5", "30", "120"], [1, 4])
    func `A server that asks for a pause because of certain rows gets all others`(
        retryAfter: String, connections: Int
    ) throws {
        let run = try ScriptedRun(rows: 10_000, connections: connections)
        run.maxStreams = 100
        func isFaulty(_ row: Int) -> Bool { row % 2500 == 10 }
        run.reply = { request in
            isFaulty(ScriptedRun.row(request))
                ? .status(503, "ServiceUnavailable", retryAfter: retryAfter) : .status(200)
        }
        run.run()
        let rows = try run.rows()
        #expect(rows.count { $0.state == .accepted } == 9996)
        let last = try #require(run.requests.last { !isFaulty(ScriptedRun.row($0)) })
        let pause = min(UInt64(retryAfter)!, 30) * second
        #expect(last.time < 4 * (pause + pause / 4) + 5 * second, "\(last.time / second) s")
        if retryAfter == "120" {
            // Only rows are left that wait for longer than `--give-up-after`.
            guard case .noResponse(60, let trouble) = run.coordinator.stopCause else {
                Issue.record("\(String(describing: run.coordinator.stopCause))")
                return
            }
            #expect(trouble?.kind == .longWait)
            #expect(rows.count { $0.state == .remaining } == 4)
        } else {
            #expect(run.coordinator.stopCause == nil)
            #expect(rows.count { $0.state == .failed && $0.status == 503 } == 4)
        }
    }

    @Test
    func `A run whose rows wait for a long Retry-After names it, not later trouble of other rows`()
        throws
    {
        let run = try ScriptedRun(rows: 2) { $0.giveUpAfter = 40 * second }
        run.reply = { request in
            guard ScriptedRun.row(request) == 1 else {
                return .status(429, "TooManyRequests", retryAfter: "3600")
            }
            return run.requests(row: 1).count < 3
                ? .status(500, "InternalServerError") : .status(200)
        }
        run.run()
        #expect(try run.rows().map(\.state) == [.remaining, .accepted])
        guard case .noResponse(40, let trouble) = run.coordinator.stopCause else {
            Issue.record("\(String(describing: run.coordinator.stopCause))")
            return
        }
        #expect(trouble?.kind == .longWait)
        #expect(trouble?.problem == "429 TooManyRequests with Retry-After: 3600 s")
    }

    @Test func `If a server refuses other rows, a long Retry-After is not the cause`() throws {
        let run = try ScriptedRun(rows: 2) { $0.giveUpAfter = 40 * second }
        run.reply = { request in
            ScriptedRun.row(request) == 0
                ? .status(429, "TooManyRequests", retryAfter: "3600") : .refuse
        }
        run.run()
        #expect(run.requests(row: 1).count > 10)
        guard case .noResponse(40, let trouble) = run.coordinator.stopCause else {
            Issue.record("\(String(describing: run.coordinator.stopCause))")
            return
        }
        #expect(trouble?.kind == .refused)
    }

    @Test
    func `A list that can't be read further does not keep rows in hand from testing a server`()
        throws
    {
        let run = try ScriptedRun(rows: 20)
        // Only the first read ends.
        run.adjustChunk = { _ in run.holdsReads = true }
        var seen: Set<Int> = []
        run.reply = { request in
            seen.insert(ScriptedRun.row(request)).inserted ? .status(503) : .status(200)
        }
        run.run(for: 600 * second) { run.settled == 20 }
        #expect(
            run.settled == 20 && run.time < 300 * second, "\(run.settled), \(run.time / second) s")
        run.endReads()
        run.run()
        #expect(try run.rows().allSatisfy { $0.state == .accepted })
    }

    // MARK: Servers that fail for all rows

    /// The requests of a run, grouped by their time, without those before the first response.
    private func tests(_ run: ScriptedRun) -> [(time: UInt64, count: Int)] {
        let groups = run.requests.reduce(into: [(time: UInt64, count: Int)]()) { groups, request in
            if groups.last?.time != request.time { groups.append((request.time, 0)) }
            groups[groups.count - 1].count += 1
        }
        return Array(groups.dropFirst())
    }

    @Test(arguments: [1, 4], [nil, "5"])
    func `A server that fails for all rows sent again gets at most 16 requests in a test`(
        connections: Int, retryAfter: String?
    ) throws {
        let run = try ScriptedRun(rows: 40, connections: connections)
        run.reply = { _ in .status(503, "ServiceUnavailable", retryAfter: retryAfter) }
        run.run()
        let tests = tests(run)
        // A pause of at least 6 s before each test, except the first three.
        for (number, test) in tests.enumerated() {
            #expect(test.count <= min(2 << min(number, 3), 16), "\(number): \(test.count)")
            let pause = second << UInt64(min(number, 3))
            let before = number == 0 ? 0 : tests[number - 1].time
            let least = retryAfter == nil ? pause / 4 * 3 : 5 * second
            #expect(test.time - before >= least, "\(number): \(test.time - before)")
        }
        #expect(tests.contains { $0.count == 16 })
        #expect(try run.rows().allSatisfy { $0.state == .failed && $0.status == 503 })
        #expect(run.time < 40 * 60 * second)
    }

    @Test func `A server that fails for all rows of the list gets one request in a test`() throws {
        let run = try ScriptedRun(rows: 8000, connections: 4) { $0.giveUpAfter = 20 * second }
        run.reply = { _ in .status(503, "ServiceUnavailable") }
        run.run()
        guard case .noResponse(20, _) = run.coordinator.stopCause else {
            Issue.record("\(String(describing: run.coordinator.stopCause))")
            return
        }
        let tests = tests(run)
        #expect(tests.count >= 4 && tests.allSatisfy { $0.count == 1 }, "\(tests)")
    }

    @Test func `A test whose last request gets no response is followed by a pause`() throws {
        let run = try ScriptedRun(rows: 20) { $0.onLost = .resend }
        func isReset(_ request: ScriptedServer.Request) -> Bool {
            request.time > second / 2 && ScriptedRun.row(request) % 3 == 0
        }
        run.reply = { isReset($0) ? .reset : .status(500) }
        run.run(for: 600 * second)
        var mixed = 0
        for test in tests(run) {
            let requests = run.requests.filter { $0.time == test.time }
            guard requests.contains(where: { !isReset($0) }) else { continue }
            if isReset(requests.last!) { mixed += 1 }
            let next = run.requests.first { $0.time > test.time }
            if let next { #expect(next.time - test.time >= second / 4 * 3) }
        }
        #expect(mixed > 3, "\(mixed)")
    }
}
