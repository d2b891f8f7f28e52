extension SignalWatch {
    /// Writes what a process has to tell, on another thread: a disk that hangs below it, or a pipe that nobody
    /// reads, keeps no signal waiting. After a signal the writing has a moment left.
    ///
    /// - Parameters:
    ///   - name: What is written, for the error.
    ///   - patience: The longest wait, nanoseconds; nil: until a signal comes.
    ///   - isUrgent: Whether a signal has come before.
    ///   - work: What it uses is its own until it has ended.
    /// - Throws: What it throws, or that it is still busy (exit 5): then the process is to end.
    package func write(
        _ name: String, patience: UInt64? = outputTimeout, isUrgent: Bool = false,
        _ work: @escaping () throws(BroadsideError) -> Void
    ) throws(BroadsideError) {
        let start = Clock.now().nanoseconds
        let side = SideWork { Result { () throws(BroadsideError) in try work() } }
        var end = patience.map { start + $0 } ?? .max
        if isUrgent { end = min(end, start + Self.urgentTimeout) }
        while true {
            if let result = side.result { return try result.get() }
            let hasStop = isStopTaken(milliseconds: 100)
            let now = Clock.now().nanoseconds
            assert(now >= start, "the monotonic clock does not go back")
            if hasStop, isUrgent { Self.hurry() }
            if hasStop { end = min(end, now + Self.urgentTimeout) }
            guard now < end else {
                throw BroadsideError(
                    "\(name) is still being written: does its disk or network file system respond?",
                    exitCode: 5)
            }
        }
    }

    /// The longest wait for a file at the end of a run, nanoseconds: longer than a pipe's reader is waited for.
    package static var outputTimeout: UInt64 { 15 * second }

    /// The same after a signal.
    private static var urgentTimeout: UInt64 { 2 * second }
}
