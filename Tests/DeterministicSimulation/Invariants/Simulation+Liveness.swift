import Broadside
import BroadsideSupport

/// Faults that end: from an instant on all is well, and then the campaign ends within bounded time.
extension Simulation {
    /// Plans when the faults of a process end, in some seeds.
    func scheduleCalm(epoch: Int) {
        var random = SimulationRandom(
            seed: plan.seed ^ 0x6c69_7665_6c79_0001 &+ UInt64(epoch) << 32)
        guard random.chance(0.3) else { return }
        events.insert(.calm(epoch: epoch), at: clock + random.skewedDelay(20 * second))
    }

    /// Servers, network and disk are good from here on, and nobody disturbs the process any more. What is
    /// wrong with a connection already stays wrong with it.
    func calmDown() {
        note { "all is well from now on" }
        pause(for: nil)
        trace.step(time: clock, kind: 9, 0)
        cover(.calm)
        process.calmSince = clock
        process.current = .calm
        process.current.refusesTokens = plan.refusesTokens
        for link in ownLinkIndices {
            servers[link]?.calmDown()
            gateways[link]?.calmDown()
        }
    }

    /// Nanoseconds within which a process ends once all is well.
    ///
    /// What is in flight is awaited, 30 s; a server that hung does so for 30 s more; an address is left
    /// alone for 75 s, a row for 60 s; APNs takes no new provider token for 20 minutes. Then all rows
    /// go at the rate that is in force, on a single slow connection at worst: where a server reads a
    /// kilobyte a second, a payload takes as many milliseconds as it has bytes.
    private var calmLimit: UInt64 {
        let rows = UInt64(plan.list.tokens.count)
        let slowest = process.rates.compactMap(\.rate).min() ?? UInt64.max
        let rising = 2 * (plan.ramp?.riseNanoseconds ?? 0)
        let perRow = max(second / slowest, second / (plan.ratePerConnection ?? .max))
        let isRead = ownLinks.contains(where: \.isSlow)
        let reading = isRead ? UInt64(plan.payload.count + 300) * millisecond : 0
        let isFrozen =
            process.faults.refusesTokensFrom > 0 || process.faults.expiresTokensBefore > 0
        let waiting = (isFrozen ? 2100 : 600) * second
        // So many rows go at a time, and a gateway's silence is waited for.
        var silence: UInt64 = 0
        if let window = plan.gateway?.window {
            silence = plan.silence / UInt64(min(window, plan.placesMost))
        }
        return waiting + rising + rows * (perRow + reading + silence + second / 2) + windowTime
    }

    /// What rows take whose payloads go through windows that are smaller, a window at a time.
    var windowTime: UInt64 {
        let faults = process.faults
        let (window, payload) = (Int(faults.initialWindow), plan.payload.count)
        guard window < payload, faults.windowDelay > 0 else { return 0 }
        let windows = UInt64(payload / max(1, window) + 1)
        let together = UInt64(min(faults.maxStreams ?? 10, 10))
        let rows = UInt64(plan.list.tokens.count)
        return (rows / max(1, together) + 1) * windows * 8 * (faults.windowDelay + faults.latency)
    }

    /// Rows that are settled one after another, each within so long, may take so many times the limit: how fast
    /// a body goes that windows let through a few bytes at a time is a matter of luck.
    private static let (steadyLimit, steadyFactor): (UInt64, UInt64) = (120 * second, 4)

    private var timesTheLimit: UInt64 {
        clock - process.steady.time < Self.steadyLimit ? Self.steadyFactor : 1
    }

    func noteSettled() {
        let settled = process.reactors.reduce(UInt64(0)) {
            $0 + $1.machine.snapshot().counts.settled
        }
        if settled != process.steady.settled { process.steady = (settled, clock) }
    }

    func checkLiveness() {
        if clock > lifeEnd + process.pausedTime + (timesTheLimit - 1) * lifeLimit {
            fail("no end within \(lifeLimit / second) s: \(leftOver)")
        }
        guard let since = process.calmSince, !process.isOver,
            clock - since > calmLimit * timesTheLimit
        else { return }
        fail("no end within \(calmLimit / second) s after all became well: \(leftOver)")
    }

    /// The longest time in which a process without rows writes its verdicts and closes its connections: those
    /// that it can't open don't keep it.
    private static let endLimit = 10 * second

    func checkEnd() {
        checkStopped()
        guard process.hasListEnded, !process.isOver, clock >= process.takesFrom,
            process.reactors.allSatisfy({ $0.isDone || $0.machine.hasNoRows })
        else {
            process.emptySince = nil
            return
        }
        let since = process.emptySince ?? clock
        process.emptySince = since
        // A process that is stopped does nothing meanwhile, and has its time from then on.
        let isOverdue = clock - max(since, process.takesFrom) > Self.endLimit
        if isOverdue {
            fail("no row is left since \(since / second) s, and no end: \(leftOver)")
        }
    }
}

extension Simulation {
    /// A process that is to stop waits for what is in flight, and for that no longer than for any response; at
    /// the second word it waits for nothing.
    private func checkStopped() {
        guard !process.isOver, clock >= process.takesFrom else { return }
        func isLate(_ time: UInt64?, by limit: UInt64) -> Bool {
            guard let time else { return false }
            return clock - min(clock, max(time, process.takesFrom)) > limit
        }
        if isLate(process.stoppedAtOnceAt, by: Self.endLimit / 2) {
            fail("no end although it is to stop at once: \(leftOver)")
        }
        if isLate(process.stoppedAt, by: plan.requestTimeout + Self.endLimit) {
            fail("no end within \(plan.requestTimeout / second) s of the word to stop: \(leftOver)")
        }
    }
}

extension SimulatedServer {
    /// Windows and limits that were announced stay, and tokens that are refused; nothing else that is wrong.
    func calmDown() {
        var calm = FaultPlan.calm
        calm.limits = faults.limits
        calm.initialWindow = faults.initialWindow
        calm.windowDelay = faults.windowDelay
        calm.refusesTokens = faults.refusesTokens
        faults = calm
    }
}
