package import BroadsideLists
internal import BroadsidePolicy
import BroadsideRing
package import BroadsideSupport
internal import Synchronization

/// Blocking work for reactors, on separate threads: resolving names and reading the list. Results
/// arrive in the reactor's inbox. No other thread waits for these threads. A silent name server
/// blocks `getaddrinfo` for a minute, and a hanging file system blocks `read` forever.
package final class ReactorServices: @unchecked Sendable {
    /// Maximum number of concurrent lookups.
    private static let lookupsAtOnce = 1

    private let route: Route
    private let lookups: BoundedQueue<Inbox>
    private let chunkRequests: BoundedQueue<(rowLimit: Int, inbox: Inbox)>
    private let published: Mutex<[ReactorReport]>
    private let events = Mutex(EventBuffer())
    private var reader: WorkerThread?
    /// Start of the current read of the list, monotonic nanoseconds; 0: none.
    private let readingSince = Atomic<UInt64>(0)

    package init(route: Route, reactors: Int) {
        self.route = route
        lookups = BoundedQueue(limit: reactors * Self.lookupsAtOnce)
        chunkRequests = BoundedQueue(limit: reactors * ChunkQueue.aheadMax)
        published = Mutex(Array(repeating: ReactorReport(), count: reactors))
    }

    /// Starts the threads. After this, only the list thread may read `list`.
    package func start(list: ListSource) throws(BroadsideError) {
        _ = try WorkerThread { [self] in resolveForever() }
        reader = try WorkerThread { [self] in readForever(list) }
    }

    /// Asks the threads to end. No reactor may be running.
    package func stop() {
        lookups.close()
        chunkRequests.close()
    }

    /// Whether the list thread has ended, so that the caller may read the list. Call after
    /// `stop()`.
    package var hasListEnded: Bool {
        guard let reader else { return true }
        guard reader.hasEnded else { return false }
        reader.join()
        self.reader = nil
        return true
    }

    /// Duration of the current read of the list so far, nanoseconds; 0 if there is none.
    package func readTime(_ now: Now) -> UInt64 {
        let since = readingSince.load(ordering: .relaxed)
        return since == 0 ? 0 : now.nanoseconds - min(since, now.nanoseconds)
    }

    /// Looks up the name again. Results are not cached, as Apple advises. Reactors that ask during
    /// a lookup share its result, so that a slow name server gets one query for all of them.
    func resolve(for inbox: Inbox) {
        lookups.put(inbox)
    }

    /// Reads the next rows of the list.
    func requestChunk(rowLimit: Int, for inbox: Inbox) {
        assert(rowLimit > 0, "a chunk has a row")
        chunkRequests.put((rowLimit, inbox))
    }

    /// Stores a reactor's counters and events for the supervising thread.
    func publish(_ report: ReactorReport, _ new: EventBuffer, reactor: Int) {
        published.withLock { $0[reactor] = report }
        if !new.events.isEmpty || new.lost > 0 { events.withLock { $0.add(new) } }
    }

    /// Sum of the reactors' last reports.
    package var report: ReactorReport {
        published.withLock { published in
            var sum = ReactorReport()
            for report in published {
                sum.statistics.add(report.statistics)
                sum.latency.add(report.latency)
                sum.connections += report.connections
            }
            return sum
        }
    }

    /// CPU times of the reactors' threads in their last reports.
    package var threadUses: [ThreadUse] { published.withLock { $0.map(\.threadUse) } }

    /// Removes and returns events since the last call.
    package func takeEvents() -> EventBuffer { events.withLock { $0.takeAll() } }

    private func resolveForever() {
        let (host, port) = route.nameToResolve
        let whose = route.proxy == nil ? "" : "the proxy: "
        while let first = lookups.take() {
            let result: Result<[SocketAddress], ResolutionFailure>
            do {
                result = .success(try Resolver.resolve(host, port: port))
            } catch {
                result = .failure(ResolutionFailure(message: "\(whose)\(error)"))
            }
            for inbox in [first] + lookups.takeWaiting() { inbox.put(.resolved(result)) }
        }
    }

    private func readForever(_ list: ListSource) {
        while let (rowLimit, inbox) = chunkRequests.take() {
            readingSince.store(Clock.now().nanoseconds, ordering: .relaxed)
            defer { readingSince.store(0, ordering: .relaxed) }
            do {
                if let chunk = try list.next(rowLimit: rowLimit) {
                    inbox.put(.chunk(chunk))
                } else if list.isHeld {
                    inbox.put(.listHeldByCanary)
                } else {
                    inbox.put(.listEnded)
                }
            } catch {
                inbox.put(.listFailed(Self.cause(of: error)))
            }
        }
    }

    /// Stop cause for an error of the list.
    private static func cause(of error: BroadsideError) -> StopCause {
        if error.isChange { return .listChanged(detail: error.message) }
        return error.isFaultyList
            ? .listFaulty(detail: error.message) : .listFailed(detail: error.message)
    }
}
