import Broadside

extension SimulatedServer {
    /// No client opens more streams than it was told to, nor a second one before the first provider
    /// token was taken.
    func judgeOpening() {
        if order.count >= world.scenario.streams {
            world.fail("more than \(world.scenario.streams) streams are open on link \(link)")
        }
        if world.scenario.usesProviderToken, !isGateOpen, !order.isEmpty {
            world.fail("a second request on link \(link) before the first was answered")
        }
    }

    /// The last that the client hears from here.
    func misbehave(_ bytes: [UInt8]) {
        guard !isMute else { return }
        pump()
        hasMisbehaved = true
        isMute = true
        world.serverSent(link: link, bytes)
        if random.chance(0.5) {
            world.schedule(.close, link: link, after: random.skewedDelay(4 * second))
        }
    }

    private func frame(
        _ type: UInt8, _ flags: UInt8, _ stream: Int32, _ payload: [UInt8], count: Int? = nil
    ) -> [UInt8] {
        let count = count ?? payload.count
        let id = UInt32(bitPattern: stream)
        return [
            UInt8(count >> 16), UInt8(count >> 8 & 255), UInt8(count & 255), type, flags,
            UInt8(id >> 24), UInt8(id >> 16 & 255), UInt8(id >> 8 & 255), UInt8(id & 255),
        ] + payload
    }

    /// An answer to a stream that has one.
    func secondAnswer() -> [UInt8]? {
        guard let lastAnswered else { return nil }
        // Indexed fields of the static table: 200 and 400.
        return frame(1, 5, lastAnswered.stream, [lastAnswered.status == 200 ? 0x8c : 0x88])
    }

    /// Something that HTTP/2 does not allow.
    func violation() -> [UInt8] {
        let stream = order.first ?? 1
        switch random.below(11) {
        case 0: return frame(0, 0, 0x7fff_ff01, [1])
        case 1: return frame(5, 4, stream, [0, 0, 0, 2, 0x82])
        case 2: return frame(1, 5, stream, [0xff, 0xff, 0xff, 0xff, 0xff, 0xff])
        case 3: return frame(0, 0, stream, [], count: 20_000)
        case 4: return frame(4, 1, 0, []) + frame(4, 1, 0, [])
        case 5: return frame(8, 0, 0, [0, 0, 0, 0])
        case 6: return frame(3, 0, 0x7fff_ff01, [0, 0, 0, 8])
        case 7: return frame(9, 4, stream, [0x88])
        case 8: return frame(1, 5, stream, [0, 1, 0x61, 1, 0x62])
        case 9:
            // A violation, unless the client's window happens to be 0: then it may use it.
            hasOpenedFalsely = true
            return frame(8, 0, 0, [0x7f, 0xff, 0xff, 0xff])
        default: return (0..<40).map { _ in UInt8(truncatingIfNeeded: random.next()) }
        }
    }
}
