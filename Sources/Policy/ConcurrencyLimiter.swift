/// Limits the requests in flight on a connection if responses slow down under load. The limiter
/// measures delay, like TCP Vegas. Before it sets a limit, a trial has to confirm that the load
/// causes the delay.
///
///     open --slow and full--> trying --latency fell with the load--> held --at times--> probing
///      ^                         |                                   ^  |                  |
///      '--- it did not: a longer |                                   |  '- grows, falls -. |
///           path, not our load --'                                   '-------------------+-'
///
/// The limiter starts without a limit of its own, so that a long path is filled at once. It
/// measures latency in windows. A window contains the requests that were sent after the previous
/// window ended, and needs at least `samplesMinimum` responses. Only the shortest latency of a
/// window counts, because only a queue delays every response. Jitter, or a thread that did not run,
/// delays some responses. The base is the latency without load.
///
/// A window is slow if its latency is above `slowLatency` and the limit on requests was reached.
/// After enough slow windows, a trial allows only half as many requests.
///
/// - If the latency falls, too, requests were waiting in a queue. The limiter sets a limit that
///   gives `aimLatency`. By Little's law (requests in flight = rate x latency), this limit costs no
///   throughput.
/// - If the latency does not fall, the path itself is longer. The latency of the path becomes the
///   base, and the trial's limit is removed.
///
/// Time is a parameter, in monotonic nanoseconds. Does not allocate.
public struct ConcurrencyLimiter: Sendable {
    /// Result of a trial: responses take longer because of our requests.
    public struct Finding: Sendable, Equatable {
        /// Latency without load, nanoseconds.
        public var aloneNanoseconds: UInt64
        /// Latency with `inFlight` requests, nanoseconds.
        public var loadedNanoseconds: UInt64
        /// Number of requests in flight that was too high.
        public var inFlight: Int
        /// Number of requests in flight that is allowed now.
        public var limit: Int
    }

    private enum Phase {
        case open, trying, held, probing
    }

    /// Maximum number of requests in flight; `Int.max` if unlimited.
    public private(set) var limit = Int.max
    /// Latency without load, nanoseconds; `UInt64.max` before the first window.
    public private(set) var base = UInt64.max

    private var phase = Phase.open
    /// Start of the window. Only requests that are sent later are part of the window. The limit may
    /// rise at the start, and a request that is sent exactly then still meets the shorter queue of
    /// the lower limit.
    private var windowStart: UInt64
    private var shortest = UInt64.max
    private var samples = 0
    private var wasFull = false
    /// Longest time in the window during which the caller did not run, nanoseconds.
    private var away: UInt64 = 0

    private var slowWindows = 0
    /// Number of consecutive slow windows that start a trial; doubled after each unsuccessful
    /// trial.
    private var patience = ConcurrencyLimiter.shortestPatience
    /// Limit, requests in flight and latency before the trial or the probe.
    private var before = (limit: Int.max, inFlight: 0, latency: UInt64(0))
    private var nextCheck = UInt64.max

    /// Minimum of the limit: about as many requests as one TLS record holds.
    static var floor: Int { 32 }
    /// Number of responses that complete a window.
    static var samplesMinimum: Int { 64 }
    /// Minimum length of a window, nanoseconds.
    static var shortestWindow: UInt64 { 100_000_000 }
    /// Latency above the base that counts as jitter or as queues along the path, nanoseconds;
    /// `slowLatency` tolerates twice as much.
    static var slack: UInt64 { 10_000_000 }
    /// Latency up to which no trial starts, nanoseconds. If a queue causes such a latency, the
    /// queue is short. A short queue does no harm, and a busy server can then process full batches.
    static var unremarkable: UInt64 { 150_000_000 }
    /// Minimum number of requests in flight for a trial. With fewer requests, a trial would show
    /// too little.
    private static var leastTried: Int { floor + floor / 4 }
    private static var shortestPatience: Int { 2 }
    private static var longestPatience: Int { 64 }
    /// Minimum interval between probes of the base while a limit is set, nanoseconds.
    private static var probeInterval: UInt64 { 20_000_000_000 }
    /// Minimum interval between probes of the base, as a multiple of the latency.
    private static var probeLatencies: UInt64 { 64 }

    /// - Parameter now: Time at which the connection became ready. Requests that are sent at this
    ///   time are part of the first window, because they meet no queue.
    public init(now: UInt64) { windowStart = now - min(1, now) }

    /// Latency above which responses are slow, nanoseconds.
    ///
    /// - Parameter lag: Time between the caller's iterations, nanoseconds. A measured latency may
    ///   contain it at both ends, because requests are sent and responses are read once per
    ///   iteration.
    func slowLatency(lag: UInt64) -> UInt64 { 2 * (base + Self.slack + lag) }

    /// The target latency of a limit, nanoseconds; below it, the limit grows.
    func aimLatency(lag: UInt64) -> UInt64 { base + base / 2 + Self.slack + lag }

    // MARK: Measurements

    /// Records an accepted request that was sent at `sent`.
    public mutating func recordResponse(sent: UInt64, now: UInt64) {
        guard sent > windowStart else { return }
        samples &+= 1
        if now - sent < shortest { shortest = now - sent }
    }

    /// Records that the limit on requests in flight is reached.
    public mutating func recordFullWindow() { wasFull = true }

    /// Records a stall: a time during which the caller did not run. If a request was sent during
    /// the stall, or its response came during the stall, the measured latency may be too long by up
    /// to the stall's length.
    public mutating func recordStall(nanoseconds: UInt64) { away = max(away, nanoseconds) }

    /// Whether the window is long enough and has enough responses.
    public func isDue(now: UInt64) -> Bool {
        samples >= Self.samplesMinimum && now >= windowStart + Self.shortestWindow
    }

    /// Ends the window, and decides whether the limit changes or a trial starts.
    ///
    /// - Parameters:
    ///   - allowed: Requests in flight that the server and the operator allow.
    ///   - hint: Base of other connections, for a connection that never ran without load;
    ///     `UInt64.max`: unknown.
    ///   - lag: Time between the caller's iterations, nanoseconds; see `slowLatency`.
    /// - Returns: A new finding, if there is one.
    public mutating func endWindow(
        now: UInt64, allowed: Int, hint: UInt64, lag: UInt64
    ) -> Finding? {
        assert(limit >= Self.floor, "the limit stays above its floor")
        assert(now >= windowStart, "a window ends after it begins")
        let latency = shortest
        let wasFull = wasFull
        let away = away
        windowStart = now
        shortest = .max
        samples = 0
        self.wasFull = false
        self.away = 0
        learn(latency, hint: hint)
        guard away <= latency / 4 else {
            // The caller's stall is a large part of the measured latency.
            if phase == .trying || phase == .probing { endTry() }
            return nil
        }
        switch phase {
        case .open, .held: judge(latency, wasFull, allowed: allowed, lag: lag + away, now: now)
        case .trying: return judgeTry(latency, wasFull, allowed: allowed, lag: lag, now: now)
        case .probing: endProbe(latency, wasFull, now: now)
        }
        return nil
    }

    // MARK: Decisions

    /// Lowers the base if `latency` is lower, by a quarter of the difference between the two. If
    /// the path has become shorter, the base reaches the latency of the path after several calls.
    private mutating func learn(_ latency: UInt64, hint: UInt64) {
        if base == .max {
            base = min(latency, hint)
        } else if latency < base {
            base -= max(1, (base - latency) / 4)
        }
    }

    private mutating func judge(
        _ latency: UInt64, _ wasFull: Bool, allowed: Int, lag: UInt64, now: UInt64
    ) {
        let slow =
            phase == .open
            ? max(slowLatency(lag: lag), Self.unremarkable) : slowLatency(lag: lag)
        guard wasFull else {
            slowWindows = 0
            return
        }
        if latency > slow {
            slowWindows += latency > 2 * slow ? 2 : 1
            guard slowWindows >= patience else { return }
            slowWindows = 0
            if min(limit, allowed) >= Self.leastTried {
                tryLess(latency, allowed: allowed, lag: lag)
            } else if phase == .held, now >= nextCheck {
                probe(latency)
            }
            return
        }
        slowWindows = 0
        guard phase == .held else { return }
        if latency < aimLatency(lag: lag) {
            limit += max(1, limit / 4)
            if limit >= allowed { release() }
        } else if now >= nextCheck {
            probe(latency)
        }
    }

    /// Starts a trial with half as many requests for one window, but not below the floor.
    private mutating func tryLess(_ latency: UInt64, allowed: Int, lag: UInt64) {
        assert(phase == .open || phase == .held, "one try at a time")
        let inFlight = min(limit, allowed)
        before = (limit, inFlight, latency)
        limit = max(Self.floor, inFlight / 2)
        phase = .trying
    }

    private mutating func judgeTry(
        _ latency: UInt64, _ wasFull: Bool, allowed: Int, lag: UInt64, now: UInt64
    ) -> Finding? {
        guard wasFull, allowed >= limit else {
            // Rows ran short, or the server itself allows less: the trial is inconclusive.
            endTry()
            return nil
        }
        guard latency < (before.latency + proportionalLatency) / 2 else {
            endTry()
            base = max(base, latency)
            patience = min(2 * patience, Self.longestPatience)
            return nil
        }
        patience = Self.shortestPatience
        limit = max(Self.floor, share(of: before.inFlight, aimLatency(lag: lag), before.latency))
        assert(limit <= before.inFlight, "a queue does not raise the limit")
        phase = .held
        planProbe(before.latency, now: now)
        return Finding(
            aloneNanoseconds: base, loadedNanoseconds: before.latency,
            inFlight: before.inFlight, limit: limit)
    }

    private mutating func endTry() {
        assert(phase == .trying || phase == .probing, "only a try ends")
        limit = before.limit
        phase = limit < .max ? .held : .open
    }

    private mutating func release() {
        limit = .max
        phase = .open
        nextCheck = .max
    }

    // MARK: Probes of the base

    /// Measures the base again, because a limited connection never shows its latency without load.
    /// For one window, allows half of the requests in flight that fill a path whose latency is the
    /// base.
    private mutating func probe(_ latency: UInt64) {
        assert(phase == .held, "only a held limit is tried")
        before = (limit, limit, latency)
        limit = max(Self.floor, share(of: limit, base / 2, latency))
        phase = .probing
    }

    private mutating func endProbe(_ latency: UInt64, _ wasFull: Bool, now: UInt64) {
        assert(phase == .probing, "a look ends once")
        // If a queue can explain the latency, the latency is only an upper bound of the base.
        let isPath = wasFull && latency > proportionalLatency + proportionalLatency / 4
        if isPath || latency < base { base = latency }
        limit = before.limit
        phase = .held
        planProbe(before.latency, now: now)
    }

    private mutating func planProbe(_ latency: UInt64, now: UInt64) {
        nextCheck = now + max(Self.probeInterval, Self.probeLatencies * latency)
    }

    /// Latency before the change, scaled down in proportion to the requests in flight.
    private var proportionalLatency: UInt64 { scaled(before.latency, limit, before.inFlight) }

    /// `count` x `part` / `whole`, at most `count`.
    private func share(of count: Int, _ part: UInt64, _ whole: UInt64) -> Int {
        min(count, Int(scaled(UInt64(count), Int(part), Int(whole))))
    }

    private func scaled(_ value: UInt64, _ part: Int, _ whole: Int) -> UInt64 {
        let product = value.multipliedFullWidth(by: UInt64(part))
        return UInt64(max(1, whole)).dividingFullWidth(product).quotient
    }
}
