internal import BroadsideSupport

/// A `wait` of a client for requests to the simulator.
struct RequestWait {
    private let count: UInt64
    private let filter: ReceivedFilter
    private let log: ReceivedLog
    private let shared: EndpointShared
    private let deadline: UInt64
    private var mark: ReceivedLog.Mark
    private var found: UInt64 = 0

    /// - Parameters:
    ///   - count: The number of requests to wait for.
    ///   - number: Only requests after this number count.
    ///   - nanoseconds: Maximum duration, from now on.
    init(
        count: UInt64, after number: UInt64, _ filter: ReceivedFilter, nanoseconds: UInt64,
        log: ReceivedLog, shared: EndpointShared
    ) {
        self.count = count
        self.filter = filter
        self.log = log
        self.shared = shared
        deadline = ClockStart.monotonicNanoseconds() + nanoseconds
        mark = log.mark(number)
    }

    /// Returns the response, or nil as long as too few requests have come. Throws if the time is over
    /// or the simulator ends.
    mutating func response() throws(ControlProblem) -> String? {
        found += UInt64(log.count(after: &mark, filter))
        if found >= count {
            var line = ControlCommands.success
            line.add("count", found)
            line.add("last", mark.number)
            return line.object
        }
        guard ClockStart.monotonicNanoseconds() < deadline, !shared.isStopping else {
            throw ControlProblem(
                .late,
                "only \(found) of \(count) requests came within the timeout: list them with "
                    + "'received', or wait longer with timeout=30s")
        }
        return nil
    }
}
