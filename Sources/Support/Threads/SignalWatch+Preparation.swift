internal import Glibc
internal import Synchronization

extension SignalWatch {
    /// Does work before the first send on another thread, so that a disk that hangs below it keeps no
    /// signal and no deadline waiting. A first signal and the deadline end it where it looks at
    /// `stopIfRequested`; it is left alone after a second one, or where it looks there no more.
    ///
    /// - Parameters:
    ///   - deadline: Nanoseconds from now; nil: none.
    ///   - work: What it uses is its own until it has ended.
    /// - Throws: What it throws, or `stopped`: then it may still go on, and the process is to end.
    package func prepare<Value>(
        deadline: UInt64? = nil, _ work: @escaping () throws(BroadsideError) -> Value
    ) throws(BroadsideError) -> Value {
        Self.isStopRequested.store(false, ordering: .relaxed)
        let start = Clock.now().nanoseconds
        let wakers = SignalSet([SIGINT, SIGTERM, Self.notification])
        let side = SideWork { Result { () throws(BroadsideError) in try work() } }
        var taken: [Int32] = []
        var endOfPatience = UInt64.max
        while true {
            if let result = side.result {
                Self.isStopRequested.store(false, ordering: .relaxed)
                // One that came too late for this is the run's to take.
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

    /// The longest wait for work before the first send that is to end, nanoseconds.
    private static var preparationTimeout: UInt64 { 2 * second }

    /// The same where it was `--deadline` that ended it.
    private static var late: BroadsideError {
        BroadsideError(
            "the deadline passed before the first row was sent: run the same command with --resume "
                + "and a later --deadline to continue", exitCode: 3)
    }
}
