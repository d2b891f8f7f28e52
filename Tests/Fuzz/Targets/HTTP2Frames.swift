import BroadsideHTTP2

extension FuzzTarget {
    /// What a server sends, from its first byte: the frame reader and the connection's machine.
    ///
    /// How the bytes are torn changes nothing, no request is settled twice, and nothing comes after
    /// a failure.
    static let http2Frames = FuzzTarget(name: "http2-frames") { bytes in
        var input = FuzzInput(bytes)
        let size = 1 + input.choice(below: 40)
        let whole = Conversation(isGated: false).hear(input.bytes.pieces(of: 1 << 20))
        let torn = Conversation(isGated: false).hear(input.bytes.pieces(of: size))
        precondition(whole == torn, "tearing changed what was heard")
        _ = Conversation(isGated: true).hear(input.bytes.pieces(of: size))
    }
}

/// A client's connection with eight open requests, one of them in parts, and what it hears and says.
struct Conversation {
    struct Outcome: Equatable {
        var events: [ClientConnectionStateMachine.Event] = []
        var bodies: [[UInt8]] = []
        var said: [UInt8] = []
        var settled: [UInt32] = []
    }

    let isGated: Bool

    /// Hears SETTINGS, opens its requests, and then hears `pieces`.
    func hear(_ pieces: [[UInt8]]) -> Outcome {
        var machine = ClientConnectionStateMachine(
            configuration: .init(maxStreams: 8, gateUntilFirstResponse: isGated))
        var outcome = Outcome()
        machine.start()
        // INITIAL_WINDOW_SIZE = 100: a longer body goes in parts.
        hear([0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 100], &machine, &outcome)
        precondition(outcome.events == [.ready])
        var tag: UInt32 = 0
        open(&machine, &tag)
        if machine.mustSendInParts(payloadCount: 500) {
            _ = machine.openPartialStream(tag: tag, payloadCount: 500)
            tag += 1
        }
        // As the engine's turns go: all input, then what the connection says, then requests.
        for piece in pieces {
            hear(piece, &machine, &outcome)
            precondition(machine.pendingOutputCount < 1 << 16)
        }
        while let part = machine.nextContinuation() { precondition(part.count > 0) }
        let hasFailed = outcome.events.contains { if case .failed = $0 { true } else { false } }
        if machine.isUsable { open(&machine, &tag) }
        precondition(!hasFailed || !machine.isUsable, "a failed connection is usable")
        while let left = machine.takeOpenStream() { outcome.settled.append(left) }
        say(&machine, &outcome)
        precondition(machine.openStreamCount == 0)
        precondition(Set(outcome.settled).count == outcome.settled.count, "settled twice")
        precondition(outcome.settled.count == Int(tag), "a request was lost")
        return outcome
    }

    private func open(_ machine: inout ClientConnectionStateMachine, _ tag: inout UInt32) {
        while tag < 64, machine.requestCapacity(payloadCount: 50) > 0 {
            _ = machine.openStream(tag: tag, payloadCount: 50)
            tag += 1
        }
    }

    private func hear(
        _ bytes: [UInt8], _ machine: inout ClientConnectionStateMachine, _ outcome: inout Outcome
    ) {
        var offset = 0
        while let event = machine.nextEvent(in: bytes.span.bytes, at: &offset) {
            if case .failed? = outcome.events.last { preconditionFailure("heard after a failure") }
            outcome.events.append(event)
            switch event {
            case .response(let tag, let status):
                precondition(
                    (200...999).contains(status)
                        || status == ClientConnectionStateMachine.identifiedStatus
                            && machine.responseBody.byteCount == 36,
                    "status \(status)")
                outcome.settled.append(tag)
                outcome.bodies.append(machine.responseBody.withUnsafeBytes { Array($0) })
            case .notProcessed(let tag), .reset(let tag, _), .streamError(let tag, _):
                outcome.settled.append(tag)
            case .goAway:
                outcome.bodies.append(machine.goAwayDebugData.withUnsafeBytes { Array($0) })
            default: break
            }
        }
        precondition(offset == bytes.count, "input was left over")
    }

    private func say(_ machine: inout ClientConnectionStateMachine, _ outcome: inout Outcome) {
        let storage = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 8)
        defer { storage.deallocate() }
        var output = OutputRawSpan(buffer: storage, initializedCount: 0)
        machine.takeOutput(into: &output)
        outcome.said += storage[..<output.byteCount]
    }
}
