import BroadsideSupport
import Testing

@testable import BroadsidePolicy

/// The rule by which a run chooses how many connections it keeps up, look by look.
@Suite(.timeLimit(.minutes(60))) struct ConnectionGrowthTests {
    typealias Decision = ConnectionGrowth.Decision

    /// A run that a look is taken at each second.
    struct Run {
        var growth: ConnectionGrowth
        var sample = ConnectionGrowth.Sample(nanoseconds: 1_000_000_000)
        /// What each second brings, with so many connections.
        var perSecond: (Int) -> UInt64 = { 100 * UInt64($0) }
        /// Shares of the connections' time.
        var held = 1.0
        var busy = 0.0
        /// Connections that open a second.
        var opening = 10
        var decisions: [Decision] = []

        init(_ connections: Int = 4, reactors: Int = 1, most: Int = 64, reactorsMost: Int = 1) {
            growth = ConnectionGrowth(
                connections: connections, reactors: reactors, connectionsMost: most,
                reactorsMost: reactorsMost)
            sample.openConnections = connections
            sample.latencyNanoseconds = 50_000_000
        }

        /// Lets seconds pass, and a look be taken in each.
        mutating func pass(_ seconds: Int, until isOver: (Run) -> Bool = { _ in false }) {
            for _ in 0..<seconds where !isOver(self) {
                sample.nanoseconds += 1_000_000_000
                sample.responses += perSecond(sample.openConnections)
                let time = UInt64(sample.openConnections) * 1_000_000
                sample.totalNanoseconds += time
                sample.heldNanoseconds += UInt64(Double(time) * held)
                sample.busyNanoseconds += UInt64(Double(time) * busy)
                decisions.append(growth.observe(sample))
                sample.openConnections = min(growth.connections, sample.openConnections + opening)
            }
        }

        /// The numbers of connections that it grew to.
        var steps: [Int] {
            decisions.compactMap {
                if case .grow(let connections, _) = $0 { connections } else { nil }
            }
        }

        var isSettled: Bool { growth.isSettled }
    }

    @Test func `Connections double while all are full and each step pays`() {
        var run = Run()
        run.pass(60)
        #expect(run.steps == [8, 16, 32, 64])
        #expect(run.decisions.last == .settled(.most))
        // A step is measured for two seconds at least, once all its connections were open and full.
        let times = run.decisions.indices.filter {
            if case .grow = run.decisions[$0] { true } else { false }
        }
        #expect(zip(times, times.dropFirst()).allSatisfy { $1 - $0 >= 4 })
        #expect(times[3] - times[2] >= 5)
    }

    @Test func `A step that brings too little is the last one after a second measurement`() {
        var run = Run()
        run.perSecond = { 100 * UInt64(min($0, 8)) }
        run.pass(60) { $0.isSettled }
        #expect(run.steps == [8, 16])
        #expect(run.decisions.last == .settled(.noGain(from: 8, percent: 0)))
        #expect(run.growth.connections == 16)
        // It stays so, whatever happens later.
        run.perSecond = { 1000 * UInt64($0) }
        run.pass(20)
        #expect(run.steps == [8, 16] && run.isSettled)
    }

    @Test(arguments: [(1249, false), (1250, true)])
    func `A doubling of connections has to bring a quarter more`(carried: UInt64, pays: Bool) {
        var run = Run()
        run.perSecond = { $0 == 4 ? 1000 : carried }
        run.pass(30) { $0.isSettled }
        #expect((run.steps.count > 1) == pays)
    }

    @Test func `One poor measurement does not end the growth`() {
        var run = Run()
        run.pass(60) { $0.steps == [8] }
        run.perSecond = { _ in 400 }
        run.pass(60) { $0.decisions.suffix(4).allSatisfy { $0 == .stay(.measuring) } }
        run.perSecond = { 100 * UInt64($0) }
        run.pass(60)
        #expect(run.steps == [8, 16, 32, 64])
    }

    @Test func `Nothing grows while something else limits the run`() {
        var run = Run()
        run.held = 0.75
        run.pass(60)
        #expect(run.steps == [] && run.decisions.last == .stay(.notHeld) && !run.isSettled)
        // What was not limited before may be later.
        run.held = 0.85
        run.pass(5)
        #expect(run.steps == [8])
    }

    @Test func `A kept rate needs no more connections, and a missed one does`() {
        var run = Run()
        run.sample.rateLimit = 420
        run.pass(60)
        #expect(run.steps == [] && run.decisions.last == .stay(.rateKept(perSecond: 420)))
        // The operator allows more.
        run.sample.rateLimit = 5000
        run.pass(60)
        #expect(run.steps == [8, 16, 32, 64])
        #expect(run.decisions.last == .stay(.rateKept(perSecond: 5000)))

        // What was measured before the operator changed the rate does not count against a step.
        var changed = Run()
        changed.pass(60) { $0.steps == [8] }
        changed.perSecond = { _ in 400 }
        changed.sample.rateLimit = 460
        changed.pass(60)
        #expect(changed.steps == [8, 16])
        #expect(changed.decisions.last == .settled(.noGain(from: 8, percent: 0)))

        var slow = Run(1)
        slow.sample.rateLimit = 500
        slow.sample.rowsLeft = 1_000_000
        slow.perSecond = { 100 * UInt64($0) }
        slow.pass(60)
        #expect(slow.steps == [2, 4, 8])
    }

    @Test func `Nothing is measured before the first acceptance and the canary's end`() {
        var run = Run()
        run.sample.growthSuspended = true
        run.pass(60)
        #expect(run.steps == [] && run.decisions.allSatisfy { $0 == .stay(.early) })
        run.sample.growthSuspended = false
        run.pass(2)
        #expect(run.steps == [])
        run.pass(10)
        #expect(run.steps.first == 8)
    }

    @Test func `Trouble postpones growth, and repeated trouble ends it`() {
        var run = Run()
        run.sample.pausedAddresses = 1
        run.pass(30)
        #expect(run.steps == [] && run.decisions.last == .stay(.trouble) && !run.isSettled)
        run.sample.pausedAddresses = 0
        run.sample.failures += 1
        run.pass(1)
        #expect(run.decisions.last == .stay(.trouble))
        run.pass(10) { !$0.steps.isEmpty }
        #expect(run.steps == [8])
        // One in a thousand answers may say so; no more.
        run.sample.pushbacks += 1
        run.perSecond = { 1000 * UInt64($0) }
        run.pass(1)
        #expect(run.decisions.last != .stay(.trouble))
        for _ in 0..<2 {
            run.sample.pushbacks += 100
            run.pass(1)
        }
        #expect(run.decisions.last == .settled(.repeatedTrouble))
    }

    @Test func `A list near its end gets no more connections`() {
        // Four more connections cost as much as 4,000 notifications.
        var few = Run()
        few.sample.rowsLeft = 3_999
        few.perSecond = { _ in 10 }
        few.pass(60)
        #expect(few.steps == [] && few.decisions.last == .settled(.fewRows))
        var enough = Run()
        enough.sample.rowsLeft = 4_000
        enough.perSecond = { _ in 10 }
        enough.pass(8)
        #expect(enough.steps == [8])
        // Less than five seconds are left.
        var quick = Run()
        quick.sample.rowsLeft = 400_000
        quick.perSecond = { _ in 100_000 }
        quick.pass(60)
        #expect(quick.steps == [] && quick.decisions.last == .settled(.fewRows))
    }

    @Test func `A step is measured over two latencies once all connections are open`() {
        var run = Run()
        run.sample.latencyNanoseconds = 4_000_000_000
        run.opening = 0
        run.pass(16)
        #expect(run.steps == [])
        run.pass(2) { !$0.steps.isEmpty }
        #expect(run.steps == [8])
        run.sample.latencyNanoseconds = 50_000_000
        run.sample.openConnections = 7
        run.pass(30)
        #expect(!run.isSettled && run.steps == [8])
        run.pass(5)
        #expect(run.decisions.last == .settled(.notAllOpen))
    }

    @Test func `A busy thread gets another reactor`() {
        var run = Run(4, reactorsMost: 3)
        run.sample.busiestThread = 0.9
        run.held = 0.2
        run.busy = 0.8
        run.pass(60) { $0.decisions.last == .stay(.threadsBusy) }
        #expect(run.decisions.contains(.grow(connections: 8, reactors: 2)))
        #expect(run.decisions.contains(.grow(connections: 12, reactors: 3)))
        #expect(run.steps == [8, 12])
        // Rows that do not come keep no thread busy for long.
        var idle = Run(4, reactorsMost: 3)
        idle.sample.busiestThread = 0.9
        idle.held = 0.2
        idle.busy = 0.5
        idle.pass(30)
        #expect(idle.steps == [])
    }

    @Test func `A busy thread alone is no reason for more connections`() {
        var run = Run()
        run.sample.busiestThread = 0.9
        run.pass(30)
        #expect(run.steps == [] && run.decisions.last == .stay(.threadsBusy))
    }

    /// Whether a run of four connections grows within ten seconds.
    private func grows(_ change: (inout Run) -> Void) -> Bool {
        var run = Run()
        change(&run)
        run.pass(10) { !$0.steps.isEmpty }
        return !run.steps.isEmpty
    }

    @Test func `A value exactly at a bound of growth counts`() {
        // Four fifths of the connections' time.
        #expect(grows { $0.held = 0.8 } && !grows { $0.held = 0.79 })
        // Nine tenths of the operator's rate.
        for (responses, isKept) in [(900, true), (899, false)] as [(UInt64, Bool)] {
            let grew = grows { run in
                run.sample.rateLimit = 1000
                run.perSecond = { _ in responses }
            }
            #expect(grew != isKept)
        }
        // 85 percent of a thread's time, and no other reactor.
        #expect(
            !grows { $0.sample.busiestThread = 0.85 } && grows { $0.sample.busiestThread = 0.84 })
        // A busy thread's own work counts besides.
        for (busy, isEnough) in [(0.5, true), (0.49, false)] {
            var run = Run(4, reactorsMost: 3)
            run.sample.busiestThread = 0.9
            (run.held, run.busy) = (0.3, busy)
            run.pass(10) { !$0.steps.isEmpty }
            #expect(run.steps.isEmpty != isEnough)
        }
        // Five seconds of the list.
        for (rows, isEnough) in [(5_000, true), (4_999, false)] as [(UInt64, Bool)] {
            let grew = grows { run in
                run.sample.rowsLeft = rows
                run.perSecond = { _ in 1000 }
            }
            #expect(grew == isEnough)
        }
        // One answer in a thousand that asks for patience.
        for (responses, isTrouble) in [(1_000, false), (999, true)] as [(UInt64, Bool)] {
            var run = Run()
            run.perSecond = { _ in responses }
            run.pass(1)
            run.sample.pushbacks += 1
            run.pass(1)
            #expect((run.decisions.last == .stay(.trouble)) == isTrouble)
        }
    }

    @Test(arguments: 0..<300)
    func `The limits of growth hold in random runs`(seed: Int) {
        var random = SplitMix64(seed: UInt64(seed))
        func draw(_ limit: UInt64) -> UInt64 { random.next() % limit }
        let first = Int(1 + draw(4))
        var growth = ConnectionGrowth(
            connections: first, reactors: 1, connectionsMost: Int(draw(100)), reactorsMost: 4)
        var sample = ConnectionGrowth.Sample(nanoseconds: draw(1 << 40))
        var connections = first
        for _ in 0..<200 {
            sample.nanoseconds += draw(3_000_000_000)
            sample.responses += draw(100_000)
            sample.openConnections = Int(draw(UInt64(connections) + 2))
            sample.totalNanoseconds += 1000
            sample.heldNanoseconds += 700 + draw(301)
            sample.busyNanoseconds += draw(300)
            sample.busiestThread = Double(draw(100)) / 100
            sample.rateLimit = draw(8) == 0 ? Double(draw(100_000)) : nil
            sample.rowsLeft = draw(4) == 0 ? nil : draw(1 << 30)
            sample.latencyNanoseconds = draw(5) == 0 ? nil : draw(2_000_000_000)
            sample.failures += draw(40) == 0 ? 1 : 0
            sample.pushbacks += draw(40) == 0 ? 5 : 0
            sample.growthSuspended = draw(30) == 0
            let wasSettled = growth.isSettled
            switch growth.observe(sample) {
            case .grow(let next, let reactors):
                #expect(!wasSettled && !sample.growthSuspended && sample.pausedAddresses == 0)
                #expect(sample.openConnections >= 0 && next > connections && next <= 64)
                #expect(next <= 2 * connections && reactors <= 4)
                connections = next
            case .settled:
                #expect(growth.isSettled)
            case .stay:
                #expect(!wasSettled)
            }
            #expect(growth.connections == connections)
        }
    }
}
