package import BroadsideEngine
package import BroadsideObservability
package import BroadsideSupport
internal import Synchronization

/// End of a run, as the run recorded it.
package struct RunEnd: Sendable {
    package let summary: Summary
    /// The exit code that `broadside send` would have.
    package let exitCode: Int32
    /// Description of the problem and its remedy; nil if there is none.
    package let message: String?
}

/// Receives the reports of a hosted run. Its methods are called on threads of the run and must not
/// block.
package protocol RunObserver: Sendable {
    /// Called when the run begins to send.
    func begin()
    func take(_ snapshot: RunSnapshot)
    func take(_ event: RunEvent)
    /// Called when the run has recorded its end; its thread ends soon after.
    func end(_ end: RunEnd)
}

/// Connects a program with the campaign that it runs. Passes the program's requests to the run, and
/// the run's reports to the program.
package final class RunHost: Sendable {
    /// A request to change a running send.
    package enum Request: Equatable, Sendable {
        /// Requests per second; nil: unlimited.
        case rate(Double?)
        case pause
        case resume
        case stop
    }

    private struct Order: Sendable {
        let request: Request
        let respond: @Sendable (BroadsideError?) -> Void
    }

    private struct Orders: Sendable {
        var waiting: [Order] = []
        var isClosed = false
    }

    /// Limit on requests that wait to be performed.
    private static let ordersLimit = 64

    /// Interface to the run's threads, in place of signals and standard error.
    package let threads: HostedRun
    /// Rows that the program supplies; nil: the list is a file.
    let rows: RowSpool?
    private let observer: any RunObserver
    private let orders = Mutex(Orders())
    private let hasBegun = Atomic(false)
    private let isStopRequested = Atomic(false)

    package init(_ threads: HostedRun, observer: any RunObserver, rows: RowSpool?) {
        self.threads = threads
        self.observer = observer
        self.rows = rows
    }

    /// Whether the process's resource limits may be raised.
    var raisesLimits: Bool { threads.raisesLimits }

    // MARK: For the program

    /// Requests a change of the run.
    ///
    /// - Parameter respond: Called once: with nil if the run made the change, otherwise with the
    ///   error.
    package func put(_ request: Request, _ respond: @escaping @Sendable (BroadsideError?) -> Void) {
        let refusal = orders.withLock { orders -> BroadsideError? in
            if orders.isClosed { return Self.ended }
            guard orders.waiting.count < Self.ordersLimit else { return Self.busy }
            orders.waiting.append(Order(request: request, respond: respond))
            return nil
        }
        if let refusal { respond(refusal) } else { threads.notify() }
    }

    /// Requests the end of the run. The run awaits the responses to requests in flight, even if the
    /// end is requested again.
    package func requestStop() {
        rows?.cancel()
        if hasBegun.load(ordering: .acquiring) { return put(.stop) { _ in } }
        guard !isStopRequested.exchange(true, ordering: .relaxed) else { return }
        threads.requestStop()
    }

    /// Requests the end of the run, without waiting for responses.
    package func requestStopAtOnce() {
        requestStop()
        threads.requestStop()
        threads.requestStop()
    }

    private static var ended: BroadsideError {
        BroadsideError("the run has ended: start another one", exitCode: ExitCode.rowsRemain)
    }

    private static var busy: BroadsideError {
        BroadsideError(
            "\(ordersLimit) requests to the run are waiting already: await one before you make another",
            exitCode: ExitCode.failure)
    }

    // MARK: For the run

    /// Performs the waiting requests.
    func serve(_ obey: (Request) throws(BroadsideError) -> Void) {
        let waiting = orders.withLock { orders in
            defer { orders.waiting = [] }
            return orders.waiting
        }
        for order in waiting {
            do throws(BroadsideError) {
                try obey(order.request)
                order.respond(nil)
            } catch {
                order.respond(error)
            }
        }
    }

    /// Refuses all requests, because the run is over.
    package func close() {
        let waiting = orders.withLock { orders in
            defer { orders.waiting = [] }
            orders.isClosed = true
            return orders.waiting
        }
        for order in waiting { order.respond(Self.ended) }
    }

    func begin() {
        let hadBegun = hasBegun.exchange(true, ordering: .acquiringAndReleasing)
        assert(!hadBegun, "a run begins once")
        observer.begin()
    }

    func take(_ snapshot: RunSnapshot) { observer.take(snapshot) }
    func take(_ event: RunEvent) { observer.take(event) }
    func end(_ end: RunEnd) { observer.end(end) }
}
