import BroadsidePolicy
import BroadsideTestSupport

/// Connections to a server, a millisecond at a time: what `ConcurrencyLimiter` sees and does.
struct PacedServer {
    /// Answers a second; 0: as many as come.
    var capacity = 0.0
    /// How long an answer takes where none waits, milliseconds.
    var latency: (inout SeededRandom) -> Double
    /// The most requests in flight that the server allows.
    var streams = 1000
    /// Requests a second that the client has at the most; nil: it always has some.
    var demand: Double?

    private static let ringCount = 1 << 14

    private struct Connection {
        var pace = ConcurrencyLimiter(now: 1_000_000)
        /// Answers by the millisecond in which they are due: when their requests went out. A
        /// ring, longer than any answer takes.
        var due = [[Int]](repeating: [], count: PacedServer.ringCount)
        var inFlight = 0
    }

    private var connections: [Connection]
    private var random = SeededRandom(seed: 5)
    private(set) var now = 1
    /// The millisecond, and a part of it, at which the server is free again.
    private var free = 0.0
    private var asked = 0.0
    private(set) var findings: [ConcurrencyLimiter.Finding] = []
    /// Since `forget`: answers, and their latencies in milliseconds.
    private(set) var latencies: [Int] = []
    private(set) var since = 0

    init(connections: Int = 1, latency: @escaping (inout SeededRandom) -> Double) {
        self.connections = Array(repeating: Connection(), count: connections)
        self.latency = latency
    }

    init(connections: Int = 1, milliseconds: Double) {
        self.init(connections: connections) { _ in milliseconds }
    }

    /// The lowest limit of any connection.
    var limit: Int { connections.map(\.pace.limit).min() ?? 0 }

    /// Answers a second since `forget`.
    var rate: Double { Double(latencies.count) * 1000 / Double(now - since) }

    var median: Int { latencies.sorted()[latencies.count / 2] }

    mutating func forget() {
        latencies = []
        since = now
    }

    /// Nobody reads or sends for a while; the server goes on.
    mutating func sleep(milliseconds: Int, isNoticed: Bool) {
        now += milliseconds
        for index in connections.indices {
            for time in (now - milliseconds)..<now {
                let late = connections[index].due[time % Self.ringCount]
                connections[index].due[time % Self.ringCount] = []
                connections[index].due[now % Self.ringCount] += late
            }
            if isNoticed {
                connections[index].pace.recordStall(nanoseconds: UInt64(milliseconds) * 1_000_000)
            }
        }
    }

    mutating func run(seconds: Double) {
        let end = now + Int(seconds * 1000)
        while now < end {
            for index in 0..<connections.count { receive(index) }
            // A record each in turn, as the reactor does.
            for _ in 0..<max(1, streams / 25) {
                var sent = 0
                for index in 0..<connections.count { sent += send(index, atMost: 25) }
                if sent == 0 { break }
            }
            now += 1
        }
    }

    private var nanoseconds: UInt64 { UInt64(now) * 1_000_000 }

    private mutating func receive(_ index: Int) {
        let answered = connections[index].due[now % Self.ringCount]
        guard !answered.isEmpty else { return }
        connections[index].due[now % Self.ringCount].removeAll(keepingCapacity: true)
        connections[index].inFlight -= answered.count
        for start in answered {
            latencies.append(now - start)
            connections[index].pace.recordResponse(
                sent: UInt64(start) * 1_000_000, now: nanoseconds)
        }
        guard connections[index].pace.isDue(now: nanoseconds) else { return }
        let hint = connections.map(\.pace.base).min() ?? .max
        if let finding = connections[index].pace.endWindow(
            now: nanoseconds, allowed: streams, hint: hint, lag: 1_000_000)
        {
            findings.append(finding)
        }
    }

    /// Returns the number of requests.
    private mutating func send(_ index: Int, atMost count: Int) -> Int {
        let room = min(streams, connections[index].pace.limit) - connections[index].inFlight
        var sent = 0
        for _ in 0..<max(0, min(room, count)) {
            if let demand {
                guard asked < Double(now) * demand / 1000 else { return sent }
                asked += 1
            }
            var due = Double(now) + latency(&random)
            if capacity > 0 {
                free = max(free, Double(now)) + 1000 / capacity
                due = max(due, free)
            }
            connections[index].due[max(now + 1, Int(due)) % Self.ringCount].append(now)
            connections[index].inFlight += 1
            sent += 1
        }
        if room <= count { connections[index].pace.recordFullWindow() }
        return sent
    }
}
