import BroadsideSupport

/// How long a turn waits for company. Waking a thread costs more than a dozen notifications, so
/// that under load it pays to let a few connections' answers come together.
///
/// The wait is a fraction of the time that an answer takes, with an upper limit: what it can cost
/// in throughput is small where answers are slow, and where they are fast the server is as busy as
/// we are. One connection's answers come together anyway.
struct CompletionBatching {
    /// What a driver waits for: so many completions besides those of its sends, or the time.
    struct Wait: Sendable, Equatable {
        var completions: UInt32
        var nanoseconds: UInt64
    }

    /// The time from a request to its answer, smoothed, nanoseconds; 0: unknown.
    private var latency: UInt64 = 0
    /// The latest answer's since the last turn; 0: none came.
    private var sample: UInt64 = 0
    /// Connections that are ready to send.
    var readyConnections = 0

    /// The longest wait, and its share of the time that an answer takes.
    static var limit: UInt64 { millisecond }
    static var shareOfLatency: UInt64 { 2 }
    /// Where fewer answers than that are to be expected meanwhile, each is looked at as it comes.
    static var responsesExpected: UInt64 { 8 }
    /// A turn with so many completions is full.
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

    /// Nil: the next completion is worth a turn of its own.
    func wait(inFlight: Int) -> Wait? {
        // All but one: who waits for the last connection lets the others stand idle.
        let completions = min(readyConnections - 1, Self.completionsLimit)
        guard completions > 1, latency > 0 else { return nil }
        let nanoseconds = min(latency / Self.shareOfLatency, Self.limit)
        let expected = (UInt64(inFlight) * nanoseconds) / latency
        guard expected >= Self.responsesExpected else { return nil }
        return Wait(completions: UInt32(completions), nanoseconds: nanoseconds)
    }
}
