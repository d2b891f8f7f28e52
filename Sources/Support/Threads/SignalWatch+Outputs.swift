extension SignalWatch {
    /// Writes output on another thread, so that a blocked disk or an unread pipe delays no signal.
    /// After a signal, only a short time is left for writing.
    ///
    /// - Parameters:
    ///   - name: A description of the output for the error.
    ///   - patience: Maximum wait in nanoseconds; nil waits until a signal arrives.
    ///   - isUrgent: Whether a signal has already arrived.
    ///   - work: The work, which has exclusive use of its captured state until it has ended.
    /// - Throws: The error of the work, or the error that the work is still busy (exit code 5).
    ///   After the latter, the process must end.
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
                    "\(name) is still being written: check that its disk or network file system responds",
                    exitCode: 5)
            }
        }
    }

    /// Maximum wait for a file at the end of a run, in nanoseconds. It is longer than the maximum
    /// wait for the reader of a pipe.
    package static var outputTimeout: UInt64 { 15 * second }

    /// Maximum wait for a file after a signal, in nanoseconds.
    private static var urgentTimeout: UInt64 { 2 * second }
}
