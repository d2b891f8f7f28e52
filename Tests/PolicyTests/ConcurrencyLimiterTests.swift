import BroadsideSupport
import BroadsideTestSupport
import Foundation
import Testing

@testable import BroadsidePolicy

@Suite struct ConcurrencyLimiterTests {
    @Test(arguments: [(500.0, 20.0), (800, 40), (1000, 100), (4000, 40), (1000, 300)])
    func `A server with limited capacity is held near it at its full rate`(
        capacity: Double, milliseconds: Double
    ) {
        var server = PacedServer(milliseconds: milliseconds)
        server.capacity = capacity
        // From above: everything goes out first, and waits.
        server.run(seconds: 0.2)
        #expect(server.limit == .max)
        server.run(seconds: 15)
        server.forget()
        server.run(seconds: 45)
        // Answers without a queue would take `milliseconds`, with one of all streams this long.
        let piledUp = 1000 / capacity * 1000
        #expect(Double(server.median) <= max(2 * milliseconds + 22, 32_000 / capacity + 1))
        #expect(Double(server.median) < piledUp / 2)
        #expect(server.rate > 0.97 * capacity, "\(server.rate) a second")
        #expect(server.findings.first?.inFlight == 1000)
    }

    @Test(arguments: [1.0, 7, 40, 500, 4000])
    func `A latency that does not depend on load never limits`(milliseconds: Double) {
        var server = PacedServer(milliseconds: milliseconds)
        if milliseconds < 10 { server.streams = 100 }
        for _ in 0..<(milliseconds < 10 ? 5 : 20) {
            server.run(seconds: 1)
            #expect(server.limit == .max)
        }
        #expect(server.findings.isEmpty)
    }

    @Test(arguments: [7, 40, 100, 1000])
    func `A latency with random jitter never limits`(streams: Int) {
        let shapes: [(inout SeededRandom) -> Double] = [
            { Double.random(in: 10...15, using: &$0) },
            { Double.random(in: 10...110, using: &$0) },
            { Double.random(in: 1...50, using: &$0) },
            { 30 - 20 * log(1 - Double.random(in: 0..<1, using: &$0)) },
            { 80 * exp(0.5 * Self.normal(&$0)) },
            // One in a hundred takes a second.
            { Double.random(in: 0..<1, using: &$0) < 0.01 ? 1000 : 20 },
        ]
        for (number, shape) in shapes.enumerated() {
            var server = PacedServer(latency: shape)
            server.streams = streams
            var limited = 0
            for _ in 0..<(streams == 1000 ? 25 : 100) {
                server.run(seconds: 0.1)
                if server.limit < streams { limited += 1 }
            }
            #expect(server.findings.isEmpty, "shape \(number)")
            #expect(limited == 0, "shape \(number)")
        }
    }

    private static func normal(_ random: inout SeededRandom) -> Double {
        let first = Double.random(in: 0..<1, using: &random)
        let second = Double.random(in: 0..<1, using: &random)
        return sqrt(-2 * log(1 - first)) * cos(2 * Double.pi * second)
    }

    @Test(arguments: [0, 1])
    func `A path that becomes longer for good is not limited`(way: Int) {
        var server = PacedServer(milliseconds: 40)
        server.run(seconds: 10)
        server.latency = { _ in way == 0 ? 400 : 90 + 60 }
        server.run(seconds: 5)
        #expect(server.limit == .max)
        server.forget()
        server.run(seconds: 20)
        #expect(server.rate > 0.99 * 1000 / (way == 0 ? 0.4 : 0.15))
        #expect(server.findings.isEmpty)
    }

    @Test(arguments: [100.0, 150, 10])
    func `A limited connection follows changes of its path and server`(milliseconds: Double) {
        var server = PacedServer(milliseconds: 40)
        server.capacity = 800
        server.run(seconds: 15)
        #expect(server.limit < 1000)
        server.latency = { _ in milliseconds }
        server.run(seconds: 60)
        server.forget()
        server.run(seconds: 30)
        // Looking at the base costs a bit; without a look a path of 100 ms would leave 700.
        #expect(server.rate > 0.95 * 800, "\(server.rate) a second")
        // The floor hides what is below 40 ms.
        #expect(Double(server.median) <= 2 * max(40, milliseconds) + 22)
    }

    @Test func `A server that becomes faster again gets requests at its full rate`() {
        var server = PacedServer(milliseconds: 40)
        server.capacity = 500
        server.run(seconds: 15)
        #expect(server.limit < 100)
        server.capacity = 0
        server.run(seconds: 15)
        #expect(server.limit == .max)
        server.forget()
        server.run(seconds: 5)
        #expect(server.rate > 24_000)
    }

    @Test func `Nothing is limited while the connection's streams are mostly unused`() {
        var server = PacedServer(milliseconds: 20)
        server.demand = 300
        server.run(seconds: 10)
        // Slow for reasons that are not ours: a tenth of the streams is in use.
        server.latency = { _ in 300 }
        for _ in 0..<100 {
            server.run(seconds: 0.1)
            #expect(server.limit == .max)
        }
    }

    @Test func `A latency below the base moves it by a quarter of the difference`() {
        var limiter = ConcurrencyLimiter(now: 1)
        var bases: [UInt64] = []
        for (window, latency) in [100, 60, 200, 20].enumerated() {
            let end = UInt64(window + 1) * 1_000_000_000
            for _ in 0..<64 { limiter.recordResponse(sent: end - UInt64(latency), now: end) }
            _ = limiter.endWindow(now: end, allowed: 1000, hint: .max, lag: 0)
            bases.append(limiter.base)
        }
        #expect(bases == [100, 90, 90, 73])
    }

    @Test(arguments: [(39, false), (40, true)])
    func `Fewer requests are tried only with at least 40 streams`(streams: Int, isTried: Bool) {
        var server = PacedServer(milliseconds: 20)
        server.streams = streams
        server.run(seconds: 2)
        server.capacity = 100
        server.run(seconds: 20)
        #expect(server.findings.isEmpty != isTried)
    }

    @Test(arguments: [2, 4, 16])
    func `Connections that share a server share its queue`(connections: Int) {
        var server = PacedServer(connections: connections, milliseconds: 40)
        server.capacity = 4000
        server.run(seconds: 40)
        server.forget()
        server.run(seconds: 10)
        #expect(server.rate > 0.97 * 4000)
        // All streams would wait 500 ms and more.
        #expect(server.median < 130 * max(1, connections / 4), "\(server.median) ms")
    }

    @Test(arguments: [0, 2])
    func `An absence of the engine is no evidence of slow responses`(offset: Int) {
        var server = PacedServer(milliseconds: 5)
        server.run(seconds: 1)
        for _ in 0..<40 {
            // Too short for any answer: all are found after the absence.
            server.run(seconds: 0.002 + Double(offset) / 1000)
            server.sleep(milliseconds: 250, isNoticed: true)
            #expect(server.limit == .max)
        }
        #expect(server.findings.isEmpty)
    }

    @Test func `The limit never falls below 32 requests in flight`() {
        var server = PacedServer(milliseconds: 20)
        server.capacity = 80
        for _ in 0..<1200 {
            server.run(seconds: 0.1)
            #expect(server.limit >= 32)
        }
        #expect(server.limit < 1000)
        server.forget()
        server.run(seconds: 20)
        #expect(server.rate > 78)
    }

    @Test func `A new connection takes a lower base latency from the others`() {
        var pace = ConcurrencyLimiter(now: 1_000_000)
        for _ in 0..<64 { pace.recordResponse(sent: 1_000_000, now: 401_000_000) }
        _ = pace.endWindow(now: 401_000_000, allowed: 1000, hint: 40_000_000, lag: 0)
        #expect(pace.base == 40_000_000)
    }

    @Test func `The limit is lowered only after several slow windows with the connection full`() {
        var pace = ConcurrencyLimiter(now: 0)
        var now: UInt64 = 0
        func window(_ milliseconds: UInt64, full: Bool = true) {
            let start = now
            now += max(100, milliseconds) * 1_000_000 + 1
            for _ in 0..<64 {
                pace.recordResponse(sent: now - milliseconds * 1_000_000, now: now)
            }
            if full { pace.recordFullWindow() }
            #expect(pace.isDue(now: now))
            #expect(now > start)
            _ = pace.endWindow(now: now, allowed: 1000, hint: .max, lag: 0)
        }
        window(40)
        #expect(pace.base == 40_000_000)
        #expect(pace.slowLatency(lag: 0) == 100_000_000)
        // Slow, and still too quick to be a reason.
        for _ in 0..<5 { window(140) }
        #expect(pace.limit == .max)
        window(160)
        #expect(pace.limit == .max)
        window(140)
        window(160)
        window(160, full: false)
        window(160)
        #expect(pace.limit == .max)
        window(160)
        #expect(pace.limit == 500)
        // It did not help: the limit goes, and so much is normal from now on.
        window(159)
        #expect(pace.limit == .max)
        #expect(pace.base == 159_000_000)
    }
}
