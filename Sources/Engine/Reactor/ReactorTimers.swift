import BroadsideSupport

/// The instants that a reactor goes by, monotonic nanoseconds.
struct ReactorTimers {
    private(set) var lastIteration: UInt64
    private var nextScan: UInt64 = 0
    /// How often the process was stopped since the last scan.
    private var stallCount = 0
    /// When it last was not the server's doing that no response came: at the start, after the process was
    /// stopped, while something of our own kept rows from being sent.
    private(set) var silentSince: UInt64
    /// When the driver has to call again at the latest.
    var nextDeadline: UInt64

    /// Timers that need no precision are looked at this often.
    static var scanInterval: UInt64 { 50 * millisecond }
    /// After so long without a turn the process was stopped: turns are a scan apart at most.
    static var stallLimit: UInt64 { second }
    /// So long after a stall what came meanwhile has been taken in.
    static var stallGrace: UInt64 { second }
    /// After so many stalls a scan is made all the same: a machine may be too slow for faster turns.
    static var stallCountLimit: Int { 8 }

    init(now: Now) {
        silentSince = now.nanoseconds
        lastIteration = now.nanoseconds
        nextDeadline = now.nanoseconds
    }

    /// When the next scan is made, if nothing comes before.
    var scanDue: UInt64 { nextScan }

    /// A process that was stopped (SIGSTOP, a debugger, a frozen container) takes in first what came
    /// meanwhile: only then the scan may call a response, or a sign of life, missing.
    mutating func recordStall(now: UInt64) {
        guard now > lastIteration, now - lastIteration > Self.stallLimit else { return }
        silentSince = now
        guard stallCount < Self.stallCountLimit else { return }
        stallCount += 1
        nextScan = now + Self.stallGrace
    }

    /// No response can come now: a pause, the list's disk or the provider token keeps rows from being sent.
    mutating func recordHold(now: UInt64) { silentSince = now }

    /// True if it is time for a scan; the next one's time begins.
    mutating func takeScan(now: UInt64) -> Bool {
        guard now >= nextScan else { return false }
        nextScan = now + Self.scanInterval
        stallCount = 0
        return true
    }

    /// The time since the last call that gave one; nil below a millisecond: turns come faster than that
    /// under load, and a sample of each would cost more than it tells.
    mutating func takeElapsed(now: UInt64) -> UInt64? {
        let elapsed = now - lastIteration
        guard elapsed >= millisecond else { return nil }
        lastIteration = now
        return elapsed
    }
}
