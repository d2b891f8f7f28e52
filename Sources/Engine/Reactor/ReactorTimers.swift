import BroadsideSupport

/// The times of a reactor, in monotonic nanoseconds.
struct ReactorTimers {
    private(set) var lastIteration: UInt64
    private var nextScan: UInt64 = 0
    /// Number of stalls since the last scan.
    private var stallCount = 0
    /// Total time during which a response was possible but none came.
    var responseWait: ResponseWait
    /// Time at which the driver must call again at the latest.
    var nextDeadline: UInt64

    /// Interval between checks of timers that need no precision.
    static var scanInterval: UInt64 { 50 * millisecond }
    /// The process counts as stalled if two iterations are further apart than this. Normally, they
    /// are at most a scan interval apart.
    static var stallLimit: UInt64 { second }
    /// Delay of the next scan after a stall, so that the input that arrived during the stall is
    /// processed first.
    static var stallGrace: UInt64 { second }
    /// Maximum number of stalls that delay a scan. The scan then takes place even after another
    /// stall, because each iteration of a very slow machine counts as a stall.
    static var stallCountLimit: Int { 8 }

    init(now: Now) {
        responseWait = ResponseWait(now: now.nanoseconds)
        lastIteration = now.nanoseconds
        nextDeadline = now.nanoseconds
    }

    /// Time of the next scan, unless an earlier event triggers one.
    var scanDue: UInt64 { nextScan }

    /// Delays the scan after a stall (SIGSTOP, a debugger, a frozen container, a suspended machine). Input that arrived
    /// during the stall is processed first. Otherwise, responses and signs of life would wrongly
    /// count as missing.
    ///
    /// - Returns: True if the stall was so long that connections may be dead.
    mutating func recordStall(now: UInt64) -> Bool {
        guard now > lastIteration, now - lastIteration > Self.stallLimit else { return false }
        responseWait.skip(to: now)
        if stallCount < Self.stallCountLimit {
            stallCount += 1
            nextScan = now + Self.stallGrace
        }
        return now - lastIteration > Liveness.silenceLimit
    }

    /// Returns true if a scan is due, and schedules the next one.
    mutating func takeScan(now: UInt64) -> Bool {
        guard now >= nextScan else { return false }
        assert(stallCount <= Self.stallCountLimit)
        nextScan = now + Self.scanInterval
        stallCount = 0
        return true
    }

    /// Time since the last call that returned a value; nil if that is less than a millisecond.
    /// Under load, iterations are more frequent, and a sample in each would cost too much.
    mutating func takeElapsed(now: UInt64) -> UInt64? {
        let elapsed = now - lastIteration
        guard elapsed >= millisecond else { return nil }
        lastIteration = now
        return elapsed
    }
}
