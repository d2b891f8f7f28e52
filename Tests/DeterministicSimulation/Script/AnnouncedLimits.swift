import Broadside
import BroadsideSupport
import CBroadsideNghttp2

/// Servers with tiny windows, or with windows that change during requests, and with frame sizes
/// that change within the range of RFC 9113, section 6.5.2.
struct AnnouncedLimits {
    /// Values of the first SETTINGS.
    let initialWindow: UInt32
    let frameSize: UInt32
    /// Values from which later window sizes are drawn.
    let windows: [UInt32]
    /// Maximum time between two changes.
    let pause: UInt64
    /// Maximum number of changes on a connection.
    let count: Int

    /// Whether each connection has another size of the header table and only a few requests, so
    /// that header blocks differ.
    let variesTables: Bool
    /// Whether the stream limit is zero for a while.
    let pausesStreams: Bool

    static let frameSizes: [UInt32] = [16_384, 16_385, 20_000, 65_536, 1 << 20, (1 << 24) - 1]

    /// Draws the limits of a process from their own generator, so that the seed's other draws stay
    /// the same; nil if its servers do not change limits.
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
    /// Schedules the server's announcements.
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

    /// Opens the window of a stream in steps until its whole body can arrive. If the window has
    /// space, because of an announcement or an earlier step, the client must send.
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

    /// Number of a body's bytes that have not arrived.
    private func missingCount(_ stream: Int32) -> Int {
        guard let state = streams[stream] else { return 0 }
        return max(0, expectedCount(stream) - state.body.count)
    }

    /// Number of bytes that the client may send on a stream; negative after the initial size was
    /// lowered.
    private func streamWindow(_ stream: Int32) -> Int {
        Int(nghttp2_session_get_stream_effective_local_window_size(session, stream))
            - Int(nghttp2_session_get_stream_effective_recv_data_length(session, stream))
    }

    /// Checks that the client continues a body whose windows have space. News of it takes less than
    /// a second here. While bytes are in flight, nothing is checked.
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
        // The client must know of the space.
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
