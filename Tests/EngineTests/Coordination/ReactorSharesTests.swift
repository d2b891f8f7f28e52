import Testing

@testable import BroadsideEngine

/// How the connections of a run are divided among its reactors.
@Suite struct ReactorSharesTests {
    private func shares(_ target: ConnectionTarget, _ reactors: Int) -> [Int] {
        (0..<reactors).map { target.share(of: $0) }
    }

    @Test func `The first reactors begin with equal numbers of connections`() {
        let target = ConnectionTarget(connections: 5, reactors: 4, active: 2)
        #expect(target.first == [3, 2, 0, 0] && target.total == 5)
        #expect(shares(target, 4) == target.first)
    }

    @Test func `A run grows by the number asked for and never shrinks`() {
        let target = ConnectionTarget(connections: 4, reactors: 3, active: 1)
        target.grow(to: 5, reactors: 1)
        #expect(shares(target, 3) == [5, 0, 0])
        target.grow(to: 12, reactors: 3)
        #expect(target.total == 12 && shares(target, 3) == [5, 4, 3])
        target.grow(to: 6, reactors: 3)
        #expect(shares(target, 3) == [5, 4, 3])
        target.grow(to: 13, reactors: 3)
        #expect(shares(target, 3) == [5, 4, 4])
        #expect(target.first == [4, 0, 0])
    }
}
