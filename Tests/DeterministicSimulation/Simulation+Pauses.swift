import Broadside
import BroadsideEngine
import BroadsideSupport

/// In some seeds, the operator pauses and resumes the run, or stops it twice.
extension Simulation {
    /// Plans the pauses of a process. They come from their own generator, so that other draws stay
    /// the same.
    func schedulePauses(epoch: Int) {
        var random = SimulationRandom(
            seed: plan.seed ^ 0x7061_7573_6573_0001 &+ UInt64(epoch) << 32)
        if random.chance(0.04) {
            let at = clock + random.delay(process.faults.life)
            events.insert(.signal(epoch: epoch, isSecond: false), at: at)
            events.insert(.signal(epoch: epoch, isSecond: true), at: at + random.delay(second))
        }
        guard random.chance(0.15) else { return }
        var at = clock
        for _ in 0..<random.between(1...2) {
            at += random.skewedDelay(2 * process.faults.life)
            let length = random.pick([20, 1000, 10_000, 400_000]) * millisecond
            events.insert(.pause(epoch: epoch, random.delay(length)), at: at)
        }
    }

    /// - Parameter duration: Duration of the pause; nil to resume the run.
    func pause(for duration: UInt64?) {
        let isPaused = duration != nil
        guard isPaused != (process.pausedSince != nil) else { return }
        note { isPaused ? "the run is paused" : "the run continues" }
        trace.step(time: clock, kind: 14, isPaused ? 1 : 0)
        cover(.pause)
        process.coordinator.pause(isPaused)
        if let since = process.pausedSince { process.pausedTime += clock - since }
        process.pausedSince = isPaused ? clock : nil
        process.hasPaused = true
        process.continuedAt = clock
        guard let duration else { return }
        events.insert(.pause(epoch: process.epoch, nil), at: clock + duration)
    }

    /// After a reactor's iteration: the reactor has known of the pause since the start of the
    /// iteration.
    func checkPause(_ reactor: SimulatedReactor) {
        guard process.pausedSince != nil,
            reactor.machine.statistics.requests > reactor.countedRequests
        else { return }
        fail("reactor \(reactor.index) sends while the run is paused")
    }
}
