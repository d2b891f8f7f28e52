/// An instant on both clocks that a run uses. Always passed as a parameter: the engine never reads
/// a clock.
package struct Now: Sendable {
    /// Monotonic nanoseconds, for delays, rates and latencies. They also count the time in which the
    /// machine is suspended.
    package var nanoseconds: UInt64
    /// Milliseconds since 1970, for the ledger and for provider tokens.
    package var wallMilliseconds: UInt64

    package init(nanoseconds: UInt64, wallMilliseconds: UInt64) {
        self.nanoseconds = nanoseconds
        self.wallMilliseconds = wallMilliseconds
    }
}

/// Nanoseconds in a second.
@inlinable package var second: UInt64 { 1_000_000_000 }
/// Nanoseconds in a millisecond.
@inlinable package var millisecond: UInt64 { 1_000_000 }
