internal import BroadsidePolicy

/// Settings that the operator may change while a run sends. They apply to all passes of the run.
package struct OperatorSettings: Sendable {
    /// The rate limit of the whole run, in requests per 1,000 seconds; nil: unlimited.
    var milliRate: UInt64?
    /// The progress of a rising rate, which sets `milliRate`; nil: the rate does not rise.
    var ramp: RampClock?
    /// Whether the run is paused. It then sends no new requests, but processes responses to
    /// requests in flight.
    var isPaused = false
}
