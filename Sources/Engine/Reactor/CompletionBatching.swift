import BroadsideSupport

/// Duration for which an iteration waits for more completions. Waking a thread costs more than
/// sending a dozen notifications. Under load, it therefore saves time to process the responses of
/// several connections together.
///
/// The wait is a fraction of the response latency, up to a limit, so that it costs little
/// throughput. Responses of one connection arrive together anyway.
struct CompletionBatching {
    /// How long a driver waits: until this number of completions has arrived, not counting
    /// completions of its own sends, or until `nanoseconds` have passed.
    struct Wait: Sendable, Equatable {
        var completions: UInt32
        var nanoseconds: UInt64
    }

    /// Smoothed response latency, nanoseconds; 0: unknown.
    private var latency: UInt64 = 0
    /// Latency of the latest response since the last iteration; 0: none.
    private var sample: UInt64 = 0
    /// Connections that are ready to send.
    var readyConnections = 0

    /// Maximum wait, nanoseconds. Below it, the wait is the response latency divided by
    /// `shareOfLatency`.
    static var limit: UInt64 { millisecond }
    static var shareOfLatency: UInt64 { 2 }
    /// Minimum number of responses expected during a wait. If fewer are expected, the reactor does
    /// not wait for several responses.
    static var responsesExpected: UInt64 { 8 }
    /// Maximum number of completions to wait for before an iteration.
    static var completionsLimit: Int { 128 }

    @inline(__always)
    mutating func recordResponse(nanoseconds: UInt64) {
        sample = nanoseconds
    }

    mutating func recordIteration() {
        guard sample > 0 else { return }
        latency = latency == 0 ? sample : latency - latency / 8 + sample / 8
        sample = 0
    }

    /// Wait before the next iteration; nil if the next completion starts it at once.
    func wait(inFlight: Int) -> Wait? {
        // One fewer than the connections: waiting for the last one would leave the others idle.
        let completions = min(readyConnections - 1, Self.completionsLimit)
        assert(readyConnections >= 0)
        guard completions > 1, latency > 0 else { return nil }
        let nanoseconds = min(latency / Self.shareOfLatency, Self.limit)
        let expected = (UInt64(inFlight) * nanoseconds) / latency
        guard expected >= Self.responsesExpected else { return nil }
        return Wait(completions: UInt32(completions), nanoseconds: nanoseconds)
    }
}
