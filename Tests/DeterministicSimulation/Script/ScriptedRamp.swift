import BroadsidePolicy
import BroadsideSupport

/// A rate that rises, in half of the seeds that have a rate.
struct ScriptedRamp {
    /// Requests per second at the start.
    let first: UInt64
    /// Requests per second at the end.
    let last: UInt64
    let riseNanoseconds: UInt64

    /// Uses its own generator, so that a seed's other draws stay the same.
    init?(seed: UInt64, rate: UInt64?) {
        guard let rate else { return nil }
        var random = SimulationRandom(seed: seed ^ 0x7261_6d70_0000_0001)
        guard random.chance(0.5) else { return nil }
        first = random.pick([1, max(1, rate / 50), max(1, rate / 3), rate])
        last = rate
        riseNanoseconds = random.pick([70, 1_000, 10_000, 90_000]) * millisecond
    }

    /// The engine's settings.
    var ramp: RateRamp {
        RateRamp(first: first * 1000, last: last * 1000, riseNanoseconds: riseNanoseconds)
    }

    // MARK: What is judged by, in floating point, without the engine's code

    /// Maximum time after a request that counts as sending time.
    private var grace: UInt64 { max(second, second / first) }

    /// Sending time between two requests, in seconds.
    func counted(from: UInt64, to: UInt64) -> Double { Double(min(to - from, grace)) / 1e9 }

    /// Requests per second after this many seconds of sending.
    func rate(after seconds: Double) -> Double {
        let rise = Double(riseNanoseconds) / 1e9
        guard seconds < rise else { return Double(last) }
        return Double(first) + (Double(last) - Double(first)) * seconds / rise
    }

    /// Integral of the rate over this many seconds of sending.
    func requests(within seconds: Double) -> Double {
        let rise = Double(riseNanoseconds) / 1e9
        let rising = min(seconds, rise)
        return (Double(first) + rate(after: rising)) / 2 * rising
            + Double(last) * (seconds - rising)
    }
}
