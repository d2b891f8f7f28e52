import APNs
import Campaign
import Support

/// The legacy gateway's protocol: notifications one behind the other, silence for success, one error
/// packet and the end for failure (Apple, "Binary Provider API", archived; Technical Note TN2265).
extension ReactorStateMachine where Records: ~Copyable {
    /// A connection that takes nothing any more gets so long to say why, to the end.
    private static var brokenLimit: UInt64 { 2 * second }

    /// TLS stands, and the gateway says nothing: notifications may follow.
    mutating func startBinary(_ index: Int, now: Now) {
        connections[index].binary = BinaryConnection(capacity: settings.streamsPerConnection)
        connections[index].isReady = true
        connections.addresses.ready(connections[index].address)
        shared.noteReady()
    }

    /// Fills the record with notifications.
    ///
    /// - Returns: How many were written.
    mutating func writeBinary(
        _ index: Int, _ binary: BinarySettings, budget: Int, staged: inout Int, limit: Int, now: Now
    ) -> Int {
        let most = binary.countLimit(
            payloadCount: settings.personal?.limit ?? settings.payload.count)
        var written = 0
        while written < budget, staged + most <= limit, let tag = takeRow(now) {
            let identifier = connections[index].binary.append(tag)
            let state = unsafe rows.slab.state(tag)
            let room = unsafe UnsafeMutableRawBufferPointer(
                rebasing: writer.staging[staged..<limit])
            var output = unsafe OutputRawSpan(buffer: room, initializedCount: 0)
            if writer.isPersonal {
                unsafe Self.write(
                    binary, token: rows.slab.tokenBytes(tag), payload: personalPayload(tag),
                    identifier: identifier, into: &output)
            } else {
                unsafe settings.payload.withUnsafeBytes { payload in
                    unsafe Self.write(
                        binary, token: rows.slab.tokenBytes(tag), payload: payload,
                        identifier: identifier, into: &output)
                }
            }
            staged += unsafe output.finalize(for: room)
            unsafe noteSent(state, now: now)
            written += 1
        }
        return written
    }

    /// A row's own payload, written from its pieces; good until the next row's.
    private func personalPayload(_ tag: RowTag) -> UnsafeRawBufferPointer {
        let shape = unsafe rows.slab.state(tag).pointee.personal
        let pieces = unsafe rows.slab.pieces(tag, scratch: writer.piecesScratch)
        unsafe writer.personalizer.writePayload(
            shape, pieces: pieces.baseAddress!, to: writer.payloadScratch.baseAddress!)
        return unsafe UnsafeRawBufferPointer(
            rebasing: writer.payloadScratch[..<Int(shape.payloadCount)])
    }

    /// Notifications that the kernel has and of which the gateway has said nothing for long enough
    /// were accepted.
    mutating func confirmSilent(_ index: Int, now: Now) {
        guard let binary = settings.binary else { return }
        if connections[index].binary.isBroken {
            if now.nanoseconds - connections[index].phaseSince > Self.brokenLimit {
                receiveEnded(index, errno: 0, now: now)
            }
            return
        }
        if connections[index].sealedCount == 0 { connections[index].binary.noteFlushed() }
        while let tag = connections[index].binary.oldest, connections[index].binary.isOldestSent {
            let sent = unsafe rows.slab.state(tag).pointee.sentNanoseconds
            guard now.nanoseconds > sent, now.nanoseconds - sent > binary.silence else { return }
            _ = connections[index].binary.popOldest()
            confirm(tag, connection: index, now: now)
        }
    }

    /// The gateway reads no more, and its packet may be on its way: only the stream's end says that
    /// none comes.
    mutating func stopSending(_ index: Int, now: Now) {
        connections[index].binary.isBroken = true
        connections[index].clearOutgoing()
        connections[index].enter(.draining, now: now.nanoseconds)
    }

    /// The gateway has begun to say what is wrong: it discards what else it gets, and its silence is over.
    private mutating func awaitPacket(_ index: Int, now: Now) {
        guard !connections[index].binary.isBroken else { return }
        switch connections[index].phase {
        case .open, .draining:
            connections[index].binary.isBroken = true
            connections[index].enter(.draining, now: now.nanoseconds)
        case .idle, .connecting, .handshaking, .flushing, .closing:
            break
        }
    }

    /// Takes what the gateway says: it is the last of this connection.
    mutating func handlePacket(_ index: Int, in bytes: RawSpan, now: Now) {
        guard let octets = connections[index].binary.receive(bytes) else {
            awaitPacket(index, now: now)
            return
        }
        let address = connections.addresses.entries[connections[index].address].address
        guard let packet = BinaryErrorPacket(octets) else {
            let trouble = ConnectionTrouble(
                .protocol, with: "\(address)",
                "the server says what is no error packet of a gateway")
            fail(index, trouble, isLasting: false, now: now)
            return
        }
        follow(packet, index, now: now)
        // All that is still out was written behind the one that is named: discarded, so sent again.
        while let tag = connections[index].binary.popOldest() {
            rows.inFlight -= 1
            sendElsewhere(tag)
        }
        if connections[index].answers == 0 {
            connections.addresses.failed(
                connections[index].address, now: now.nanoseconds, retryAfter: nil, lasting: nil,
                random: &random)
        } else {
            connections.addresses.succeeded(connections[index].address, now: now.nanoseconds)
        }
        beginClose(index, now: now)
    }

    /// Settles what the packet tells of the rows up to the one that it names.
    private mutating func follow(_ packet: BinaryErrorPacket, _ index: Int, now: Now) {
        let address = connections.addresses.entries[connections[index].address].address
        let meaning = packet.meaning
        shared.note(
            ConnectionTrouble(
                .refused, with: "\(address)", "error \(packet.status) (\(meaning.reason.text))"))
        let first = connections[index].binary.firstIdentifier
        let next = connections[index].binary.nextIdentifier
        // 0 names nothing, and so does what never left: how far the gateway came is not known.
        let isNamed = packet.identifier > 0 && packet.identifier < next
        guard isNamed, packet.identifier < first || hasLeft(packet.identifier, index) else {
            tell(
                .errorPacket, .warning, connection: index,
                "\(address): error \(packet.status) names no notification: what is out is in doubt",
                now: now)
            shared.count(
                heard(meaning.campaign), status: UInt16(packet.status), reason: meaning.reason)
            loseStreams(index, now: now)
            return
        }
        // An error about one that silence has settled came too late to change it.
        guard packet.identifier >= first else {
            tell(
                .errorPacket, .warning, connection: index,
                "\(address): error \(packet.status) came later than notifications are waited for: "
                    + "a row that it names was recorded as accepted", now: now)
            connections[index].noteAnswer(now)
            return
        }
        for identifier in first...packet.identifier {
            guard let tag = connections[index].binary.popOldest() else { return }
            if identifier < packet.identifier || meaning == .shutdown {
                confirm(tag, connection: index, now: now)
            } else {
                refuse(tag, packet, connection: index, now: now)
            }
        }
    }

    /// False for a row that still waits in our own buffer as a whole.
    private func hasLeft(_ identifier: UInt32, _ index: Int) -> Bool {
        let tag = connections[index].binary.tag(identifier)
        return unsafe rows.slab.state(tag).pointee.sentNanoseconds <= connections[index].handedOver
    }

    private mutating func confirm(_ tag: RowTag, connection index: Int, now: Now) {
        noteUntimedAnswer(index, now: now)
        rows.inFlight -= 1
        settleAccepted(tag, now: now)
    }

    /// Silence and errors tell what became of a notification, not how long that took.
    private mutating func noteUntimedAnswer(_ index: Int, now: Now) {
        connections[index].noteAnswer(now)
        connections[index].tally.noteAnswer()
        metrics.statistics.untimedAnswers += 1
    }

    private mutating func refuse(
        _ tag: RowTag, _ packet: BinaryErrorPacket, connection index: Int, now: Now
    ) {
        noteUntimedAnswer(index, now: now)
        shared.noteAnswer(now)
        rows.inFlight -= 1
        let meaning = packet.meaning
        let state = unsafe rows.slab.state(tag)
        unsafe state.pointee.lastStatus = UInt16(packet.status)
        unsafe state.pointee.lastReason = meaning.reason.rawValue
        // Guards count answers in their order.
        metrics.reportAccepted(to: shared)
        switch meaning.row {
        case .remainUnsettled:
            holdBack(tag, now: now)
        case .retryAfterDelay:
            retryLater(tag, retryAfter: nil, now: now)
        default:
            settle(
                tag, state: .rejected, status: UInt16(packet.status),
                reasonCode: meaning.reason.rawValue, now: now)
        }
        shared.count(
            heard(meaning.campaign), status: UInt16(packet.status), reason: meaning.reason)
    }

    /// Lays one notification down: see `BinaryNotification` for its form.
    private static func write(
        _ binary: BinarySettings, token: UnsafeRawBufferPointer,
        payload: UnsafeRawBufferPointer,
        identifier: UInt32, into output: inout OutputRawSpan
    ) {
        let tokenCount = token.count / 2
        func big(_ value: UInt32, _ output: inout OutputRawSpan) {
            for shift in [24, 16, 8, 0] as [UInt32] {
                output.append(UInt8(truncatingIfNeeded: value >> shift))
            }
        }
        func count(_ count: Int, _ output: inout OutputRawSpan) {
            output.append(UInt8(truncatingIfNeeded: count >> 8))
            output.append(UInt8(truncatingIfNeeded: count))
        }
        func tokenBytes(_ output: inout OutputRawSpan) {
            count(tokenCount, &output)
            for place in 0..<tokenCount {
                let high = unsafe digit(token[2 * place])
                let low = unsafe digit(token[2 * place + 1])
                output.append(high << 4 | low)
            }
        }
        func payloadBytes(_ output: inout OutputRawSpan) {
            count(payload.count, &output)
            for place in 0..<payload.count { output.append(unsafe payload[place]) }
        }
        output.append(binary.command.rawValue)
        switch binary.command {
        case .simple, .enhanced:
            if binary.command == .enhanced {
                big(identifier, &output)
                big(binary.expiration ?? BinarySettings.farFuture, &output)
            }
            tokenBytes(&output)
            payloadBytes(&output)
        case .frame:
            let items =
                3 + tokenCount + 3 + payload.count + 7 + (binary.expiration == nil ? 0 : 7) + 4
            big(UInt32(items), &output)
            output.append(BinaryItem.token.rawValue)
            tokenBytes(&output)
            output.append(BinaryItem.payload.rawValue)
            payloadBytes(&output)
            output.append(BinaryItem.identifier.rawValue)
            count(4, &output)
            big(identifier, &output)
            if let expiration = binary.expiration {
                output.append(BinaryItem.expiration.rawValue)
                count(4, &output)
                big(expiration, &output)
            }
            output.append(BinaryItem.priority.rawValue)
            count(1, &output)
            output.append(binary.priority)
        }
    }

    /// The slab's digits are lower case and checked.
    private static func digit(_ octet: UInt8) -> UInt8 {
        octet < 0x3a ? octet - 0x30 : octet - 0x57
    }
}
