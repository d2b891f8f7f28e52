import Testing

@testable import BroadsideLedgerFormat
@testable import BroadsideRows

/// Rows by state and reason: each state has a number of its own, and sums forget none.
@Suite struct RowCountsTests {
    @Test func `Each state that settles a row has a count of its own`() {
        var all = RowCounts()
        for state in RowState.settledStates {
            var one = RowCounts()
            one.count(state, reason: 7)
            #expect(one[state] == 1 && one.settled == 1)
            one.count(state, reasonText: Array("Odd".utf8).span.bytes)
            #expect(one[state] == 2 && one.settled == 2)
            #expect(RowState.allCases.allSatisfy { one[$0] == ($0 == state ? 2 : 0) })
            #expect(one.reasons.codes == [7: 1] && one.reasons.texts == ["Odd": 1])
            all += one
        }
        #expect(all.settled == 12 && all.sent == 8)
        #expect(all.reasons.codes == [7: 6] && all.reasons.texts == ["Odd": 6])
        #expect(RowState.settledStates == RowState.allCases.filter(\.isSettled))
    }

    @Test func `Open rows are counted, but neither sent nor settled`() {
        var counts = RowCounts()
        (counts[.remaining], counts[.inDoubt]) = (3, 4)
        #expect(counts.settled == 0 && counts.sent == 0)
        let both = counts + counts
        #expect(both[.remaining] == 6 && both[.inDoubt] == 8 && both != counts)
    }

    @Test func `Growth is never negative and has no reasons`() {
        var (early, late) = (RowCounts(), RowCounts())
        early[.failed] = 5
        late[.failed] = 2
        late.count(.rejected, reason: 7)
        let grown = late.since(early)
        #expect(grown[.failed] == 0 && grown[.rejected] == 1 && grown.reasons == ReasonCounts())
    }
}
