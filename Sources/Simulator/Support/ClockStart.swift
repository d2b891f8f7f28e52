internal import Glibc

/// The origin that the clocks of all threads have in common.
struct ClockStart: Sendable {
    let nanoseconds: UInt64
    let microseconds: UInt64

    static func now() -> ClockStart {
        var wall = timespec()
        // SAFETY: clock_gettime(2) writes the timespec, a local variable, during the call.
        unsafe clock_gettime(CLOCK_REALTIME, &wall)
        return ClockStart(
            nanoseconds: monotonicNanoseconds(),
            microseconds: UInt64(max(0, wall.tv_sec)) * 1_000_000 + UInt64(wall.tv_nsec) / 1000)
    }

    /// Returns the current time in microseconds since the epoch: the wall clock's reading at the
    /// start plus the monotonic time since then.
    func microsecondsNow() -> UInt64 {
        microseconds + (Self.monotonicNanoseconds() - nanoseconds) / 1000
    }

    static func monotonicNanoseconds() -> UInt64 {
        var time = timespec()
        // SAFETY: clock_gettime(2) writes the timespec, a local variable, during the call.
        unsafe clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}
