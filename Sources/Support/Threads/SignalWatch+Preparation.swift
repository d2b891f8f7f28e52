internal import Glibc
internal import Synchronization

extension SignalWatch {
    /// Does the work that precedes the first send, on another thread. A blocked disk then delays
    /// neither a signal nor the deadline.
    ///
    /// A first signal or the deadline requests the end of the work. The work ends at its next call
    /// of `stopIfRequested`. If this call does not come within `preparationTimeout`, or a second
    /// signal arrives first, this method throws while the work still runs.
    ///
    /// - Parameters:
    ///   - deadline: Nanoseconds from now; nil for no deadline.
    ///   - work: The work, which has exclusive use of its captured state until it has ended.
    /// - Throws: The error of the work, `stopped` after a signal, or `late` after the deadline.
    ///   After `stopped` or `late`, the work may still be running, and the process must end.
    package func prepare<Value>(
        deadline: UInt64? = nil, _ work: @escaping () throws(BroadsideError) -> Value
    ) throws(BroadsideError) -> Value {
        if let host = HostedRun.current {
            return try Self.prepare(for: host, deadline: deadline, work)
        }
        Self.isStopRequested.store(false, ordering: .relaxed)
        let start = Clock.now().nanoseconds
        let wakers = SignalSet([SIGINT, SIGTERM, Self.notification])
        let side = SideWork { Result { () throws(BroadsideError) in try work() } }
        var taken: [Int32] = []
        var endOfPatience = UInt64.max
        while true {
            if let result = side.result {
                Self.isStopRequested.store(false, ordering: .relaxed)
                // A signal that arrived too late for the preparation is left to the run.
                if case .success = result { for signal in taken { kill(getpid(), signal) } }
                if case .failure(let error) = result, error.exitCode == Self.stopped.exitCode,
                    taken.isEmpty, endOfPatience != .max
                {
                    throw Self.late
                }
                return try result.get()
            }
            if let signal = wakers.take(nanoseconds: 100_000_000), signal != Self.notification {
                taken.append(signal)
            }
            let now = Clock.now().nanoseconds
            assert(now >= start, "the monotonic clock does not go back")
            let isLate = deadline.map { now - start >= $0 } ?? false
            if isLate || !taken.isEmpty, endOfPatience == .max {
                Self.isStopRequested.store(true, ordering: .relaxed)
                endOfPatience = now + Self.preparationTimeout
            }
            if taken.count > 1 { Self.hurry() }
            guard taken.count < 2, now < endOfPatience else {
                throw taken.isEmpty ? Self.late : Self.stopped
            }
        }
    }

    /// Does the work that precedes the first send of a hosted run. The work is never abandoned,
    /// because the host's process continues.
    private static func prepare<Value>(
        for host: HostedRun, deadline: UInt64?, _ work: @escaping () throws(BroadsideError) -> Value
    ) throws(BroadsideError) -> Value {
        let start = Clock.now().nanoseconds
        let side = SideWork { Result { () throws(BroadsideError) in try work() } }
        while true {
            if let result = side.result {
                let wasLate = host.endPreparation()
                if case .failure(let error) = result, error.exitCode == stopped.exitCode, wasLate {
                    throw late
                }
                return try result.get()
            }
            host.awaitNotification(milliseconds: 100)
            if let deadline, Clock.now().nanoseconds - start >= deadline { host.stopPreparation() }
        }
    }

    /// Maximum wait for the end of stopped preparatory work, in nanoseconds.
    private static var preparationTimeout: UInt64 { 2 * second }

    /// The error of preparatory work that `--deadline` ended.
    private static var late: BroadsideError {
        BroadsideError(
            "the deadline passed before the first row was sent: run the same command with --resume "
                + "and a later --deadline to continue", exitCode: 3)
    }
}
