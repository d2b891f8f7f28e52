import Testing

@testable import BroadsideAPNs
@testable import BroadsideLedgerFormat

/// Every row that was not accepted is counted under some reason.
@Suite struct ReasonCountsTests {
    @Test func `Rows without a reason are counted, and long reasons as the ledger keeps them`() {
        var counts = ReasonCounts()
        counts.add(code: 0)
        let empty: [UInt8] = []
        unsafe counts.add(text: empty.span.bytes)
        let long = [UInt8](repeating: 0x78, count: 90)
        unsafe counts.add(text: long.span.bytes)
        let shorter = Array(long[..<70])
        unsafe counts.add(text: shorter.span.bytes)
        for number in 0..<400 {
            let text = Array("Reason\(number)".utf8)
            unsafe counts.add(text: text.span.bytes)
        }
        var both = counts
        both.add(counts)
        let named = both.named { "code \($0)" }
        let sum = named.values.reduce(0) { $0 + Int($1) }
        #expect(sum == 2 * 404)
        #expect(named[ReasonCounts.noReason] == 4)
        #expect(named[String(repeating: "x", count: 64)] == 4)
        #expect(counts.texts.count == ReasonCounts.textsLimit + 1)
    }
}
