internal import Synchronization

/// Number of connections that each reactor keeps open. The number only grows. Reactors do not
/// exchange connections, so growth never closes one.
package final class ConnectionTarget: Sendable {
    /// Number of connections that each reactor opens at the start, all at once. Connections opened
    /// later count against the run's limit of ten per second.
    let first: [Int]
    private let shares: Mutex<[Int]>
    private let changes = Atomic<UInt32>(0)

    /// - Parameters:
    ///   - connections: Initial total.
    ///   - reactors: Number of reactors in the run.
    ///   - active: Number of reactors that have connections from the start; at most `connections`.
    package init(connections: Int, reactors: Int, active: Int) {
        precondition(active >= 1 && active <= reactors && connections >= active)
        first = (0..<reactors).map { reactor in
            guard reactor < active else { return 0 }
            return connections / active + (reactor < connections % active ? 1 : 0)
        }
        assert(first.reduce(0, +) == connections, "the shares add up")
        shares = Mutex(first)
    }

    /// Number that changes whenever the target grows.
    var version: UInt32 { changes.load(ordering: .acquiring) }

    /// Number of connections that one reactor keeps open.
    package func share(of reactor: Int) -> Int { shares.withLock { $0[reactor] } }

    /// Number of connections that all reactors keep open.
    package var total: Int { shares.withLock { $0.reduce(0, +) } }

    /// Raises the run's total number of connections. Of the first `active` reactors, the one with
    /// the fewest connections gets the next one.
    package func grow(to connections: Int, reactors active: Int) {
        shares.withLock { shares in
            precondition(active >= 1 && active <= shares.count)
            for _ in shares.reduce(0, +)..<max(connections, shares.reduce(0, +)) {
                let least = shares[..<active].indices.min { shares[$0] < shares[$1] } ?? 0
                shares[least] += 1
            }
            assert(shares.reduce(0, +) >= connections, "the shares add up")
        }
        changes.add(1, ordering: .releasing)
    }
}
