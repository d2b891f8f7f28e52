internal import BroadsideRing
internal import BroadsideSupport
internal import BroadsideTLS
internal import Glibc
internal import Synchronization

/// One thread of the endpoint: a ring, a listening socket and the connections accepted from it.
///
///     wait -> received bytes -> TLS -> HTTP/2 -> responses, at once or from the queue when due
///      ^                                                          |
///      +-- one send per connection <- TLS <- HTTP/2 <- touched connections
final class EndpointWorker {
    enum Operation: UInt64 {
        case accept = 1, receive, send, wake, cancel
    }

    let context: WorkerContext
    let credentials: EndpointCredentials
    private let listener: Int32
    private let stopDescriptor: Int32
    let shared: EndpointShared
    /// The kernel may read the connections' send buffers until the ring is destroyed. Properties
    /// are destroyed in the order of their declarations, so the ring is declared before the
    /// connections.
    var ring: Ring
    private var batch = CompletionBatch(capacity: 512)
    var connections: [EndpointConnection?] = []
    private var generations: [UInt32] = []
    var freeSlots: [UInt32] = []
    var touched: [EndpointConnection] = []
    var lingering: [EndpointConnection] = []
    private var isStopping = false
    /// Number of the last drop order that this worker has carried out. Such an order drops all
    /// connections.
    private var finishedDrop: UInt64 = 0
    /// Number of the last restart order that this worker has carried out.
    private var finishedRestart: UInt64 = 0
    /// Time before which no alarm of a connection is due, nanoseconds.
    var nextAlarm: UInt64 = .max
    /// Time at which an outage begins or ends, nanoseconds.
    var outageChange: UInt64 = .max
    var isOutage = false
    /// Time at which this thread accepts connections again, nanoseconds; `.max` unless it pauses.
    private var acceptsAt: UInt64 = .max
    /// The counts that were published last.
    private var published = (open: 0, requests: UInt64(0), accepted: UInt64(0))
    /// Plaintext being processed.
    private var scratch = ByteBuffer(capacity: 65_536)
    var staging = ByteBuffer(capacity: 65_536)

    /// Time for which a connection may keep sending after its end was announced, nanoseconds.
    static let lingerNanoseconds: UInt64 = 2_000_000_000

    /// Maximum time between two checks of the device store for work that is due, nanoseconds.
    private static let devicesNanoseconds: UInt64 = 250_000_000

    /// Creates a worker on the thread that runs it, because a ring belongs to one thread.
    init(
        context: WorkerContext, credentials: EndpointCredentials, listener: Int32,
        stopDescriptor: Int32, shared: EndpointShared
    ) throws(RingError) {
        self.context = context
        self.credentials = credentials
        self.listener = listener
        self.stopDescriptor = stopDescriptor
        self.shared = shared
        ring = try Ring(entries: 1024, bufferCount: 256, bufferSize: 16_384)
    }

    /// Serves clients until the endpoint stops. After that, pending responses are still delivered
    /// for a short time.
    func run() throws(RingError) {
        ring.acceptMultishot(listener, userData: userData(.accept))
        ring.poll(stopDescriptor, userData: userData(.wake))
        finishedDrop = shared.dropOrder.number
        finishedRestart = shared.restartOrder
        readShared()
        var stopsAt: UInt64?
        while true {
            try ring.submitAndWait(atLeast: 1, timeoutNanoseconds: waitNanoseconds(stopsAt))
            context.readClock()
            while ring.reap(into: &batch) > 0 {
                for position in 0..<batch.count { handle(batch[position]) }
            }
            if acceptsAt <= context.now {
                acceptsAt = .max
                ring.acceptMultishot(listener, userData: userData(.accept))
            }
            deliverDueResponses()
            handleAlarms()
            flushTouched()
            endLingering()
            if let due = context.journal?.flushDue, due <= context.now { context.journal?.flush() }
            _ = context.instruments.recording?.flushDue(context.now)
            publish()
            guard isStopping else { continue }
            if let stopsAt {
                if stopsAt <= context.now || isQuiet { break }
            } else {
                stopsAt = context.now + SimulatorLimits.stopNanoseconds
                writeShutdown()
                if isQuiet { break }
            }
        }
        context.journal?.flush()
        context.totals.journalFailed = context.journal?.hasFailed ?? false
    }

    /// Publishes this thread's counts.
    private func publish() {
        let totals = context.totals
        let open = connections.count - freeSlots.count
        assert(open >= 0, "a slot is freed once")
        shared.publish(
            opened: open - published.open, requests: totals.requests - published.requests,
            accepted: totals.acceptedMessages - published.accepted)
        published = (open, totals.requests, totals.acceptedMessages)
    }

    /// After a change, reads the state that the threads share.
    private func readShared() {
        isStopping = shared.isStopping
        let drop = shared.dropOrder
        if drop.number != finishedDrop {
            finishedDrop = drop.number
            shared.finishedDrop(drop.number, connections: dropAll(drop.manner))
        }
        let restart = shared.restartOrder
        if restart != finishedRestart {
            finishedRestart = restart
            publish()
            shared.finishedRestart(restart)
        }
        let run = shared.scenario
        guard context.run !== run else { return }
        context.run = run
        isOutage = false
        outageChange = run == nil ? .max : context.now
        // The times of a new scenario also apply to open connections.
        nextAlarm = context.now
    }

    /// Returns this thread's totals. Called after the thread has stopped; closes its connections.
    func finish() -> SimulatorTotals {
        for connection in connections {
            guard let connection else { continue }
            Socket.close(connection.descriptor)
            // A session's counts are final when it ends. The connection stays alive, because the
            // kernel may still read its send buffer.
            connection.session = nil
        }
        touched = []
        lingering = []
        return context.totals
    }

    private func waitNanoseconds(_ stopsAt: UInt64?) -> UInt64? {
        var due = min(nextAlarm, outageChange, stopsAt ?? .max, context.queue.firstDue ?? .max)
        due = min(due, acceptsAt)
        if let flush = context.journal?.flushDue { due = min(due, flush) }
        if let flush = context.instruments.recording?.flushDue(context.now) {
            due = min(due, flush)
        }
        for connection in lingering { due = min(due, connection.lingersUntil) }
        if let devices = context.devices {
            // The control socket and the legacy gateway deliver notifications without waking this
            // thread.
            due = min(due, context.now + Self.devicesNanoseconds)
            if let rest = devices.settleDue(microseconds: context.nowMicroseconds) {
                due = min(due, context.now + rest * 1000)
            }
        }
        guard due < .max else { return nil }
        let now = ClockStart.monotonicNanoseconds()
        return due > now ? due - now : 0
    }

    func userData(
        _ operation: Operation, slot: UInt32 = 0, generation: UInt32 = 0
    ) -> UInt64 {
        operation.rawValue << 56 | UInt64(slot) << 32 | UInt64(generation)
    }

    // MARK: Completions

    private func handle(_ completion: Completion) {
        guard let operation = Operation(rawValue: completion.userData >> 56) else { return }
        switch operation {
        case .wake:
            SystemCall.readCounter(stopDescriptor)
            readShared()
            ring.poll(stopDescriptor, userData: userData(.wake))
        case .cancel: break
        case .accept:
            if completion.result >= 0 { accept(completion.result) }
            guard !completion.hasMore else { break }
            if shared.isOutOfFiles(errno: -completion.result) {
                acceptsAt = context.now + SimulatorLimits.acceptPauseNanoseconds
            } else {
                ring.acceptMultishot(listener, userData: userData(.accept))
            }
        case .receive:
            if let connection = connection(completion) { received(completion, on: connection) }
            if let buffer = completion.bufferID { ring.giveBack(buffer) }
        case .send:
            if let connection = connection(completion) { sent(completion.result, on: connection) }
        }
    }

    private func connection(_ completion: Completion) -> EndpointConnection? {
        let slot = Int(completion.userData >> 32 & 0xff_ffff)
        guard slot < connections.count, let connection = connections[slot],
            connection.generation == UInt32(truncatingIfNeeded: completion.userData)
        else { return nil }
        return connection
    }

    private func accept(_ descriptor: Int32) {
        if isOutage || isStopping {
            resetAndClose(descriptor)
            return
        }
        let slot: UInt32
        if let free = freeSlots.popLast() {
            slot = free
        } else if connections.count < SimulatorLimits.connectionsPerThread {
            slot = UInt32(connections.count)
            connections.append(nil)
            generations.append(0)
        } else {
            context.totals.connectionsRefused += 1
            Socket.close(descriptor)
            return
        }
        assert(connections[Int(slot)] == nil, "a free slot has no connection")
        Socket.disableDelay(descriptor)
        generations[Int(slot)] &+= 1
        do throws(TLSError) {
            let connection = try EndpointConnection(
                descriptor: descriptor, slot: slot, generation: generations[Int(slot)],
                number: shared.nextConnection(), context: credentials.tls)
            connections[Int(slot)] = connection
            connection.handshakeUntil =
                context.now
                + (context.run?.scenario.handshakeNanoseconds
                    ?? SimulatorLimits.handshakeNanoseconds)
            watch(connection)
            context.totals.connections += 1
            armReceive(connection)
        } catch {
            context.totals.handshakesFailed += 1
            freeSlots.append(slot)
            Socket.close(descriptor)
        }
    }

    func armReceive(_ connection: EndpointConnection) {
        assert(!connection.isReceiving, "a connection receives once at a time")
        connection.isReceiving = true
        ring.receiveMultishot(
            connection.descriptor,
            userData: userData(
                .receive, slot: connection.slot, generation: connection.generation))
    }

    private func received(_ completion: Completion, on connection: EndpointConnection) {
        if !completion.hasMore { connection.isReceiving = false }
        guard completion.result > 0 else {
            // The provided buffers are exhausted; they are returned at the end of each iteration.
            if completion.result == -ENOBUFS, connection.phase != .broken {
                armReceive(connection)
            } else if completion.result == -ECANCELED, connection.phase != .broken {
                // Receiving was suspended; deferred bytes are processed first.
                if !connection.isPaused, !connection.isReceiving { armReceive(connection) }
            } else if !connection.isReceiving {
                breakOff(connection)
            }
            return
        }
        if connection.phase == .handshaking || connection.phase == .open {
            // SAFETY: `handle` returns the buffer only after this use.
            let bytes = unsafe RawSpan(_unsafeBytes: ring.unsafeBytes(of: completion))
            if connection.holdsInput {
                hold(bytes, on: connection)
            } else {
                take(bytes, on: connection)
            }
        }
        if !connection.isReceiving, !connection.isPaused, connection.phase != .broken {
            armReceive(connection)
        }
    }

    /// Processes received ciphertext.
    func take(_ bytes: RawSpan, on connection: EndpointConnection) {
        let outcome = connection.receive(bytes, scratch: &scratch) { records in
            openSession(connection, records)
        }
        switch outcome {
        case .more: break
        case .handshakeFailed:
            context.totals.handshakesFailed += 1
            connection.phase = .finishing
        case .ended, .failed: connection.phase = .finishing
        }
        touch(connection)
    }

    private func sent(_ result: Int32, on connection: EndpointConnection) {
        assert(connection.isSending, "a send ends once")
        connection.isSending = false
        guard result >= 0 else {
            breakOff(connection)
            return
        }
        connection.sentCount += Int(result)
        touch(connection)
    }
}
