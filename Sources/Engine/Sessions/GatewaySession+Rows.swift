import BroadsideLegacyGateway

/// A gateway's session as the reactor asks any session: its tags are those of rows in a slab.
extension GatewaySession {
    func prepare(_ writer: inout RequestWriter) -> Int {
        writer.rowLimit = settings.countLimit(payloadCount: writer.payloadLimit)
        return .max
    }

    mutating func write(
        _ tag: RowTag, of slab: borrowing RowSlab, with writer: inout RequestWriter
    ) -> WriteOutcome {
        let identifier = append(tag)
        // SAFETY: the payload is good until the next row's, and lies outside of the record; the
        // output checks what is written to it, and says how much that was.
        let payload = unsafe writer.payload(of: tag, in: slab)
        let room = unsafe writer.freeRecord
        var output = unsafe OutputRawSpan(buffer: room, initializedCount: 0)
        unsafe settings.write(
            token: slab.tokenBytes(tag), payload: payload, identifier: identifier, into: &output)
        writer.recordCount += unsafe output.finalize(for: room)
        return .written
    }

    /// What received bytes mean.
    ///
    /// - Parameter handedOver: Rows written later have not left our buffer.
    mutating func nextOutcome(
        in bytes: RawSpan, at offset: inout Int, of slab: borrowing RowSlab, handedOver: UInt64
    ) -> SessionOutcome? {
        switch nextOutcome(in: bytes, at: &offset) {
        case .errorPacket(let word, .inFlight(let tag)):
            // What never left names nothing: how far the gateway came is not known.
            let hasLeft = slab[tag].sentNanoseconds <= handedOver
            return .errorPacket(word, hasLeft ? .inFlight : .nothing)
        case .errorPacket(let word, .settled): return .errorPacket(word, .settled)
        case .errorPacket(let word, .nothing): return .errorPacket(word, .nothing)
        case let outcome: return outcome.flatMap { SessionOutcome($0) }
        }
    }

    /// What time has settled.
    mutating func nextExpired(_ times: SessionTimes, of slab: borrowing RowSlab) -> SessionOutcome?
    {
        var sent: UInt64?
        if let oldest { sent = slab[oldest].sentNanoseconds }
        let outcome = nextExpired(
            now: times.now, phaseSince: times.phaseSince, isFlushed: times.isFlushed,
            oldestSent: sent)
        return outcome.flatMap { SessionOutcome($0) }
    }
}

extension SessionOutcome {
    /// What a gateway's outcome is to the reactor; nil for a last word, whose subject needs the row.
    fileprivate init?(_ outcome: GatewayOutcome) {
        switch outcome {
        case .confirmed(let tag): self = .confirmed(tag)
        case .refused(let tag, let word): self = .refused(tag, word)
        case .discarded(let tag): self = .discarded(tag)
        case .errorPacketBegan: self = .errorPacketBegan
        case .errorPacket: return nil
        case .over: self = .over
        case .unreadable: self = .unreadable
        case .unexplained: self = .unexplained
        }
    }
}
