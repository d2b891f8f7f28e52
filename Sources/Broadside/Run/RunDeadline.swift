import BroadsideSupport

/// Time from which a process makes no new requests. It is fixed on the monotonic clock when the
/// process begins to send, so a wall clock that jumps later does not move it.
struct RunDeadline {
    /// Monotonic nanoseconds.
    private let nanoseconds: UInt64

    /// - Parameters:
    ///   - duration: Time from the first start, in nanoseconds.
    ///   - firstStart: Time at which the campaign began, milliseconds since 1970.
    init(_ duration: UInt64, firstStart: UInt64, now: Now) {
        let (time, isFar) = firstStart.addingReportingOverflow(duration / millisecond)
        let left = isFar ? .max : time - min(time, now.wallMilliseconds)
        let (wait, isLong) = left.multipliedReportingOverflow(by: millisecond)
        let (end, isNever) = now.nanoseconds.addingReportingOverflow(isLong ? .max : wait)
        nanoseconds = isNever ? .max : end
    }

    func hasPassed(_ now: Now) -> Bool { now.nanoseconds >= nanoseconds }

    /// Milliseconds until the deadline, rounded up; 0 if it has passed.
    func milliseconds(from now: Now) -> UInt64 {
        let left = nanoseconds - min(nanoseconds, now.nanoseconds)
        return left / millisecond + (left % millisecond > 0 ? 1 : 0)
    }
}
