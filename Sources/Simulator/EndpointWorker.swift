internal import APNs
internal import Glibc
internal import Ring
internal import Synchronization
internal import TLS

/// One thread of the endpoint: a ring, a listening socket, and the connections it accepted.
///
///     wait -> received bytes -> TLS -> HTTP/2 -> answers, at once or from the queue when due
///      ^                                                          |
///      +---- one send a connection <- TLS <- HTTP/2 <- touched connections
@safe final class EndpointWorker {
    private enum Operation: UInt64 {
        case accept = 1, receive, send, stop
    }

    private let context: WorkerContext
    private let credentials: EndpointCredentials
    private let listener: Int32
    private let stopDescriptor: Int32
    private let shared: EndpointShared
    private var ring: Ring
    private var batch = CompletionBatch(capacity: 512)
    private var connections: [EndpointConnection?] = []
    private var generations: [UInt32] = []
    private var freeSlots: [UInt32] = []
    private var touched: [EndpointConnection] = []
    private var lingering: [EndpointConnection] = []
    private var isStopping = false
    private let scratch = UnsafeMutableRawBufferPointer.allocate(byteCount: 65_536, alignment: 64)
    private var staging = ByteBuffer(capacity: 65_536)

    /// For how long a connection whose end was said may go on sending.
    private static let lingerNanoseconds: UInt64 = 2_000_000_000

    /// Made on the thread that it runs on: a ring belongs to one.
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

    deinit { unsafe scratch.deallocate() }

    /// Serves until it is told to stop.
    func run() throws(RingError) {
        ring.acceptMultishot(listener, userData: userData(.accept))
        ring.poll(stopDescriptor, userData: userData(.stop))
        while !isStopping {
            try ring.submitAndWait(atLeast: 1, timeoutNanoseconds: waitNanoseconds())
            context.readClock()
            while ring.reap(into: &batch) > 0 {
                for position in 0..<batch.count { handle(batch[position]) }
            }
            deliverDueAnswers()
            flushTouched()
            endLingering()
            if let due = context.journal?.flushDue, due <= context.now { context.journal?.flush() }
        }
        context.journal?.flush()
        context.totals.journalFailed = context.journal?.hasFailed ?? false
    }

    /// What this thread saw, once it has stopped and its connections are gone.
    func finish() -> SimulatorTotals {
        for connection in connections {
            if let connection { Socket.close(connection.descriptor) }
        }
        touched = []
        lingering = []
        connections = []
        return context.totals
    }

    private func waitNanoseconds() -> UInt64? {
        var due = context.queue.firstDue
        if let flush = context.journal?.flushDue { due = min(due ?? .max, flush) }
        for connection in lingering { due = min(due ?? .max, connection.lingersUntil) }
        guard let due else { return nil }
        let now = ClockStart.monotonicNanoseconds()
        return due > now ? due - now : 0
    }

    private func userData(
        _ operation: Operation, slot: UInt32 = 0, generation: UInt32 = 0
    ) -> UInt64 {
        operation.rawValue << 56 | UInt64(slot) << 32 | UInt64(generation)
    }

    // MARK: Completions

    private func handle(_ completion: Completion) {
        guard let operation = Operation(rawValue: completion.userData >> 56) else { return }
        switch operation {
        case .stop: isStopping = true
        case .accept:
            if completion.result >= 0 { accept(completion.result) }
            if !completion.hasMore { ring.acceptMultishot(listener, userData: userData(.accept)) }
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
        Socket.disableDelay(descriptor)
        generations[Int(slot)] &+= 1
        do throws(TLSError) {
            let connection = try EndpointConnection(
                descriptor: descriptor, slot: slot, generation: generations[Int(slot)],
                number: shared.nextConnection(), context: credentials.tls)
            connections[Int(slot)] = connection
            context.totals.connections += 1
            armReceive(connection)
        } catch {
            context.totals.handshakesFailed += 1
            freeSlots.append(slot)
            Socket.close(descriptor)
        }
    }

    private func armReceive(_ connection: EndpointConnection) {
        connection.isReceiving = true
        ring.receiveMultishot(
            connection.descriptor,
            userData: userData(
                .receive, slot: connection.slot, generation: connection.generation))
    }

    private func received(_ completion: Completion, on connection: EndpointConnection) {
        if !completion.hasMore { connection.isReceiving = false }
        guard completion.result > 0 else {
            // The buffers ran out: they are given back at the end of each turn.
            if completion.result == -ENOBUFS, connection.phase != .broken {
                armReceive(connection)
            } else if !connection.isReceiving {
                breakOff(connection)
            }
            return
        }
        if connection.phase == .handshaking || connection.phase == .open {
            let bytes = unsafe ring.unsafeBytes(of: completion)
            let outcome = unsafe connection.receive(bytes, scratch: scratch) { records in
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
        if !connection.isReceiving, connection.phase != .broken { armReceive(connection) }
    }

    private func openSession(
        _ connection: EndpointConnection, _ records: borrowing TLSSession
    ) -> EndpointConnection.Session {
        var topics = context.tokenTopics
        var hasCertificate = false
        if let certificate = records.peerCertificate {
            hasCertificate = true
            topics = CertificateTopics.table(of: certificate)
        }
        let credential = ConnectionCredential(hasCertificate: hasCertificate)
        if context.options.isFast {
            return .fast(
                FastSession(
                    context: context, credential: credential, topics: topics,
                    slot: connection.slot, generation: connection.generation))
        }
        let session = ServerSession(
            context: context, credential: credential, topics: topics, slot: connection.slot,
            generation: connection.generation, number: connection.number)
        session.start()
        return .strict(session)
    }

    private func sent(_ result: Int32, on connection: EndpointConnection) {
        connection.isSending = false
        guard result >= 0 else {
            breakOff(connection)
            return
        }
        connection.sentCount += Int(result)
        touch(connection)
    }

    // MARK: Output

    private func touch(_ connection: EndpointConnection) {
        guard !connection.isTouched else { return }
        connection.isTouched = true
        touched.append(connection)
    }

    private func deliverDueAnswers() {
        while let answer = context.queue.pop(now: context.now) {
            guard let connection = connections[Int(answer.slot)],
                connection.generation == answer.generation, connection.phase == .open
            else { continue }
            connection.deliver(answer)
            touch(connection)
        }
    }

    private func flushTouched() {
        var position = 0
        while position < touched.count {
            let connection = touched[position]
            connection.isTouched = false
            flush(connection)
            position += 1
        }
        touched.removeAll(keepingCapacity: true)
    }

    private func flush(_ connection: EndpointConnection) {
        if connection.phase == .broken {
            breakOff(connection)
            return
        }
        if connection.phase == .open || connection.phase == .finishing {
            guard connection.sealOutput(staging: &staging) else {
                breakOff(connection)
                return
            }
            if connection.phase == .open, connection.isSessionFinished {
                connection.phase = .finishing
            }
        }
        let limit =
            SimulatorLimits.unreadOutputCount + Int(context.options.maxStreams) * 256
        guard connection.outgoing.count <= limit else {
            context.totals.violations += 1
            breakOff(connection)
            return
        }
        if connection.phase == .finishing {
            connection.sealEnd()
            connection.phase = .lingering
            connection.lingersUntil = context.now + Self.lingerNanoseconds
            lingering.append(connection)
        }
        guard !connection.isSending else { return }
        if connection.prepareSend() {
            connection.isSending = true
            // SAFETY: `sending` is left alone until this send has completed.
            let bytes = unsafe UnsafeRawBufferPointer(
                rebasing: connection.sending.bytes[connection.sentCount...])
            unsafe ring.send(
                connection.descriptor, bytes,
                userData: userData(
                    .send, slot: connection.slot, generation: connection.generation))
        } else if connection.phase == .lingering {
            // All is sent. Closing with unread input would reset the connection, and GOAWAY might
            // be lost: end our side and let the client end its own.
            _ = shutdown(connection.descriptor, Int32(SHUT_WR))
        }
    }

    // MARK: Ends

    /// No more input or output; the connection goes when the kernel has let go of it.
    private func breakOff(_ connection: EndpointConnection) {
        if connection.phase != .broken {
            connection.phase = .broken
            _ = shutdown(connection.descriptor, Int32(SHUT_RDWR))
        }
        guard !connection.isReceiving, !connection.isSending, !connection.isTouched else { return }
        let slot = Int(connection.slot)
        guard slot < connections.count, connections[slot] === connection else { return }
        connections[slot] = nil
        freeSlots.append(connection.slot)
        Socket.close(connection.descriptor)
    }

    private func endLingering() {
        guard !lingering.isEmpty else { return }
        lingering.removeAll { connection in
            if connection.phase == .broken { return true }
            guard connection.lingersUntil <= context.now else { return false }
            breakOff(connection)
            return true
        }
    }
}
