package import BroadsideLists
internal import BroadsidePolicy
import BroadsideRing
package import BroadsideSupport
internal import Synchronization

/// What blocks, done for reactors on threads of its own: looking names up and reading the list.
/// Results arrive in the reactor's inbox. Nobody waits for these threads: a name server that is
/// silent keeps `getaddrinfo` for a minute, a file system that hangs keeps `read` for good.
package final class ReactorServices: @unchecked Sendable {
    /// Look-ups for which a reactor waits at the same time.
    private static let lookupsAtOnce = 1

    private let route: Route
    private let lookups: BoundedQueue<Inbox>
    private let chunkRequests: BoundedQueue<(rowLimit: Int, inbox: Inbox)>
    private let published: Mutex<[ReactorReport]>
    private let events = Mutex(EventBuffer())
    private var reader: WorkerThread?
    /// Since when the list's thread has been reading on, `CLOCK_MONOTONIC`; 0: it does not read.
    private let readingSince = Atomic<UInt64>(0)

    package init(route: Route, reactors: Int) {
        self.route = route
        lookups = BoundedQueue(limit: reactors * Self.lookupsAtOnce)
        chunkRequests = BoundedQueue(limit: reactors * ChunkQueue.aheadMax)
        published = Mutex(Array(repeating: ReactorReport(), count: reactors))
    }

    /// Starts the threads; `list` is read by one of them alone from now on.
    package func start(list: ListSource) throws(BroadsideError) {
        _ = try WorkerThread { [self] in resolveForever() }
        reader = try WorkerThread { [self] in readForever(list) }
    }

    /// Tells the threads that nothing more is wanted. No reactor may be running.
    package func stop() {
        lookups.close()
        chunkRequests.close()
    }

    /// True once the list is nobody's, and may be read on by the caller; after `stop`.
    package var hasListEnded: Bool {
        guard let reader else { return true }
        guard reader.hasEnded else { return false }
        reader.join()
        self.reader = nil
        return true
    }

    /// How long the current read of the list has taken so far, nanoseconds; 0 where there is none.
    package func readTime(_ now: Now) -> UInt64 {
        let since = readingSince.load(ordering: .relaxed)
        return since == 0 ? 0 : now.nanoseconds - min(since, now.nanoseconds)
    }

    /// Looks the name up again; no answer is kept, as Apple advises. Who asks while a look-up is out gets
    /// its answer: a name server that takes seconds is asked once for all reactors.
    func resolve(for inbox: Inbox) {
        lookups.put(inbox)
    }

    /// Reads the next rows of the list.
    func requestChunk(rowLimit: Int, for inbox: Inbox) {
        chunkRequests.put((rowLimit, inbox))
    }

    /// Takes a reactor's counters and events, for those who tell how the run goes on.
    func publish(_ report: ReactorReport, _ new: EventBuffer, reactor: Int) {
        published.withLock { $0[reactor] = report }
        if !new.events.isEmpty || new.lost > 0 { events.withLock { $0.add(new) } }
    }

    /// What all reactors told last, added up.
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

    /// What the reactors' threads had used when they told it last.
    package var threadUses: [ThreadUse] { published.withLock { $0.map(\.threadUse) } }

    /// Events since the last look.
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

    /// Why the list can't be read on.
    private static func cause(of error: BroadsideError) -> StopCause {
        if error.isChange { return .listChanged(detail: error.message) }
        return error.isFaultyList
            ? .listFaulty(detail: error.message) : .listFailed(detail: error.message)
    }
}
