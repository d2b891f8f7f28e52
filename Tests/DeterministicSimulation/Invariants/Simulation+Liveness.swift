import Broadside
import BroadsideSupport

/// In some seeds, all faults end at one instant. The campaign must then end within a bounded time.
extension Simulation {
    /// Plans when the faults of a process end, in some seeds.
    func scheduleCalm(epoch: Int) {
        var random = SimulationRandom(
            seed: plan.seed ^ 0x6c69_7665_6c79_0001 &+ UInt64(epoch) << 32)
        guard random.chance(0.3) else { return }
        events.insert(.calm(epoch: epoch), at: clock + random.skewedDelay(20 * second))
    }

    /// Ends the faults of servers, network and disk, and the operator's actions. A connection that
    /// already has a fault keeps it.
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

    /// Nanoseconds within which a process must end after its faults have ended.
    ///
    /// It waits up to 30 s for requests in flight, and 30 s more for a server that stalled. It
    /// leaves an address alone for up to 75 s, and a row for up to 60 s. APNs accepts no new
    /// provider token for 20 minutes. Then all rows are sent at the rate in force, in the worst
    /// case on a single slow connection: if a server reads a kilobyte per second, a payload takes
    /// as many milliseconds as it has bytes.
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
        // This many rows are sent together, and then wait for the gateway's silence.
        var silence: UInt64 = 0
        if let window = plan.gateway?.window {
            silence = plan.silence / UInt64(min(window, plan.placesMost))
        }
        return waiting + rising + rows * (perRow + reading + silence + second / 2) + windowTime
    }

    /// Time for rows whose payloads are larger than the windows, and are sent one window at a time.
    var windowTime: UInt64 {
        let faults = process.faults
        let (window, payload) = (Int(faults.initialWindow), plan.payload.count)
        guard window < payload, faults.windowDelay > 0 else { return 0 }
        let windows = UInt64(payload / max(1, window) + 1)
        let together = UInt64(min(faults.maxStreams ?? 10, 10))
        let rows = UInt64(plan.list.tokens.count)
        return (rows / max(1, together) + 1) * windows * 8 * (faults.windowDelay + faults.latency)
    }

    /// The limit is multiplied by `steadyFactor` while rows are settled at intervals of at most
    /// `steadyLimit`. How fast a body passes through windows of a few bytes depends on chance.
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

    /// Maximum time in which a process without rows writes its verdicts and closes its connections.
    /// Connections that it can't open must not delay it.
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
        // A process that is frozen does nothing. Its time begins when it continues.
        let isOverdue = clock - max(since, process.takesFrom) > Self.endLimit
        if isOverdue {
            fail("no row is left since \(since / second) s, and no end: \(leftOver)")
        }
    }
}

extension Simulation {
    /// Whether the process has sent a request in parts.
    private var sendsInParts: Bool {
        ownLinks.contains { link in
            taps[link.id].requests.contains { taps[link.id].isInParts($0) }
        }
    }

    /// A process that must stop waits for requests in flight, but no longer than the request
    /// timeout. After the second stop signal, it waits for nothing.
    private func checkStopped() {
        guard !process.isOver, clock >= process.takesFrom else { return }
        func isLate(_ time: UInt64?, by limit: UInt64) -> Bool {
            guard let time else { return false }
            return clock - min(clock, max(time, process.takesFrom)) > limit
        }
        if isLate(process.stoppedAtOnceAt, by: Self.endLimit / 2) {
            fail("no end although it is to stop at once: \(leftOver)")
        }
        // The timeout of a request that is sent in parts begins again with its last part.
        let timeout = plan.requestTimeout
        if isLate(process.stoppedAt, by: timeout + Self.endLimit),
            !sendsInParts || isLate(process.stoppedAt, by: 2 * timeout + Self.endLimit)
        {
            fail("no end within \(plan.requestTimeout / second) s of the word to stop: \(leftOver)")
        }
    }
}

extension SimulatedServer {
    /// Ends the faults of a server. The announced windows and limits stay, and tokens that are
    /// refused stay refused.
    func calmDown() {
        var calm = FaultPlan.calm
        calm.limits = faults.limits
        calm.initialWindow = faults.initialWindow
        calm.windowDelay = faults.windowDelay
        calm.refusesTokens = faults.refusesTokens
        faults = calm
    }
}
