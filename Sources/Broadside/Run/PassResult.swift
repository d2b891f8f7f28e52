import BroadsideEngine
import BroadsidePolicy
import BroadsideSupport

/// What the reactors of a pass did, after all of them have ended.
struct PassResult {
    var statistics = RunStatistics()
    var latency = LatencyCounts()
    /// Time of sending.
    let seconds: Double
    /// The first reactor's failure; nil if none failed.
    let failure: StopCause?

    init(of threads: [ReactorThread], sendingSince begin: Now) {
        assert(threads.allSatisfy(\.hasEnded), "a reactor's counts are final when it has ended")
        for thread in threads { thread.collect(&statistics, &latency) }
        seconds =
            threads.isEmpty ? 0 : Double(Clock.now().nanoseconds - begin.nanoseconds) / 1e9
        failure = threads.lazy.compactMap(\.failure).first
    }
}
