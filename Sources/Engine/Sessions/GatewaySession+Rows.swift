import BroadsideLegacyGateway

/// Adapts a gateway session to the reactor: the tags of its notifications are the tags of rows in a
/// slab.
extension GatewaySession {
    func prepare(_ writer: inout RequestWriter) -> Int {
        writer.rowLimit = settings.countLimit(payloadCount: writer.payloadLimit)
        return .max
    }

    mutating func write(
        _ tag: RowTag, of slab: borrowing RowSlab, with writer: inout RequestWriter
    ) -> WriteOutcome {
        let identifier = append(tag)
        // SAFETY: the payload is valid until the next row's and does not overlap the record; the
        // output checks its bounds and counts what was written.
        let payload = unsafe writer.payload(of: tag, in: slab)
        let room = unsafe writer.freeRecord
        var output = unsafe OutputRawSpan(buffer: room, initializedCount: 0)
        unsafe settings.write(
            token: slab.tokenBytes(tag), payload: payload, identifier: identifier, into: &output)
        writer.recordCount += unsafe output.finalize(for: room)
        return .written
    }

    /// Returns the next outcome of received bytes.
    ///
    /// - Parameter firstUnsent: Identifier of the first notification that is still in the buffer.
    mutating func nextOutcome(
        in bytes: RawSpan, at offset: inout Int, firstUnsent: UInt32
    ) -> SessionOutcome? {
        switch nextOutcome(in: bytes, at: &offset) {
        case .errorPacket(let packet, .inFlight):
            // A correct packet never names a row that has not left the buffer. If this packet does,
            // the last row that the gateway processed is unknown.
            let hasLeft = packet.identifier < firstUnsent
            return .errorPacket(packet, hasLeft ? .inFlight : .nothing)
        case .errorPacket(let packet, .settled(let refuted)):
            return .errorPacket(packet, .settled(refuted: refuted))
        case .errorPacket(let packet, .nothing): return .errorPacket(packet, .nothing)
        case let outcome: return outcome.flatMap { SessionOutcome($0) }
        }
    }

    /// Removes and returns the oldest notification in flight; nil if there is none.
    mutating func takeInFlight() -> RequestInFlight? {
        let number = firstIdentifier
        return popOldest().map { RequestInFlight(number: number, tag: $0, isComplete: true) }
    }

    /// Returns the next outcome that follows from elapsed time.
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
    /// Converts a gateway outcome; nil for an error packet, because its meaning also depends on the
    /// row.
    fileprivate init?(_ outcome: GatewayOutcome) {
        switch outcome {
        case .confirmed(let tag): self = .confirmed(tag)
        case .refused(let tag, let packet): self = .refused(tag, packet)
        case .discarded(let tag): self = .discarded(tag)
        case .errorPacketBegan: self = .errorPacketBegan
        case .errorPacket: return nil
        case .over: self = .over
        case .unreadable: self = .unreadable
        case .unexplained: self = .unexplained
        }
    }
}
