import Broadside
import BroadsideEngine

extension Simulation {
    /// After each step, everything that a reactor stores is within its limit, and each of its rows
    /// is in exactly one condition.
    func checkMemory(_ reactor: SimulatedReactor) {
        var told = 0
        var slots = 0
        reactor.machine.forEachOccupancyGauge { measure in
            told += 1
            if measure.kind == .slots { slots = measure.count }
            guard measure.count > Self.ownLimit(measure) else { return }
            fail("reactor \(reactor.index) has \(measure.count) \(measure.kind.rawValue)")
        }
        if let broken = reactor.machine.brokenInvariant {
            fail("reactor \(reactor.index): \(broken)")
        }
        // Every measure must be reported. Otherwise, it would not be checked.
        if told != Self.reactorMeasures + Self.slotMeasures * slots {
            fail("reactor \(reactor.index) tells \(told) measures of \(slots) slots")
        }
        let rows = reactor.machine.rowsInHand
        let most = plan.placesMost
        if rows.all > most { fail("\(rows.all) rows in hand where \(most) may be") }
        if rows.all != rows.inFlight + rows.requeued + rows.waiting {
            fail("of the rows in hand some are in no condition, or in two: \(rows)")
        }
        let open = reactor.machine.openRequests
        if open != rows.inFlight { fail("\(rows.inFlight) rows in flight, \(open) open requests") }
    }

    /// Numbers of measures that a reactor reports for itself and for each connection slot.
    private static let reactorMeasures = 15
    private static let slotMeasures = 5

    /// Limits that the documentation promises. They apply whatever limits the engine has.
    private static func ownLimit(_ measure: OccupancyGauge) -> Int {
        switch measure.kind {
        case .outgoing: min(measure.limit, 70_000)
        case .events: min(measure.limit, 128)
        // The limit of known addresses, and the addresses that connections use.
        case .addresses: min(measure.limit, 256 + 64)
        case .templates, .personalTemplates: min(measure.limit, 16)
        default: measure.limit
        }
    }

    /// While too many bytes wait for the disk, nothing new is sent.
    func checkBacklog(_ reactor: SimulatedReactor, wasHigh: Bool) {
        guard wasHigh, reactor.machine.snapshot().requests > reactor.countedRequests else { return }
        fail("reactor \(reactor.index) sends although its verdicts wait for the disk")
    }
}
