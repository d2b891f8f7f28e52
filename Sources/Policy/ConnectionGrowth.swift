/// Decides how many connections a run keeps open if its operator did not set the number. It samples
/// the run about once per second, and adds connections while they raise throughput.
///
///     opening --all open--> filling --latencies--> measuring --enough seen--> judged
///        ^                                             ^                        |
///        '-------------------- grow -------------------+------------------------|
///                                                      '--------- stay ---------'
///     judged: no gain from more, or no more allowed --> settled
///
/// A pure function of samples and time; see docs/decisions/0009 for the reasons.
public struct ConnectionGrowth: Sendable {
    /// One sample of the run. Counts and durations are cumulative.
    public struct Sample: Sendable, Equatable {
        /// Time of the sample, monotonic nanoseconds.
        var nanoseconds: UInt64
        /// Number of responses.
        public var responses: UInt64 = 0
        /// Connections that are ready to send.
        public var openConnections = 0
        /// Time that connections spent waiting for streams or windows, summed over the connections,
        /// nanoseconds. More connections may shorten it.
        public var heldNanoseconds: UInt64 = 0
        /// Time in which only the reactor's own work was the bottleneck, summed over connections,
        /// nanoseconds.
        public var busyNanoseconds: UInt64 = 0
        /// Total time of all connections, nanoseconds.
        public var totalNanoseconds: UInt64 = 0
        /// CPU time of the busiest reactor's thread since the last sample, as a share of the
        /// elapsed time.
        public var busiestThread = 0.0
        /// Operator's limit on requests per second; nil: no limit.
        public var rateLimit: Double?
        /// Known number of rows that are not settled; nil: unknown.
        public var rowsLeft: UInt64?
        /// Typical response latency since the last sample, nanoseconds; nil: no responses.
        public var latencyNanoseconds: UInt64?
        /// Number of failed connections.
        public var failures: UInt64 = 0
        /// Number of responses that throttle the run (429, 5xx) or refuse the credential (403).
        public var pushbacks: UInt64 = 0
        /// Number of addresses in backoff.
        public var pausedAddresses = 0
        /// Whether few requests are in flight on purpose. The possible reasons: nothing was
        /// accepted yet, a canary is running, the operator paused the run, or the run is ending.
        public var growthSuspended = false

        /// Creates a sample for an instant, monotonic nanoseconds.
        public init(nanoseconds: UInt64) { self.nanoseconds = nanoseconds }
    }

    /// Reason for the current number of connections.
    public enum Reason: Sendable, Equatable {
        /// Nothing has been measured yet.
        case early
        /// Connections are opening, or their gain is being measured.
        case measuring
        /// Connections fail, or the server throttles.
        case trouble
        /// The operator's rate is reached.
        case rateKept(perSecond: Double)
        /// Streams and windows are not the bottleneck.
        case notHeld
        /// No reactor's thread has capacity left.
        case threadsBusy
        /// The rest of the list is too short.
        case fewRows
        /// The default maximum is reached; the operator set no number.
        case most
        /// The gain of the last step was too small.
        case noGain(from: Int, percent: Int)
        /// Trouble occurred repeatedly.
        case repeatedTrouble
        /// Not all connections of the last step opened.
        case notAllOpen
    }

    /// Result of a sample.
    public enum Decision: Sendable, Equatable {
        /// No change now.
        case stay(Reason)
        /// A new number of connections, on a number of reactors.
        case grow(connections: Int, reactors: Int)
        /// No further change in this run.
        case settled(Reason)
    }

    private enum Phase {
        case opening(since: UInt64)
        case filling(since: UInt64)
        case measuring(since: Sample)
        case settled(Reason)
    }

    /// The state before the last step, to compare with the state after it.
    private struct Step {
        var connections: Int
        /// Responses per second.
        var rate: Double
        /// Whether one measurement showed too small a gain. A second measurement then decides.
        var isDoubted = false
    }

    /// Number of connections that the run keeps open.
    private(set) var connections: Int
    /// Number of reactors that share the connections.
    private(set) var reactors: Int
    private let connectionsMost: Int
    private let reactorsMost: Int
    private var phase: Phase?
    private var step: Step?
    private var last: Sample?
    private var troubledSamples = 0

    /// Maximum number of connections if the operator set none.
    public static let connectionsMost = 64
    /// Growth requires that connections spend at least this share of their time waiting for streams
    /// or windows.
    static let heldShare = 0.8
    /// A thread counts as busy if it uses a CPU for more than this share of the elapsed time.
    static let saturatedShare = 0.85
    /// Minimum share of the rate limit at which the limit counts as reached.
    static let rateKeptShare = 0.9
    /// Share of the possible gain that a step must bring. At 0.25, twice as many connections must
    /// bring a quarter more throughput.
    static let gainShare = 0.25
    /// Minimum time for which a step's gain is measured, nanoseconds.
    static let measuringTime: UInt64 = 2_000_000_000
    /// Minimum time for which a step's gain is measured, as a multiple of the response latency.
    static let latencies: UInt64 = 2
    /// How long to wait, after a step, for its connections to open, nanoseconds.
    static let openingLimit: UInt64 = 30_000_000_000
    /// Minimum number of rows per new connection: a handshake costs as much CPU as this many
    /// notifications.
    static let rowsEachConnection: UInt64 = 1000
    /// Minimum number of seconds that the remaining rows must take to make growth worthwhile.
    static let secondsLeft = 5.0
    /// One throttling response per this number of responses is normal; more are trouble.
    static let responsesPerPushback: UInt64 = 1000
    /// Number of samples with trouble after which the run no longer grows.
    static let troubledSamplesLimit = 3

    /// - Parameters:
    ///   - connections: Number of connections at the run's start.
    ///   - connectionsMost: Limit on connections, if lower than 64.
    public init(
        connections: Int, reactors: Int, connectionsMost: Int = connectionsMost, reactorsMost: Int
    ) {
        assert(connections >= 1 && reactors >= 1, "a run has a connection")
        self.connections = connections
        self.reactors = reactors
        self.connectionsMost = min(connectionsMost, Self.connectionsMost)
        self.reactorsMost = reactorsMost
    }

    /// Whether the number of connections no longer changes.
    public var isSettled: Bool {
        if case .settled = phase { return true }
        return false
    }

    /// Processes a sample. Times of samples never decrease.
    public mutating func observe(_ sample: Sample) -> Decision {
        if case .settled(let reason) = phase { return .settled(reason) }
        assert(last.map { $0.nanoseconds <= sample.nanoseconds } ?? true, "time does not go back")
        let before = last ?? Sample(nanoseconds: sample.nanoseconds)
        last = sample
        if sample.growthSuspended {
            phase = .opening(since: sample.nanoseconds)
            return .stay(.early)
        }
        if let decision = watchTrouble(sample, before) { return decision }
        if sample.rateLimit != before.rateLimit, phase != nil {
            // Measurements under another rate limit do not apply to this one.
            step = nil
            phase = .filling(since: sample.nanoseconds)
        }
        return goOn(sample)
    }

    /// - Returns: The decision if there is trouble; nil otherwise.
    private mutating func watchTrouble(_ sample: Sample, _ before: Sample) -> Decision? {
        let pushbacks = sample.pushbacks - min(sample.pushbacks, before.pushbacks)
        let responses = sample.responses - min(sample.responses, before.responses)
        let isTroubled =
            sample.failures > before.failures || pushbacks * Self.responsesPerPushback > responses
        if isTroubled {
            troubledSamples += 1
            if troubledSamples >= Self.troubledSamplesLimit { return settle(.repeatedTrouble) }
        }
        guard isTroubled || sample.pausedAddresses > 0 else { return nil }
        // Earlier measurements no longer apply.
        phase = .opening(since: sample.nanoseconds)
        return .stay(.trouble)
    }

    private mutating func settle(_ reason: Reason) -> Decision {
        phase = .settled(reason)
        return .settled(reason)
    }

    private mutating func goOn(_ sample: Sample) -> Decision {
        let patience = (sample.latencyNanoseconds ?? 0) * Self.latencies
        switch phase {
        case nil:
            phase = .opening(since: sample.nanoseconds)
            return goOn(sample)
        case .opening(let since):
            if sample.openConnections >= connections {
                phase = .filling(since: sample.nanoseconds)
            } else if sample.nanoseconds - since > Self.openingLimit {
                return settle(.notAllOpen)
            }
        case .filling(let since):
            // Newly opened connections have to be full before they count.
            if sample.nanoseconds > since, sample.nanoseconds - since >= patience {
                phase = .measuring(since: sample)
            }
        case .measuring(let since):
            let time = sample.nanoseconds - since.nanoseconds
            guard time >= max(Self.measuringTime, patience) else { break }
            return judge(sample, since: since)
        case .settled(let reason):
            return .settled(reason)
        }
        return .stay(step == nil && last?.responses == 0 ? .early : .measuring)
    }

    /// Decides, from a complete measurement, whether the run gets more connections.
    private mutating func judge(_ sample: Sample, since: Sample) -> Decision {
        phase = .measuring(since: sample)
        let seconds = Double(sample.nanoseconds - since.nanoseconds) / 1e9
        assert(seconds > 0, "a rate is measured over some time")
        let rate = Double(sample.responses - since.responses) / seconds
        if let limit = sample.rateLimit, rate >= limit * Self.rateKeptShare {
            return .stay(.rateKept(perSecond: limit))
        }
        if var step {
            let gain = rate / max(step.rate, .leastNonzeroMagnitude) - 1
            let possible = Double(connections) / Double(step.connections) - 1
            if gain < possible * Self.gainShare {
                if step.isDoubted {
                    return settle(
                        .noGain(from: step.connections, percent: Int((gain * 100).rounded())))
                }
                step.isDoubted = true
                self.step = step
                return .stay(.measuring)
            }
            self.step = nil
        }
        func passed(_ time: KeyPath<Sample, UInt64>) -> Double {
            Double(sample[keyPath: time] - min(sample[keyPath: time], since[keyPath: time]))
        }
        let total = passed(\.totalNanoseconds)
        guard total > 0 else { return .stay(.notHeld) }
        let held = passed(\.heldNanoseconds) / total
        let busy = passed(\.busyNanoseconds) / total
        let isSaturated = sample.busiestThread >= Self.saturatedShare
        guard isSaturated ? held + busy >= Self.heldShare : held >= Self.heldShare else {
            return .stay(isSaturated ? .threadsBusy : .notHeld)
        }
        if isSaturated, reactors >= reactorsMost { return .stay(.threadsBusy) }
        return grow(sample, rate: rate, byReactor: isSaturated)
    }

    /// Doubles the connections, or adds a reactor. The new reactor gets as many connections as any
    /// other reactor has.
    private mutating func grow(_ sample: Sample, rate: Double, byReactor: Bool) -> Decision {
        guard connections < connectionsMost else { return settle(.most) }
        let more = byReactor ? max(1, connections / reactors) : connections
        let next = min(connections + more, connectionsMost)
        if let rows = sample.rowsLeft {
            let isWorthIt =
                rows >= UInt64(next - connections) * Self.rowsEachConnection
                && Double(rows) >= rate * Self.secondsLeft
            // The number of remaining rows only falls.
            guard isWorthIt else { return settle(.fewRows) }
        }
        step = Step(connections: connections, rate: rate)
        assert(next > connections, "a step adds connections")
        assert(!byReactor || reactors < reactorsMost, "there is a reactor to add")
        connections = next
        if byReactor { reactors += 1 }
        phase = .opening(since: sample.nanoseconds)
        return .grow(connections: connections, reactors: reactors)
    }
}
