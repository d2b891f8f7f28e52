import Broadside

extension Simulation {
    /// Maximum size of a write: the limit of the segment's buffer, and what one iteration adds.
    private static var writeCountMax: Int { 4 << 20 }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: Int, for reactor: SimulatedReactor) {
        precondition(reactor.pendingWrite == nil, "one write at a time")
        if reactor.isSuperseded { fail("a write into a ledger that is another attempt's") }
        if bytes.count > Self.writeCountMax { fail("a write of \(bytes.count) bytes") }
        reactor.pendingWrite = SimulatedReactor.PendingWrite(
            bytes: bytes, copy: Array(bytes), offset: offset)
        events.insert(
            .writeDone(reactor: reactor.index, epoch: process.epoch),
            at: clock + random.skewedDelay(process.current.writeDelay))
    }

    func writeDone(_ reactor: SimulatedReactor, fails: Bool = false) {
        guard let write = reactor.pendingWrite else { return }
        reactor.pendingWrite = nil
        if !isEqual(write.bytes, write.copy) {
            fail("the ledger's bytes changed while they were being written")
        }
        if fails || random.chance(process.current.diskFailure) {
            cover(.writeFails)
            deliver(.completion(.wrote(result: -28)), to: reactor)
            return
        }
        let isShort = random.chance(process.current.shortWrite)
        if isShort { cover(.shortWrite) }
        let count = isShort ? random.between(1...write.copy.count) : write.copy.count
        store(write.copy.prefix(count), at: write.offset, of: reactor)
        reactor.writtenBefore = reactor.writtenPosition
        if count == write.copy.count {
            reactor.writtenPosition = UInt64(write.offset + count)
        }
        trace.step(time: clock, kind: 7, reactor.index, count)
        trace.mix(write.copy.prefix(count))
        deliver(.completion(.wrote(result: count)), to: reactor)
    }

    func sync(position: UInt64, for reactor: SimulatedReactor) {
        precondition(reactor.pendingSync == nil, "one sync at a time")
        if reactor.isSuperseded { fail("a sync of a ledger that is another attempt's") }
        let count = segments[process.epoch - 1][reactor.index].content.count
        if position != toldPosition(of: reactor) {
            fail("\(position) bytes are to be noted as durable, of \(toldPosition(of: reactor))")
        }
        reactor.pendingSync = count
        events.insert(
            .syncDone(reactor: reactor.index, epoch: process.epoch),
            at: clock + random.skewedDelay(process.current.syncDelay))
    }

    /// Position that a reactor knows to be written. After the process was frozen, the result of a
    /// write may still be in the reactor's inbox.
    private func toldPosition(of reactor: SimulatedReactor) -> UInt64 {
        let isInconclusive = reactor.inbox.contains {
            if case .completion(.wrote) = $0.1 { true } else { false }
        }
        return isInconclusive ? reactor.writtenBefore : reactor.writtenPosition
    }

    func syncDone(_ reactor: SimulatedReactor, fails: Bool = false) {
        guard let count = reactor.pendingSync else { return }
        reactor.pendingSync = nil
        if fails || random.chance(process.current.diskFailure) {
            cover(.syncFails)
            deliver(.completion(.synced(result: -5)), to: reactor)
            return
        }
        segments[process.epoch - 1][reactor.index].synced(upTo: count)
        noteReservations(of: reactor)
        guard process.claimedAt == nil else {
            deliver(.completion(.superseded), to: reactor)
            return
        }
        deliver(.completion(.synced(result: 0)), to: reactor)
    }

    /// The last write of a dead process reaches the file completely, in part, or not at all.
    func abandonWrite(of reactor: SimulatedReactor) {
        guard let write = reactor.pendingWrite else { return }
        reactor.pendingWrite = nil
        store(
            write.copy.prefix(random.between(0...write.copy.count)), at: write.offset, of: reactor)
    }

    private func store(_ bytes: ArraySlice<UInt8>, at offset: Int, of reactor: SimulatedReactor) {
        segments[process.epoch - 1][reactor.index].write(bytes, at: offset)
    }
}
