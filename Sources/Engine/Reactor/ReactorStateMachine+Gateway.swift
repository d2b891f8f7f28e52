import BroadsideAPNs
import BroadsideLegacyGateway
import BroadsidePolicy
import BroadsideRows
import BroadsideSupport

/// Verdicts for a legacy gateway. It accepts notifications without a response, so silence counts as
/// acceptance. An error packet ends the connection (Apple, "Binary Provider API", archived;
/// Technical Note TN2265).
extension ReactorStateMachine where Records: ~Copyable {
    /// Stops writing when an error packet begins.
    mutating func awaitErrorPacket(_ index: Int, now: Now) {
        switch connections[index].phase {
        case .open, .draining: connections[index].enter(.draining, now: now.nanoseconds)
        case .idle, .connecting, .handshaking, .flushing, .closing: break
        }
    }

    /// Handles an error packet. Outcomes of the rows follow. If the packet names no notification,
    /// the rows in flight are in doubt.
    mutating func handleErrorPacket(
        _ packet: BinaryErrorPacket, about subject: ErrorPacketSubject, _ index: Int, now: Now
    ) {
        let address = connections.addresses.entries[connections[index].address].address
        let meaning = packet.meaning
        run.record(
            ConnectionTrouble(
                .refused, with: "\(address)", "error \(packet.status) (\(meaning.reason.text))"))
        switch subject {
        case .inFlight:
            break
        case .settled(let refuted):
            handleLate(packet, refuted: refuted, index, now: now)
        case .nothing:
            log(
                .errorPacket, .warning, connection: index,
                "\(address): error \(packet.status) names no notification: the "
                    + "notifications in flight are in doubt",
                now: now)
            run.append(
                .response(
                    writer.campaignSignal(for: meaning.campaign), status: UInt16(packet.status),
                    reason: meaning.reason))
            loseStreams(index, now: now)
        }
    }

    /// Handles an error packet about a notification that silence has already settled. The recorded
    /// verdicts stay.
    ///
    /// - Parameter refuted: Number of rows recorded as accepted that the gateway refused or
    ///   discarded. It is 0 after a shutdown if no row was written since the last accepted one.
    private mutating func handleLate(
        _ packet: BinaryErrorPacket, refuted: Int, _ index: Int, now: Now
    ) {
        let address = connections.addresses.entries[connections[index].address].address
        let meaning = packet.meaning
        let text = "\(address): error \(packet.status) (\(meaning.reason.text))"
        guard refuted > 0 else {
            assert(meaning == .shutdown, "a refusal refutes at least the named notification")
            log(
                .errorPacket, .info, connection: index,
                "\(text) after the last notification was accepted", now: now)
            return
        }
        metrics.statistics.refutedAcceptances += UInt64(refuted)
        log(
            .errorPacket, .warning, connection: index,
            "\(text) refuses or discards \(refuted) \(refuted == 1 ? "row" : "rows") recorded as "
                + "accepted: the wait for errors was too short",
            now: now)
        guard meaning != .shutdown else { return }
        switch meaning.row {
        case .rejected, .remainUnsettled: metrics.canaryReport.refused += 1
        default: break
        }
        // Guards count responses in order.
        reportAccepted(now)
        run.append(
            .lateRefusal(
                writer.campaignSignal(for: meaning.campaign), status: UInt16(packet.status),
                reason: meaning.reason, isFirst: packet.identifier == 1))
    }

    /// Closes the connection when all outcomes of the error packet are processed.
    mutating func endAfterErrorPacket(_ index: Int, now: Now) {
        if connections[index].responses == 0 {
            connections.addresses.failed(
                connections[index].address, now: now.nanoseconds, retryAfter: nil, lasting: nil,
                random: &random)
        } else {
            connections.addresses.succeeded(
                connections[index].address, slot: index, now: now.nanoseconds)
        }
        beginClose(index, now: now)
    }

    /// Fails a connection on which the server sent something other than an error packet.
    mutating func failUnreadable(_ index: Int, now: Now) {
        let address = connections.addresses.entries[connections[index].address].address
        let trouble = ConnectionTrouble(
            .protocol, with: "\(address)",
            "the server sent data that is not a gateway's error packet")
        recordProtocolError(index, trouble, now: now)
        fail(index, trouble, isLasting: false, now: now)
    }

    /// Settles a notification that was accepted by silence.
    mutating func confirm(_ tag: RowTag, connection index: Int, now: Now) {
        recordUntimedResponse(index, now: now)
        rows.endFlight()
        settleAccepted(tag, now: now)
    }

    /// Counts a response without a known latency: acceptance by silence, or an error packet.
    private mutating func recordUntimedResponse(_ index: Int, now: Now) {
        connections[index].trust.recordResponse(now: now.nanoseconds)
        connections[index].tally.recordResponse()
        metrics.statistics.untimedResponses += 1
    }

    /// Handles the notification that an error packet names.
    mutating func refuseNamed(
        _ tag: RowTag, _ packet: BinaryErrorPacket, connection index: Int, now: Now
    ) {
        recordUntimedResponse(index, now: now)
        run.recordResponse(now)
        rows.endFlight()
        let meaning = packet.meaning
        rows.slab[tag].lastStatus = UInt16(packet.status)
        rows.slab[tag].lastReason = meaning.reason.rawValue
        // Guards count responses in order.
        reportAccepted(now)
        switch meaning.row {
        case .remainUnsettled:
            leaveUnsettled(tag, now: now)
        case .retryAfterDelay:
            scheduleRetry(tag, retryAfter: nil, now: now)
        default:
            metrics.canaryReport.refused += 1
            settle(
                tag, state: .rejected, status: UInt16(packet.status),
                reasonCode: meaning.reason.rawValue, now: now)
        }
        run.append(
            .response(
                writer.campaignSignal(for: meaning.campaign), status: UInt16(packet.status),
                reason: meaning.reason))
    }
}
