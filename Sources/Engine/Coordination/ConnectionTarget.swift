internal import Synchronization

/// How many connections each reactor of a run keeps up. The number only grows: who has a connection
/// keeps it, so that growth never closes one.
package final class ConnectionTarget: Sendable {
    /// What each reactor begins with: opened together, while all others wait for the run's ten a
    /// second.
    let first: [Int]
    private let shares: Mutex<[Int]>
    private let changes = Atomic<UInt32>(0)

    /// - Parameters:
    ///   - connections: In all, to begin with.
    ///   - reactors: Those that the run has.
    ///   - active: How many of them have connections from the start, at most `connections`.
    package init(connections: Int, reactors: Int, active: Int) {
        precondition(active >= 1 && active <= reactors && connections >= active)
        first = (0..<reactors).map { reactor in
            guard reactor < active else { return 0 }
            return connections / active + (reactor < connections % active ? 1 : 0)
        }
        assert(first.reduce(0, +) == connections, "the shares add up")
        shares = Mutex(first)
    }

    /// Changes with every growth. Asked once a turn.
    var version: UInt32 { changes.load(ordering: .acquiring) }

    /// The connections of one reactor.
    package func share(of reactor: Int) -> Int { shares.withLock { $0[reactor] } }

    /// The connections of all.
    package var total: Int { shares.withLock { $0.reduce(0, +) } }

    /// Lets the run have so many connections, divided among its first reactors: each new one goes to
    /// the one with the fewest.
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
