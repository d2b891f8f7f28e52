import BroadsideHTTP2
package import BroadsideLedgerFormat
package import BroadsidePolicy
package import BroadsideRing
package import BroadsideRows
package import BroadsideSupport
internal import Glibc
internal import Synchronization

/// A reactor on a thread of its own, with its ring and its ledger segment.
package final class ReactorThread: @unchecked Sendable {
    private let reactor: Int
    private let settings: ReactorSettings
    private let coordinator: RunCoordinator
    private let services: ReactorServices
    private let recordConfiguration: TLSConfigurationBox
    private let pool: ChunkPool
    private let layout: RowLayout
    private let trace: FrameTraceFile?
    private let inbox: Inbox
    private let segment: Int32
    private let claim: Int32
    private let campaign: UInt64
    private let epoch: UInt32
    private let ended = Atomic<Bool>(false)
    // Results of the reactor: written by its thread, read after `join`.
    private var statistics = RunStatistics()
    private var latency = LatencyCounts()
    private var segmentByteCount: UInt64 = 0
    /// Error that ended the reactor early, if any.
    package private(set) var failure: StopCause?
    private var thread: WorkerThread?

    package init(
        reactor: Int, settings: ReactorSettings, coordinator: RunCoordinator,
        services: ReactorServices,
        recordConfiguration: TLSConfigurationBox, pool: ChunkPool, layout: RowLayout,
        campaign: UInt64,
        epoch: UInt32, segment: Int32, claim: Int32, trace: FrameTraceFile?
    ) throws(BroadsideError) {
        self.reactor = reactor
        self.settings = settings
        self.coordinator = coordinator
        self.services = services
        self.recordConfiguration = recordConfiguration
        self.pool = pool
        self.layout = layout
        self.trace = trace
        self.campaign = campaign
        self.epoch = epoch
        self.segment = segment
        self.claim = claim
        inbox = try Inbox()
    }

    deinit {
        close(segment)
    }

    /// Starts the thread. The thread notifies the caller when the reactor has ended; the caller
    /// then joins it. If no thread can be created, the reactor ends at once and the run stops.
    package func start() {
        let waiter = pthread_self()
        do throws(BroadsideError) {
            thread = try WorkerThread { [self] in
                run()
                ended.store(true, ordering: .releasing)
                SignalWatch.notify(waiter)
            }
        } catch {
            let cause = StopCause.failed(detail: error.message)
            coordinator.stop(cause)
            failure = cause
            ended.store(true, ordering: .releasing)
        }
    }

    package func join() { thread?.join() }

    package func wake() { inbox.wake() }

    package var hasEnded: Bool { ended.load(ordering: .acquiring) }

    /// Length of the reactor's segment; valid after `join`.
    package var segmentLength: SegmentLength {
        assert(hasEnded, "a segment's length is known at its end")
        return SegmentLength(reactor: UInt16(reactor), byteCount: segmentByteCount)
    }

    /// Adds the reactor's counters; call after `join`.
    package func collect(_ statistics: inout RunStatistics, _ latency: inout LatencyCounts) {
        assert(hasEnded, "a thread's counts are read at its end")
        statistics.add(self.statistics)
        latency.add(self.latency)
    }

    /// Creates a number of rings at the same time, lets each perform an operation, and closes them,
    /// to check that the system allows this. A seccomp profile may forbid only some of the calls
    /// that a reactor makes.
    package static func tryRings(_ count: Int) throws(RingError) {
        guard count > 0 else { return }
        var ring = try RingDriver<TLSRecords>.makeRing()
        let event = try EventDescriptor()
        event.signal()
        ring.poll(event.descriptor, userData: 0)
        try ring.submitAndWait(atLeast: 0)
        try tryRings(count - 1)
        // All rings must exist at the same time.
        withExtendedLifetime(ring) {}
    }

    private func run() {
        if let trace {
            run(
                TracedRecords.self,
                TracedRecords.Configuration(records: recordConfiguration, file: trace))
        } else {
            run(TLSRecords.self, recordConfiguration)
        }
    }

    /// Inlined, so that the compiler specializes the state machine for each record layer.
    @inline(__always)
    private func run<Records: RecordLayer & ~Copyable>(
        _ layer: Records.Type, _ recordConfiguration: Records.Configuration
    ) {
        let now = Clock.now()
        var machine = ReactorStateMachine<Records>(
            settings: settings, coordinator: coordinator, reactor: reactor,
            recordConfiguration: recordConfiguration,
            ledger: LedgerWriter(
                campaign: campaign, epoch: epoch, reactor: UInt16(reactor),
                startOffset: UInt64(LedgerFormat.segmentHeaderByteCount),
                keepsTokens: settings.keepsTokens),
            chunkPool: pool, layout: layout, seed: settings.seed &+ UInt64(reactor), now: now)
        // The kernel may read the state machine's memory until the driver's ring has ended, so the
        // ring ends first.
        do {
            var driver = try RingDriver<Records>(
                slots: machine.slotCount, segment: segment, claim: claim, epoch: epoch,
                inbox: inbox, services: services, reactor: reactor)
            try driver.run(&machine)
        } catch {
            let cause = StopCause.failed(detail: "\(error)")
            coordinator.stop(cause)
            failure = cause
        }
        statistics = machine.snapshot()
        statistics.fallbacks = machine.writer.fallbackCounts
        latency = machine.metrics.latency.counts
        segmentByteCount = machine.ledgerByteCount
    }
}
