import BroadsideEngine

/// The limits on the numbers of a telemetry file, which may be edited or damaged. The sums of these
/// numbers must not overflow, and every time must be a valid date.
extension Telemetry {
    /// Latest valid time: the last millisecond of the year 9999.
    private static let millisecondsLimit: UInt64 = 253_402_300_799_999
    /// Maximum duration, in seconds: about a century.
    private static let secondsLimit = 3.2e9
    /// Maximum value of a count. With this limit, the sum of all counts in a file fits into 64
    /// bits.
    private static let countLimit: UInt64 = 1 << 48
    /// Limit on times in nanoseconds. A time may be a sum over all connections.
    private static let nanosecondsLimit: UInt64 = 1 << 60
    /// Limit on times in microseconds. Converted to nanoseconds, it is at most `nanosecondsLimit`.
    private static let microsecondsLimit: UInt64 = 1 << 50
    private static let slotsLimit = 1 << 31

    /// Whether every number is within its limit.
    var isPlausible: Bool {
        runs.count <= Self.runsLimit && events.count <= Self.eventsLimit
            && runs.lazy.map(\.points.count).reduce(0, +) <= Self.pointsLimit
            && listModifiedAtMilliseconds ?? 0 <= Self.millisecondsLimit
            && eventsLost <= Self.countLimit && runs.allSatisfy(Self.isPlausible)
            && connections.count <= ConnectionTally.rowsLimit
            && connections.allSatisfy(Self.isPlausible)
            && events.allSatisfy { $0.milliseconds <= Self.millisecondsLimit }
            && latency.maximumNanoseconds <= Self.nanosecondsLimit && isPlausible(ramp)
            && waves?.count ?? 0 <= Self.wavesLimit
            && waves?.allSatisfy {
                $0.atMilliseconds <= Self.millisecondsLimit && $0.rows <= Self.countLimit
            } ?? true
    }

    private func isPlausible(_ ramp: Ramp?) -> Bool {
        guard let ramp else { return true }
        return ramp.first <= ramp.last && ramp.sentNanoseconds <= ramp.riseNanoseconds
    }

    private static func isPlausible(_ run: Run) -> Bool {
        let pauses = run.pauses ?? []
        return run.startedAtMilliseconds <= millisecondsLimit
            && isPlausible(seconds: run.elapsedSeconds) && run.retries <= countLimit
            && run.waitedUntilMilliseconds ?? 0 <= millisecondsLimit
            && (0...slotsLimit).contains(run.earlierPasses ?? 0)
            && run.shortened ?? 0 <= countLimit
            && run.waves?.count ?? 0 <= wavesLimit
            && run.waves?.allSatisfy { (0..<wavesLimit).contains($0) } ?? true
            && run.reconnects <= countLimit && areShares(run.limited)
            && run.failed ?? 0 <= countLimit && run.unknown ?? 0 <= countLimit
            && pauses.count <= pausesLimit
            && pauses.allSatisfy {
                $0.startedAtMilliseconds <= millisecondsLimit
                    && $0.endedAtMilliseconds ?? 0 <= millisecondsLimit
            } && run.points.allSatisfy(isPlausible)
    }

    private static func isPlausible(_ point: TimeSeries.Point) -> Bool {
        let counts = [point.accepted, point.rejected, point.others, point.answers]
        return isPlausible(seconds: point.start) && isPlausible(seconds: point.duration)
            && counts.allSatisfy { $0 <= countLimit } && point.p50 ?? 0 <= microsecondsLimit
            && point.p99 ?? 0 <= microsecondsLimit && (0...slotsLimit).contains(point.inFlight)
            && areShares(point.limited, limit: microsecondsLimit)
    }

    private static func isPlausible(_ tally: ConnectionTally) -> Bool {
        let counts = [tally.opened, tally.responses, tally.goAways, tally.failures]
        return (0...slotsLimit).contains(tally.number ?? 0)
            && counts.allSatisfy { $0 <= countLimit }
            && tally.latencySumNanoseconds <= nanosecondsLimit
            && tally.latencyMaximumNanoseconds <= nanosecondsLimit
    }

    private static func isPlausible(seconds: Double) -> Bool {
        (0...secondsLimit).contains(seconds)
    }

    private static func areShares(
        _ times: [UInt64], limit: UInt64 = nanosecondsLimit
    ) -> Bool {
        times.count <= Bottleneck.allCases.count && times.allSatisfy { $0 <= limit }
    }
}
