import Broadside
import BroadsideEngine
import BroadsideSupport

/// Checks of the time that connections spent in each state of `Bottleneck`. Each instant counts once
/// per connection, and it counts as waiting for a rate only if there is a rate. The time of a pause
/// does not count.
extension Simulation {
    /// The time that a reactor had counted before its iteration.
    struct TimeSpent {
        var limited: [UInt64]
        /// Number of connections that it maintained.
        var active: Int
    }

    func timeBeforeTurn(of reactor: SimulatedReactor) -> TimeSpent {
        TimeSpent(
            limited: reactor.machine.statistics.limited, active: reactor.machine.activeConnections)
    }

    func checkTime(_ reactor: SimulatedReactor, since before: TimeSpent, isStopping: Bool) {
        let elapsed = clock - reactor.accountedAt
        // An iteration at the instant at which the run continues may have come before.
        let wasPaused = process.hasPaused && reactor.accountedAt <= process.continuedAt
        // A shorter time is added to the next one.
        if elapsed >= millisecond { reactor.accountedAt = clock }
        let limited = reactor.machine.statistics.limited
        guard limited != before.limited else {
            // Rows are left, so the reactor is neither stopping nor at its end.
            let isRunning =
                !isStopping && reactor.machine.rowsInHand.all > 0
                && process.pausedSince == nil && !wasPaused
            if elapsed >= millisecond, isRunning {
                fail("\(elapsed) ns of reactor \(reactor.index) count for nothing")
            }
            return
        }
        if process.pausedSince != nil { fail("reactor \(reactor.index) counts time of a pause") }
        let spent = zip(limited, before.limited).map { $0 &- $1 }
        let total = spent.reduce(0, &+)
        let share = UInt64(max(1, before.active))
        let isWhole =
            before.active > 0
            ? total == elapsed * share
                // It maintains the wanted number of connections, which is not known here.
            : elapsed > 0 && total % elapsed == 0 && total / elapsed <= plan.connectionsMost
        if elapsed < millisecond || !isWhole {
            fail("\(spent) ns of \(before.active) connections are counted in \(elapsed) ns")
        }
        checkCauses(spent, reactor, active: before.active)
    }

    private func checkCauses(_ spent: [UInt64], _ reactor: SimulatedReactor, active: Int) {
        let hasRate =
            process.hasPaused || plan.ratePerConnection != nil
            || process.rates.contains { $0.rate != nil }
        if !hasRate, spent[Bottleneck.rate.rawValue] > 0 {
            fail("reactor \(reactor.index) waits for a rate, and there is none")
        }
        // Waiting for a slow look-up counts as connecting, not as waiting after trouble.
        let hasTrouble = !ownLinks.isEmpty || reactor.failedResolutions > 0
        if !hasTrouble, spent[Bottleneck.retry.rawValue] > 0 {
            fail("reactor \(reactor.index) waits after trouble, and there was none")
        }
        guard active > 0, spent[Bottleneck.connecting.rawValue] > 0 else { return }
        // A connection with a response is established. A connection without one may not be.
        let areProven = reactor.linkOfSlot.values.allSatisfy {
            links[$0].responses > 0 || !links[$0].isOpenAtClient
        }
        if areProven { fail("reactor \(reactor.index) is connecting, and all is connected") }
    }
}
