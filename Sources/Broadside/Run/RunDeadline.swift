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

extension SendOptions {
    /// Time from a ledger's first start to the deadline, in nanoseconds; 0 if the deadline had
    /// passed by then; nil if there is none. A night's deadline counts from the night's first start,
    /// which may have ended before it began the ledger.
    ///
    /// - Parameter ledgerStart: First start of the ledger, in milliseconds.
    func deadline(from ledgerStart: UInt64) -> UInt64? {
        let passed = ledgerStart - min(ledgerStart, nightStartedAtMilliseconds ?? ledgerStart)
        return deadline.map { passed < $0 / millisecond ? $0 - passed * millisecond : 0 }
    }
}
