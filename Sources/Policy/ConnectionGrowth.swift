/// Decides how many connections a run keeps up where its operator left that open: looks at the run
/// about once a second, and lets it grow while more connections pay.
///
///     opening --all open--> filling --latencies--> measuring --enough seen--> judged
///        ^                                             ^                        |
///        '-------------------- grow -------------------+------------------------|
///                                                      '--------- stay ---------'
///     judged: more did not pay, or may not be --> settled
///
/// Numbers and the time come in, a decision comes out; docs/decisions/0009 tells why it is so.
public struct ConnectionGrowth: Sendable {
    /// What one look finds. Counts and times cumulate over the run.
    public struct Sample: Sendable, Equatable {
        /// When it is made, monotonic nanoseconds.
        var nanoseconds: UInt64
        /// Answers so far.
        public var responses: UInt64 = 0
        /// Connections that are ready to send.
        public var openConnections = 0
        /// Connection nanoseconds spent waiting for streams or windows: what more connections may
        /// shorten.
        public var heldNanoseconds: UInt64 = 0
        /// Connection nanoseconds in which nothing but the reactor's own work held things up.
        public var busyNanoseconds: UInt64 = 0
        /// Connection nanoseconds in all.
        public var totalNanoseconds: UInt64 = 0
        /// CPU time of the busiest reactor's thread since the last look, as a share of the time.
        public var busiestThread = 0.0
        /// Requests a second that the operator allows; nil: no limit.
        public var rateLimit: Double?
        /// Rows that are not settled, as far as is known; nil: nobody knows.
        public var rowsLeft: UInt64?
        /// How long most answers took since the last look, nanoseconds; nil: there were none.
        public var latencyNanoseconds: UInt64?
        /// Connections that failed so far.
        public var failures: UInt64 = 0
        /// Answers so far that asked for patience or refused the credential: 429, 5xx, 403.
        public var pushbacks: UInt64 = 0
        /// Addresses that are left alone for a while.
        public var pausedAddresses = 0
        /// True while few requests are in flight on purpose: nothing was accepted yet, a canary is
        /// out, the operator paused the run, or it ends.
        public var growthSuspended = false

        /// A look at an instant, monotonic nanoseconds.
        public init(nanoseconds: UInt64) { self.nanoseconds = nanoseconds }
    }

    /// Why a run has the connections that it has.
    public enum Reason: Sendable, Equatable {
        /// Nothing was measured yet.
        case early
        /// Connections are being opened, or their gain is being measured.
        case measuring
        /// Connections fail, or the server asks for patience.
        case trouble
        /// The operator's rate is kept.
        case rateKept(perSecond: Double)
        /// Something else than streams and windows holds the run up.
        case notHeld
        /// No reactor's thread could do more.
        case threadsBusy
        /// The rest of the list is too short.
        case fewRows
        /// No more are opened unasked.
        case most
        /// The last step brought too little.
        case noGain(from: Int, percent: Int)
        /// There was trouble again and again.
        case repeatedTrouble
        /// The last step's connections did not all open.
        case notAllOpen
    }

    /// What a look leads to.
    public enum Decision: Sendable, Equatable {
        /// Nothing changes now.
        case stay(Reason)
        /// So many connections from now on, on so many reactors.
        case grow(connections: Int, reactors: Int)
        /// Nothing changes any more.
        case settled(Reason)
    }

    private enum Phase {
        case opening(since: UInt64)
        case filling(since: UInt64)
        case measuring(since: Sample)
        case settled(Reason)
    }

    /// What the connections before the last step carried.
    private struct Step {
        var connections: Int
        /// Answers a second.
        var rate: Double
        /// True once a gain too small was seen: another measurement decides.
        var isDoubted = false
    }

    /// Connections that the run keeps up.
    private(set) var connections: Int
    /// Reactors among which they are divided.
    private(set) var reactors: Int
    private let connectionsMost: Int
    private let reactorsMost: Int
    private var phase: Phase?
    private var step: Step?
    private var last: Sample?
    private var troubledSamples = 0

    /// No more connections are opened unasked.
    public static let connectionsMost = 64
    /// So much of the connections' time has to be held up by what more of them may shorten.
    static let heldShare = 0.8
    /// A thread that works for so much of the time can do little more.
    static let saturatedShare = 0.85
    /// A rate that is reached to this share is kept.
    static let rateKeptShare = 0.9
    /// A step pays where it brings this share of what it could: a quarter more where there are
    /// twice as many connections.
    static let gainShare = 0.25
    /// What a step brought is measured for so long at least, nanoseconds, and for so many latencies.
    static let measuringTime: UInt64 = 2_000_000_000
    static let latencies: UInt64 = 2
    /// So long after a step connections that are not open are not waited for any more.
    static let openingLimit: UInt64 = 30_000_000_000
    /// A handshake costs as much CPU as so many notifications: a connection has to carry more.
    static let rowsEachConnection: UInt64 = 1000
    /// The rest of the list has to take so many seconds.
    static let secondsLeft = 5.0
    /// One answer in so many may ask for patience before it counts as trouble.
    static let responsesPerPushback: UInt64 = 1000
    /// After so many looks that found trouble the run grows no more.
    static let troubledSamplesLimit = 3

    /// - Parameters:
    ///   - connections: Those that the run begins with.
    ///   - connectionsMost: Where it is smaller than 64.
    public init(
        connections: Int, reactors: Int, connectionsMost: Int = connectionsMost, reactorsMost: Int
    ) {
        assert(connections >= 1 && reactors >= 1, "a run has a connection")
        self.connections = connections
        self.reactors = reactors
        self.connectionsMost = min(connectionsMost, Self.connectionsMost)
        self.reactorsMost = reactorsMost
    }

    /// True once nothing will change any more.
    public var isSettled: Bool {
        if case .settled = phase { return true }
        return false
    }

    /// Takes a look in. The times of looks never fall.
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
            // What was measured under another rate says nothing about this one.
            step = nil
            phase = .filling(since: sample.nanoseconds)
        }
        return goOn(sample)
    }

    /// - Returns: nil where all is well.
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
        // What was measured so far is worth nothing.
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
            // Those that were just opened have to be full before they count.
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

    /// Enough was seen: says what comes of it.
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

    /// Twice as many connections; or a reactor more, with as many as the others have.
    private mutating func grow(_ sample: Sample, rate: Double, byReactor: Bool) -> Decision {
        guard connections < connectionsMost else { return settle(.most) }
        let more = byReactor ? max(1, connections / reactors) : connections
        let next = min(connections + more, connectionsMost)
        if let rows = sample.rowsLeft {
            let isWorthIt =
                rows >= UInt64(next - connections) * Self.rowsEachConnection
                && Double(rows) >= rate * Self.secondsLeft
            // Rows only become fewer.
            guard isWorthIt else { return settle(.fewRows) }
        }
        step = Step(connections: connections, rate: rate)
        connections = next
        if byReactor { reactors += 1 }
        phase = .opening(since: sample.nanoseconds)
        return .grow(connections: connections, reactors: reactors)
    }
}
