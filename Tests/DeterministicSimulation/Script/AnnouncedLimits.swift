import Broadside
import BroadsideSupport
import CBroadsideNghttp2

/// Servers whose windows are tiny, or become so and large again while requests are under way, and that
/// change the size of frames within what RFC 9113, section 6.5.2, allows.
struct AnnouncedLimits {
    /// What the first SETTINGS say.
    let initialWindow: UInt32
    let frameSize: UInt32
    /// What later ones draw from.
    let windows: [UInt32]
    /// The longest time between two changes.
    let pause: UInt64
    /// Changes of a connection, at most.
    let count: Int

    /// Each connection's header table has another size, and few requests, so that blocks differ.
    let variesTables: Bool
    /// The stream limit falls to zero for a while.
    let pausesStreams: Bool

    static let frameSizes: [UInt32] = [16_384, 16_385, 20_000, 65_536, 1 << 20, (1 << 24) - 1]

    /// What a seed draws for one of its processes, of a generator of its own, so that its other draws
    /// stay what they are; nil where its servers have nothing of the kind.
    init?(seed: UInt64, process: Int, payloadCount: Int) {
        let mixed = seed ^ 0x6c69_6d69_7473_0001 &+ UInt64(process) << 32
        var random = SimulationRandom(seed: mixed)
        guard random.chance(0.2) else { return nil }
        let payload = UInt32(payloadCount)
        let tiny: [UInt32] = [0, 1, 10, payload / 2, payload - 1]
        windows = tiny + [payload, 65_535, 1 << 20, 1 << 30]
        initialWindow = random.chance(0.5) ? random.pick(tiny) : random.pick(windows)
        frameSize = random.pick(Self.frameSizes)
        pause = random.pick([20, 400, 3000]) * millisecond
        count = random.between(0...12)
        variesTables = random.chance(0.4)
        pausesStreams = random.chance(0.4)
    }
}

extension SimulatedServer {
    /// Plans what the server will announce.
    func planLimits() {
        guard let limits = faults.limits else { return }
        if limits.pausesStreams {
            let begin = random.skewedDelay(2 * second)
            let id = NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS.rawValue
            simulation.schedule(.announce(id: id, value: 0), link: link, after: begin)
            simulation.schedule(
                .announce(id: id, value: random.pick([1, 100, 1000])), link: link,
                after: begin + random.skewedDelay(12 * second))
        }
        var delay: UInt64 = 0
        for _ in 0..<random.between(0...limits.count) {
            delay += random.skewedDelay(limits.pause)
            let isWindow = random.chance(0.7)
            let value = random.pick(isWindow ? limits.windows : AnnouncedLimits.frameSizes)
            let id =
                isWindow
                ? NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE : NGHTTP2_SETTINGS_MAX_FRAME_SIZE
            simulation.schedule(.announce(id: id.rawValue, value: value), link: link, after: delay)
        }
    }

    /// Lets a body go on that its stream's window cuts off, a part at a time, until it is whole. Where
    /// the window has room, by an announcement or because of what was given before, it is the client's
    /// turn.
    func feed(_ stream: Int32) {
        guard let state = streams[stream], !state.isWhole, !state.isAnswered else { return }
        let missing = missingCount(stream)
        let short = missing - streamWindow(stream)
        if short > 0 {
            let step = random.chance(0.4) ? short : random.between(1...short)
            nghttp2_submit_window_update(session, 0, stream, Int32(step))
        }
        checkRoom(of: stream, hasRoom: short <= 0)
        let delay = 10 * millisecond + random.delay(min(faults.windowDelay, 300 * millisecond))
        simulation.schedule(.feed(stream: stream), link: link, after: delay)
    }

    /// Bytes of a body that are still to come.
    private func missingCount(_ stream: Int32) -> Int {
        guard let state = streams[stream] else { return 0 }
        return max(0, expectedCount(stream) - state.body.count)
    }

    /// What the client may send on a stream; below zero after the initial size was lowered.
    private func streamWindow(_ stream: Int32) -> Int {
        Int(nghttp2_session_get_stream_effective_local_window_size(session, stream))
            - Int(nghttp2_session_get_stream_effective_recv_data_length(session, stream))
    }

    /// A body that has room in its windows goes on: news of it take less than a second here, and while
    /// bytes are on their way nothing is wrong.
    private func checkRoom(of stream: Int32, hasRoom: Bool) {
        let link = simulation.links[self.link]
        let isQuiet =
            link.isOpenAtClient && !link.isSilent && link.countToServer == 0
            && link.pendingSend == nil && faults.trickle == 0
            && simulation.clock > simulation.process.frozenUntil
        guard hasRoom, isQuiet, !isMute, !hasSaidGoAway,
            connectionWindow >= order.reduce(0, { $0 + missingCount($1) })
        else {
            streams[stream]?.roomSince = nil
            return
        }
        // The client has to know of it.
        let news = streams[stream]?.roomSince == nil ? sentCount : streams[stream]?.roomNews ?? 0
        streams[stream]?.roomNews = news
        let isTold = link.countAtClient >= news
        let since = isTold ? streams[stream]?.roomSince ?? simulation.clock : simulation.clock
        streams[stream]?.roomSince = since
        if simulation.clock - since > 3 * second {
            simulation.fail("stream \(stream) of link \(self.link) has room, and does not go on")
        }
    }
}
