import Broadside
import BroadsideSupport

extension SimulatedServer {
    /// A client must not open more streams than allowed, nor a second stream before the first
    /// provider token was accepted.
    func checkOpening() {
        if order.count >= simulation.plan.streams {
            simulation.fail("more than \(simulation.plan.streams) streams are open on link \(link)")
        }
        if simulation.plan.usesProviderToken, !isGateOpen, !order.isEmpty {
            simulation.fail("a second request on link \(link) before the first was answered")
        }
    }

    /// Sends invalid bytes, the last ones that the client receives from this server.
    ///
    /// - Parameters:
    ///   - isSure: Whether the client must notice them, whatever the state of its streams is.
    ///   - isWhole: Whether the client receives all of them at once.
    func misbehave(_ bytes: [UInt8], isSure: Bool, isWhole: Bool = false) {
        guard !isMute else { return }
        pump()
        hasMisbehaved = true
        isMute = true
        violation = (sentCount, sentCount + bytes.count, isSure)
        simulation.serverSent(link: link, bytes, isWhole: isWhole)
        if random.chance(0.5) {
            simulation.schedule(.close, link: link, after: random.skewedDelay(4 * second))
        }
    }

    func frame(
        _ type: UInt8, _ flags: UInt8, _ stream: Int32, _ payload: [UInt8], count: Int? = nil
    ) -> [UInt8] {
        let count = count ?? payload.count
        let id = UInt32(bitPattern: stream)
        return [
            UInt8(count >> 16), UInt8(count >> 8 & 255), UInt8(count & 255), type, flags,
            UInt8(id >> 24), UInt8(id >> 16 & 255), UInt8(id >> 8 & 255), UInt8(id & 255),
        ] + payload
    }

    /// A second response to the stream with the last response.
    func secondAnswer() -> [UInt8]? {
        guard let lastAnswered else { return nil }
        // Indexed fields of the static table: 200 and 400.
        return frame(1, 5, lastAnswered.stream, [lastAnswered.status == 200 ? 0x8c : 0x88])
    }

    /// Breaks HTTP/2 in a random way.
    func violate() {
        let kind = random.below(12)
        if kind == 9 {
            // Whatever the window is, the second update is too large. Both arrive together, so that
            // the client sends nothing that the first one would allow.
            let most = frame(8, 0, 0, [0x7f, 0xff, 0xff, 0xff])
            misbehave(most + most, isSure: true, isWhole: true)
        } else {
            let (bytes, isSure) = violation(kind)
            misbehave(bytes, isSure: isSure)
        }
    }

    private func violation(_ kind: Int) -> ([UInt8], isSure: Bool) {
        // On a stream with a partial response, a header block without a status ends the response.
        let stream = order.first { streams[$0]?.isAnswered == false } ?? 0x7fff_ff03
        switch kind {
        case 0: return (frame(0, 0, 0x7fff_ff01, [1]), true)
        case 1: return (frame(5, 4, stream, [0, 0, 0, 2, 0x82]), true)
        case 2: return (frame(1, 5, stream, [0xff, 0xff, 0xff, 0xff, 0xff, 0xff]), true)
        case 3: return (frame(0, 0, stream, [], count: 20_000), true)
        case 4: return (frame(4, 1, 0, []) + frame(4, 1, 0, []), true)
        case 5: return (frame(8, 0, 0, [0, 0, 0, 0]), true)
        case 6: return (frame(3, 0, 0x7fff_ff01, [0, 0, 0, 8]), true)
        case 7: return (frame(9, 4, stream, [0x88]), true)
        // Without a status: an error of the stream, or of the connection if the stream is closed.
        case 8: return (frame(1, 5, stream, [0, 1, 0x61, 1, 0x62]), false)
        // An initial window above 2^31-1.
        case 10: return (frame(4, 0, 0, [0, 4, 0x80, 0, 0, 0]), true)
        default: return ((0..<40).map { _ in UInt8(truncatingIfNeeded: random.next()) }, false)
        }
    }
}
