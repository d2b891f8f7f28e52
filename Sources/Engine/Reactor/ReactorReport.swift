/// CPU time of a thread up to an instant.
package struct ThreadUse: Sendable, Equatable {
    /// User and system time, nanoseconds.
    var cpuNanoseconds: UInt64 = 0
    /// Time of the reading, monotonic nanoseconds.
    var atNanoseconds: UInt64 = 0

    /// Share of the time since an earlier reading during which the thread used a CPU: 0 to 1; nil
    /// if no time has passed.
    package func share(since earlier: ThreadUse) -> Double? {
        guard atNanoseconds > earlier.atNanoseconds else { return nil }
        let worked = cpuNanoseconds - min(cpuNanoseconds, earlier.cpuNanoseconds)
        return Double(worked) / Double(atNanoseconds - earlier.atNanoseconds)
    }
}

/// A report of a reactor, made by its own thread a few times per second.
package struct ReactorReport: Sendable {
    package var statistics = RunStatistics()
    package var latency = LatencyCounts()
    /// CPU time of the reactor's thread and the time of the reading, nanoseconds.
    var threadUse = ThreadUse()
    /// The totals of each connection slot; the last entry adds up all slots beyond the limit.
    package var connections: [ConnectionTally] = []

    package init() {}
}
