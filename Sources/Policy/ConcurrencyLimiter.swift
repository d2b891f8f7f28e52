/// How many requests a connection may have in flight where its answers slow down under load: a
/// control by delay, in the manner of TCP Vegas, that proves its suspicion before it acts on it.
///
///     open --slow, though full--> trying --latency fell with the load--> held --now and then--> looking
///      ^                            |                                     ^  |                     |
///      '---- it did not: a longer   |                                     |  '-- grows, falls --.  |
///            path, not our load ----'                                     '---------------------+--'
///
/// It begins with no limit beside the server's, so that a long path is filled at once, and looks at
/// windows: the requests that went out since the last one ended, no fewer than `samplesMinimum` of
/// them answered. Of a window the shortest latency counts: a queue lengthens every answer's way,
/// jitter and a thread that did not run now and then do not. The base is the latency without load.
///
/// A window is slow above `slowLatency`, and evidence only where the connection was full. Then half
/// as many requests are tried: where latency falls with them, they were waiting in a queue, and by
/// Little's law (requests in flight = rate x latency) the limit that gives `aimLatency` costs no
/// throughput. Where it does not, the path is what it is: it becomes the base, the limit goes.
///
/// The clock is a parameter, in monotonic nanoseconds; no allocation, nothing that counts.
public struct ConcurrencyLimiter: Sendable {
    /// What a try found out: answers take longer because of our requests.
    public struct Finding: Sendable, Equatable {
        /// Latency without load, nanoseconds.
        public var aloneNanoseconds: UInt64
        /// Latency with `inFlight` requests, nanoseconds.
        public var loadedNanoseconds: UInt64
        /// Requests in flight that were too many.
        public var inFlight: Int
        /// Requests in flight that are allowed now.
        public var limit: Int
    }

    private enum Phase {
        case open, trying, held, probing
    }

    /// The most requests in flight; `Int.max` where nothing speaks for fewer.
    public private(set) var limit = Int.max
    /// The latency without load, nanoseconds; `UInt64.max` before the first window.
    public private(set) var base = UInt64.max

    private var phase = Phase.open
    /// Requests that went out up to then are not part of the window: those that a higher limit let
    /// go at once met the queue of the lower one.
    private var windowStart: UInt64
    private var shortest = UInt64.max
    private var samples = 0
    private var wasFull = false
    /// The longest time in the window during which the caller did not run, nanoseconds.
    private var away: UInt64 = 0

    private var slowWindows = 0
    /// Slow windows in a row that lead to a try; twice as many after each that was in vain.
    private var patience = ConcurrencyLimiter.shortestPatience
    /// What was so before the try, or before the look at the base.
    private var before = (limit: Int.max, inFlight: 0, latency: UInt64(0))
    private var nextCheck = UInt64.max

    /// The limit never falls below: about what one TLS record holds.
    static var floor: Int { 32 }
    /// Answers that make a window.
    static var samplesMinimum: Int { 64 }
    /// No window is shorter, nanoseconds.
    static var shortestWindow: UInt64 { 100_000_000 }
    /// Half of what is always forgiven: jitter, and what stands in queues on the way.
    static var slack: UInt64 { 10_000_000 }
    /// Answers that take no longer are never a reason to begin, nanoseconds: a queue so short
    /// harms nobody, and keeps a busy server's batches full.
    static var unremarkable: UInt64 { 150_000_000 }
    /// Where fewer are in flight, too little could be tried to tell anything.
    private static var leastTried: Int { floor + floor / 4 }
    private static var shortestPatience: Int { 2 }
    private static var longestPatience: Int { 64 }
    /// A held connection's base is looked at again so often, nanoseconds, or after so many latencies.
    private static var probeInterval: UInt64 { 20_000_000_000 }
    private static var probeLatencies: UInt64 { 64 }

    /// - Parameter now: When the connection became ready: what goes out at once meets no queue.
    public init(now: UInt64) { windowStart = now - min(1, now) }

    /// Above this, nanoseconds, answers are slow.
    ///
    /// - Parameter lag: How long the caller takes to look again, nanoseconds: its own part of a
    ///   latency, at both ends.
    func slowLatency(lag: UInt64) -> UInt64 { 2 * (base + Self.slack + lag) }

    /// What a limit aims at; below, it grows.
    func aimLatency(lag: UInt64) -> UInt64 { base + base / 2 + Self.slack + lag }

    // MARK: What happens

    /// A request was accepted that went out at `sent`.
    public mutating func recordResponse(sent: UInt64, now: UInt64) {
        guard sent > windowStart else { return }
        samples &+= 1
        if now - sent < shortest { shortest = now - sent }
    }

    /// As many requests are in flight as may be.
    public mutating func recordFullWindow() { wasFull = true }

    /// The caller did not run for so long: by so much, at each of its ends, a latency may seem
    /// longer than it is.
    public mutating func recordStall(nanoseconds: UInt64) { away = max(away, nanoseconds) }

    /// Whether the window's answers are in.
    public func isDue(now: UInt64) -> Bool {
        samples >= Self.samplesMinimum && now >= windowStart + Self.shortestWindow
    }

    /// Ends the window and decides.
    ///
    /// - Parameters:
    ///   - allowed: Requests in flight that the server and the operator allow.
    ///   - hint: The base of other connections to the same place, for one that never saw it without
    ///     load; `UInt64.max`: unknown.
    ///   - lag: As in `slowLatency`.
    /// - Returns: What was found out, where that is news.
    public mutating func endWindow(
        now: UInt64, allowed: Int, hint: UInt64, lag: UInt64
    ) -> Finding? {
        assert(limit >= Self.floor, "the limit stays above its floor")
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
            // The caller's absence is a good part of what it saw.
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

    // MARK: What it means

    /// A lucky answer moves the base a little, a path that is shorter moves it all the way.
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

    /// Half as many for a window; less far where the floor is near.
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
            // Rows ran short, or the server allows less itself: nothing was found out.
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
        phase = .held
        planProbe(before.latency, now: now)
        return Finding(
            aloneNanoseconds: base, loadedNanoseconds: before.latency,
            inFlight: before.inFlight, limit: limit)
    }

    private mutating func endTry() {
        limit = before.limit
        phase = limit < .max ? .held : .open
    }

    private mutating func release() {
        limit = .max
        phase = .open
        nextCheck = .max
    }

    // MARK: A look at the base

    /// A held connection never sees its base: for one window it has half as many requests in flight
    /// as would fill the path, should the base be true.
    private mutating func probe(_ latency: UInt64) {
        assert(phase == .held, "only a held limit is tried")
        before = (limit, limit, latency)
        limit = max(Self.floor, share(of: limit, base / 2, latency))
        phase = .probing
    }

    private mutating func endProbe(_ latency: UInt64, _ wasFull: Bool, now: UInt64) {
        assert(phase == .probing, "a look ends once")
        // What a queue explains says only that the base is no longer than that.
        let isPath = wasFull && latency > proportionalLatency + proportionalLatency / 4
        if isPath || latency < base { base = latency }
        limit = before.limit
        phase = .held
        planProbe(before.latency, now: now)
    }

    private mutating func planProbe(_ latency: UInt64, now: UInt64) {
        nextCheck = now + max(Self.probeInterval, Self.probeLatencies * latency)
    }

    /// What the latency was before, as much shorter as fewer requests are in flight.
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
