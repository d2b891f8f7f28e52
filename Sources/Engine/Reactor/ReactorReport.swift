/// What a thread used up to an instant.
package struct ThreadUse: Sendable, Equatable {
    /// User and system time, nanoseconds.
    var cpuNanoseconds: UInt64 = 0
    /// Monotonic nanoseconds.
    var atNanoseconds: UInt64 = 0

    /// The share of the time since an earlier look for which the thread worked; nil where no time
    /// has passed.
    package func share(since earlier: ThreadUse) -> Double? {
        guard atNanoseconds > earlier.atNanoseconds else { return nil }
        let worked = cpuNanoseconds - min(cpuNanoseconds, earlier.cpuNanoseconds)
        return Double(worked) / Double(atNanoseconds - earlier.atNanoseconds)
    }
}

/// What a reactor reports a few times a second: copies, made by its own thread.
package struct ReactorReport: Sendable {
    package var statistics = RunStatistics()
    package var latency = LatencyCounts()
    /// CPU time of the reactor's thread, and when it was read: nanoseconds.
    var threadUse = ThreadUse()
    /// By connection slot; the last one stands for all beyond the limit.
    package var connections: [ConnectionTally] = []

    package init() {}
}
