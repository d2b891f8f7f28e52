import BroadsideTestSupport
import Foundation
import Testing

/// `broadside night`, killed at each of its calls that change files: whatever is left, the next start sends what is
/// left of the night, no row twice, and never nothing without a word.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct NightKillTests {
    private static let rows = 40
    private static let trials = TestSize.isLong ? 1_000 : TestSize.isFull ? 40 : 24

    /// Runs one start, and kills it at a call, or sends it another signal there. A shell is in front (bash: dash tidies up nothing): what is killed leaves behind what libfaketime has
    /// in shared memory, if it loaded it first, and a later process with its number would lack its arguments.
    private func run(
        _ nights: Nights, _ more: [String] = [], day: Int, _ clock: String, killAt call: Int,
        signal: Int32 = SIGKILL
    ) throws -> Finished {
        let library = try Shim.compile("kill-at-call", in: nights.campaign.directory)
        var environment = try nights.clock(day, clock)
        environment["KILLER"] = library
        environment["KILL_AT"] = "\(call)"
        environment["KILL_SIGNAL"] = "\(signal)"
        let script = #"LD_PRELOAD="$KILLER $LD_PRELOAD" "$@"; exit $?"#
        return try Subprocess(
            "bash", ["-c", script, "bash", Broadside.path()] + nights.arguments(more),
            in: nights.campaign.directory, environment: environment
        ).wait(limit: 240)
    }

    /// What a shell says of a process that SIGKILL ended.
    private static let killed: Int32 = 128 + SIGKILL

    /// Calls to kill at: all of them, or so many that are spread evenly.
    private static func calls(upTo count: Int) -> [Int] {
        guard count > trials else { return Array(1...count) }
        return (0..<trials).map { 1 + $0 * count / trials }
    }

    /// How many calls a start makes that change files.
    private func callCount(_ run: (Int) throws -> Finished) throws -> Int {
        var (low, high) = (1, 2_000)
        while low < high {
            let middle = (low + high) / 2
            if try run(middle).exitCode == Self.killed { low = middle + 1 } else { high = middle }
        }
        return low - 1
    }

    @Test
    func `A night that was killed at any call is continued by the next start, after midnight too`()
        throws
    {
        let server = try RecordingServer()
        func night() throws -> Nights { try Nights(rows: Self.rows, endpoint: server.endpoint) }
        func kill(_ nights: Nights, at call: Int) throws -> Finished {
            try run(nights, day: 1, "23:55", killAt: call)
        }
        let count = try callCount { try kill(night(), at: $0) }
        #expect(count > 40, "the night, its ledger and its pages make more calls than that")
        var codes: [Int32: Int] = [:]
        for call in Self.calls(upTo: count) {
            let nights = try night()
            let before = try server.answers().count
            let killed = try kill(nights, at: call)
            // Threads wake each other by writes, too: a run may make some calls fewer than those that were counted.
            if killed.exitCode == 0, call > count * 3 / 4 { continue }
            try #require(killed.exitCode == Self.killed, "call \(call): \(killed.errors)")
            let sent = try server.answers().count - before
            let text = try? String(
                contentsOfFile: "\(nights.folder)/evening/nights", encoding: .utf8)
            let isIntended = text?.contains(" intended ") == true
            let isBegun = text?.contains(" begun ") == true
            #expect(sent == 0 || isBegun, "call \(call): \(sent) requests without a note")
            let next = try nights.run(at: (2, "00:05"))
            #expect([0, 6].contains(next.exitCode), "call \(call): \(next.errors)")
            codes[next.exitCode, default: 0] += 1
            // Before the first note nothing is known of the evening's start.
            let day = isIntended ? 1 : 2
            let counts = try nights.statistics(day)
            #expect(counts.remaining == 0 && !nights.has(3 - day), "call \(call)")
            #expect(counts.accepted + counts.unknown == Self.rows)
            #expect(next.exitCode == (counts.unknown == 0 ? 0 : 6))
            var requests: [String: Int] = [:]
            for answer in try server.answers().dropFirst(before) {
                requests[answer.path ?? "", default: 0] += 1
            }
            #expect(requests.values.allSatisfy { $0 == 1 }, "call \(call)")
            #expect((counts.accepted...Self.rows).contains(requests.count), "call \(call)")
            // The next evening begins, and the night's ledger is still needed.
            if isBegun {
                try FileManager.default.removeItem(atPath: nights.ledger(1))
                #expect(try nights.run(at: (2, "00:10")).exitCode == 2)
            }
        }
        #expect(codes[0] ?? 0 > 0)
    }

    @Test func `A terminal that is closed while a night writes its first files ends no night`()
        throws
    {
        let server = try RecordingServer()
        for call in 1...8 {
            let nights = try Nights(rows: 3, endpoint: server.endpoint)
            let sent = try run(nights, day: 1, "20:00", killAt: call, signal: SIGHUP)
            #expect(sent.exitCode == 0, "call \(call): \(sent.errors)")
            #expect(try nights.statistics(1).accepted == 3)
        }
    }

    @Test func `A removal that was killed at any call is finished by the next start`() throws {
        let server = try RecordingServer()
        func kept() throws -> Nights {
            let nights = try Nights(rows: 3, endpoint: server.endpoint)
            for day in 1...3 { #expect(try nights.run(at: (day, "23:55")).exitCode == 0) }
            return nights
        }
        func kill(_ nights: Nights, at call: Int) throws -> Finished {
            try run(nights, ["--keep", "1"], day: 3, "23:56", killAt: call)
        }
        var call = 1
        while true {
            let nights = try kept()
            let requests = try server.answers().count
            let killed = try kill(nights, at: call)
            if killed.exitCode == 0 { break }
            try #require(killed.exitCode == Self.killed, "call \(call): \(killed.errors)")
            // Whole, hidden or gone; a night without its ledger is never one that was lost.
            for day in 1...2 {
                let again = try nights.run(["--date", nights.date(day)], at: (3, "23:57"))
                #expect(again.exitCode == 0, "call \(call): \(again.errors)")
            }
            #expect(try nights.run(["--keep", "1"], at: (3, "23:58")).exitCode == 0)
            let left = try nights.campaign.directory.names(in: "\(nights.folder)/evening")
            #expect(
                left.filter { $0.hasPrefix("20") } == [nights.date(3)]
                    && left.filter { $0.hasSuffix(".removed") }.isEmpty, "call \(call): \(left)")
            #expect(left.filter { $0.hasPrefix(".broadside") }.count == 1, "call \(call): \(left)")
            #expect(try server.answers().count == requests, "call \(call)")
            call += TestSize.isLong ? 1 : 3
        }
        #expect(call > 20)
    }
}
