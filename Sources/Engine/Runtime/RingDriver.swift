internal import BroadsideLedgerFormat
import BroadsideRing
import BroadsideSupport
internal import Glibc

/// Drives one reactor with io_uring: performs the reactor's submissions, waits for completions, and
/// passes them to the reactor. The driver does all I/O of the hot path and makes no decisions.
@safe struct RingDriver<Records: RecordLayer & ~Copyable>: ~Copyable {
    /// Operation that a completion belongs to. It is in the upper byte of the user data; the lower
    /// bytes hold the connection's slot.
    private enum Operation: UInt64 {
        case connect = 1
        case receive, send, cancel, close, write, sync, position, claim, inbox
    }

    /// A connection slot's socket, with its pending operations.
    private struct Slot {
        var descriptor: Int32 = -1
        /// Number of completions still to come.
        var pending = 0
        var isReceiving = false
        var isClosing = false
        /// Whether the receive has to be armed again. It ended when no buffer was free.
        var needsReceive = false
    }

    private var ring: Ring
    private var sockets: [Slot]
    private let segment: Int32
    /// Descriptor of the attempt's claim on the ledger; -1: none.
    private let claim: Int32
    /// Status of the claim. The kernel may write to it until the ring has ended, and it is freed
    /// only after that, see `deinit`.
    private let claimStatus: FileStatus
    // SAFETY: as many bytes as a position has. The kernel reads them between a sync and the
    // completion of the claim's status; freed in `deinit`, after the ring has ended.
    private let claimPosition: UnsafeMutableRawBufferPointer
    /// Number of the run in the ledger.
    private let epoch: UInt32
    /// Position that the sync in flight makes durable.
    private var syncing: UInt64 = 0
    private let inbox: Inbox
    private let services: ReactorServices
    private let reactor: Int
    // SAFETY: eight bytes that the kernel sets while a read of the inbox is pending, which is
    // nearly always; freed in `deinit`, after the ring has ended.
    private var inboxCounter: UnsafeMutableRawBufferPointer
    private var batch = CompletionBatch(capacity: 256)
    /// Whether the last wait brought only completions that need no iteration.
    private var lastWaitWasEmpty = true
    /// Number of sends among the submissions of this iteration.
    private var newSends: UInt32 = 0

    /// Number of receive buffers that all connections share, and their size in bytes.
    static var bufferCount: Int { 128 }
    static var bufferSize: Int { 32_768 }

    init(
        slots: Int, segment: Int32, claim: Int32, epoch: UInt32, inbox: Inbox,
        services: ReactorServices, reactor: Int
    ) throws(RingError) {
        ring = try Self.makeRing()
        sockets = Array(repeating: Slot(), count: slots)
        self.segment = segment
        self.claim = claim
        claimStatus = FileStatus()
        self.epoch = epoch
        self.inbox = inbox
        self.services = services
        self.reactor = reactor
        // SAFETY: as many bytes as a read of an eventfd returns (eventfd(2)).
        unsafe inboxCounter = .allocate(byteCount: 8, alignment: 8)
        // SAFETY: set before the kernel reads it, in `recordDurablePosition`.
        unsafe claimPosition = .allocate(byteCount: DurablePosition.byteCount, alignment: 8)
    }

    deinit {
        // SAFETY: the ring's end cancels pending operations, so that the kernel no longer uses
        // either buffer.
        let ended = ring
        _ = consume ended
        unsafe inboxCounter.deallocate()
        unsafe claimPosition.deallocate()
    }

    /// Creates a reactor's ring.
    static func makeRing() throws(RingError) -> Ring {
        try Ring(entries: 1024, bufferCount: bufferCount, bufferSize: bufferSize)
    }

    /// Runs the reactor until it is finished.
    mutating func run(_ machine: inout ReactorStateMachine<Records>) throws(RingError) {
        listenToInbox()
        var now = Clock.now()
        var nextPublication = now.nanoseconds
        while true {
            machine.exchangeWithRun(now)
            machine.runIteration(now)
            machine.finishIteration(now)
            newSends = 0
            while let submission = machine.nextSubmission() {
                perform(submission, machine: &machine, now: now)
            }
            if now.nanoseconds >= nextPublication || machine.isFinished {
                nextPublication = now.nanoseconds + 250 * millisecond
                var report = machine.report()
                report.threadUse = Clock.threadUse(now)
                services.publish(report, machine.takeEvents(), reactor: reactor)
            }
            if machine.isFinished { break }
            let deadline = min(machine.nextDeadline, nextPublication)
            var wait = deadline > now.nanoseconds ? deadline - now.nanoseconds : 0
            // Most sends complete during submission and need no iteration, and neither does a write
            // that nothing waits for. The wait therefore ends only after one completion more than
            // these. If one of these is slow, it delays other completions only briefly.
            let quiet = newSends + (!lastWaitWasEmpty && machine.writeIsQuiet ? 1 : 0)
            var count = wait > 0 ? quiet + 1 : 0
            if wait > 0, !lastWaitWasEmpty, let batchWait = machine.batchWait {
                count = quiet + batchWait.completions
                wait = min(wait, batchWait.nanoseconds)
            } else if quiet > 0 {
                wait = min(wait, CompletionBatching.limit)
            }
            try ring.submitAndWait(atLeast: count, timeoutNanoseconds: wait)
            now = Clock.now()
            // If there were no other completions, the next completion ends the next wait.
            lastWaitWasEmpty = reap(into: &machine, now: now) <= Int(quiet)
        }
        for socket in sockets where socket.descriptor >= 0 {
            Glibc.close(socket.descriptor)
        }
    }

    // MARK: Completions

    /// - Returns: The number of completions.
    private mutating func reap(
        into machine: inout ReactorStateMachine<Records>, now: Now
    ) -> Int {
        var count = 0
        while ring.reap(into: &batch) > 0 {
            count += batch.count
            for index in 0..<batch.count {
                act(on: batch[index], machine: &machine, now: now)
            }
        }
        for slot in sockets.indices where sockets[slot].needsReceive {
            sockets[slot].needsReceive = false
            if !sockets[slot].isClosing { receive(slot) }
        }
        return count
    }

    private mutating func act(
        on completion: Completion, machine: inout ReactorStateMachine<Records>, now: Now
    ) {
        guard let operation = Operation(rawValue: completion.userData >> 56) else {
            preconditionFailure("a completion of no operation of ours")
        }
        let slot = Int(completion.userData & 0xffff_ffff)
        switch operation {
        case .receive:
            received(slot, completion, machine: &machine, now: now)
            return
        case .write:
            machine.completed(.wrote(result: Int(completion.result)), now: now)
            return
        case .sync:
            guard completion.result >= 0, claim >= 0 else {
                machine.completed(.synced(result: Int(completion.result)), now: now)
                return
            }
            recordDurablePosition()
            return
        case .position:
            // The position was not written. The sync is still valid, but a stale copy of the ledger
            // cannot be detected.
            return
        case .claim:
            machine.completed(claimCompletion(completion.result), now: now)
            return
        case .inbox:
            for box in inbox.takeAll() { machine.completed(box.completion, now: now) }
            listenToInbox()
            return
        case .connect:
            sockets[slot].pending -= 1
            if !sockets[slot].isClosing {
                machine.completed(
                    .connected(connection: slot, errno: max(0, -completion.result)), now: now)
            }
        case .send:
            sockets[slot].pending -= 1
            if !sockets[slot].isClosing {
                machine.completed(
                    .sent(connection: slot, result: Int(completion.result)), now: now)
            }
        case .cancel:
            sockets[slot].pending -= 1
        case .close:
            sockets[slot].pending -= 1
            sockets[slot].descriptor = -1
        }
        finishClose(slot, machine: &machine, now: now)
    }

    private mutating func received(
        _ slot: Int, _ completion: Completion, machine: inout ReactorStateMachine<Records>,
        now: Now
    ) {
        if let buffer = completion.bufferID {
            if !sockets[slot].isClosing, completion.result > 0 {
                // SAFETY: the buffer is ours until it is returned below, and no pointer to the
                // bytes is kept.
                let bytes = unsafe RawSpan(_unsafeBytes: ring.unsafeBytes(of: completion))
                machine.received(connection: slot, bytes: bytes, now: now)
            }
            ring.giveBack(buffer)
        }
        guard !completion.hasMore else { return }
        sockets[slot].isReceiving = false
        sockets[slot].pending -= 1
        if !sockets[slot].isClosing {
            if completion.result > 0 || completion.result == -ENOBUFS {
                sockets[slot].needsReceive = true
            } else {
                machine.completed(
                    .receiveEnded(connection: slot, errno: max(0, -completion.result)), now: now)
            }
        }
        finishClose(slot, machine: &machine, now: now)
    }

    /// Reports a slot as free when its socket has no pending operation.
    private mutating func finishClose(
        _ slot: Int, machine: inout ReactorStateMachine<Records>, now: Now
    ) {
        guard sockets[slot].isClosing, sockets[slot].pending == 0 else { return }
        if sockets[slot].descriptor >= 0 {
            sockets[slot].pending += 1
            ring.close(sockets[slot].descriptor, userData: userData(.close, slot))
            return
        }
        sockets[slot] = Slot()
        machine.completed(.closed(connection: slot), now: now)
    }

    /// Writes the synced position to the claim, then checks that the claim is still valid. Both
    /// steps happen after the sync. If another attempt removes the claim after this check, that
    /// attempt reads everything that was synced.
    private mutating func recordDurablePosition() {
        let position = DurablePosition(
            epoch: epoch, reactor: UInt16(reactor), position: syncing)
        // SAFETY: two words, as many bytes as were allocated. The kernel has read the previous
        // content, because a sync starts only after the status that follows the previous sync has
        // arrived.
        unsafe claimPosition.storeBytes(of: position.words.0, as: UInt64.self)
        unsafe claimPosition.storeBytes(of: position.words.1, toByteOffset: 8, as: UInt64.self)
        unsafe ring.write(
            claim, UnsafeRawBufferPointer(claimPosition), at: position.offset,
            thenStatusInto: claimStatus, userData: userData(.claim, 0),
            failure: userData(.position, 0))
    }

    /// Completion to report for a sync, after the check of the claim.
    private func claimCompletion(_ result: Int32) -> ReactorCompletion {
        // ESTALE: another machine has removed the claim on the NFS server.
        if result == -ESTALE || result == -ENOENT { return .superseded }
        guard result >= 0 else { return .synced(result: Int(result)) }
        let stands =
            claimStatus.linkCount > 0 && claimStatus.permissions != 0 && claimStatus.byteCount > 0
        return stands ? .synced(result: 0) : .superseded
    }

    // MARK: Submissions

    private mutating func perform(
        _ submission: ReactorSubmission, machine: inout ReactorStateMachine<Records>, now: Now
    ) {
        switch submission {
        case .resolve:
            services.resolve(for: inbox)
        case .requestChunk(let rowLimit):
            services.requestChunk(rowLimit: rowLimit, for: inbox)
        case .connect(let slot, let address):
            connect(slot, to: address, machine: &machine, now: now)
        case .receive(let slot):
            receive(slot)
        case .send(let slot, let bytes):
            sockets[slot].pending += 1
            newSends += 1
            // SAFETY: the state machine does not change the bytes until it gets this send's
            // completion, and frees them after the ring has ended, because it outlives the driver.
            unsafe ring.send(sockets[slot].descriptor, bytes, userData: userData(.send, slot))
        case .close(let slot):
            sockets[slot].isClosing = true
            if sockets[slot].pending > 0 {
                sockets[slot].pending += 1
                ring.cancelAll(
                    on: sockets[slot].descriptor, userData: userData(.cancel, slot))
            } else {
                finishClose(slot, machine: &machine, now: now)
            }
        case .write(let bytes, let offset):
            // SAFETY: as for a send; the bytes belong to the ledger writer until `writeCompleted`.
            unsafe ring.write(
                segment, bytes, at: offset, userData: userData(.write, 0))
        case .sync(let position):
            syncing = position
            ring.fsync(segment, dataOnly: true, userData: userData(.sync, 0))
        }
    }

    /// Number of bytes of a connection that the kernel may hold without having sent them. If the
    /// server stops reading, the requests in these bytes are in doubt.
    private static var unsentLimit: Int32 { 64 << 10 }

    private mutating func connect(
        _ slot: Int, to address: SocketAddress, machine: inout ReactorStateMachine<Records>,
        now: Now
    ) {
        precondition(sockets[slot].descriptor < 0 && sockets[slot].pending == 0)
        do {
            sockets[slot].descriptor = try Socket.stream(
                for: address, unsentLimit: Self.unsentLimit)
        } catch {
            machine.completed(.connected(connection: slot, errno: error.code), now: now)
            return
        }
        sockets[slot].pending += 1
        ring.connect(
            sockets[slot].descriptor, to: address, userData: userData(.connect, slot))
    }

    private mutating func receive(_ slot: Int) {
        precondition(!sockets[slot].isReceiving)
        sockets[slot].isReceiving = true
        sockets[slot].pending += 1
        ring.receiveMultishot(sockets[slot].descriptor, userData: userData(.receive, slot))
    }

    private mutating func listenToInbox() {
        // SAFETY: one read is in flight at a time: armed at the start, and again after it has
        // ended. The counter is freed after the ring.
        unsafe ring.read(
            inbox.eventDescriptor, into: inboxCounter, at: .max, userData: userData(.inbox, 0))
    }

    private func userData(_ operation: Operation, _ slot: Int) -> UInt64 {
        operation.rawValue << 56 | UInt64(slot)
    }
}
