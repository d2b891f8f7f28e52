import BroadsideLists
import BroadsideObservability
import Testing

@testable import BroadsideCampaigns

/// Devices and their first receipts, as the sorted records of ledger and receipts tell them.
@Suite struct ReceiptTallyTests {
    private static let hour: UInt64 = 3_600_000
    private static let settled: UInt64 = 1_800_000_000_000

    private func tally(columns: Int = 0) -> ReceiptTally {
        ReceiptTally(
            ReceiptFindings(
                arms: ["a", "b"].map { .init(name: $0, isHoldout: false, columns: columns) },
                columns: (0..<columns).map { .init(name: "\($0)", values: []) }, namesTokens: true))
    }

    /// A row of a device.
    private func row(_ key: UInt64, arm: UInt64 = 1) -> RecordSorter.Record {
        .init(first: key, second: 0, third: Self.settled, fourth: arm)
    }

    /// A receipt of a device, so many milliseconds after its row was settled.
    private func receipt(_ key: UInt64, after time: Int64, values: UInt64 = 0)
        -> RecordSorter.Record
    {
        .init(
            first: key, second: 1, third: UInt64(Int64(Self.settled) + time), fourth: values)
    }

    private func findings(_ records: [RecordSorter.Record]) -> ReceiptFindings {
        var tally = tally()
        tally.findings.receipts = UInt64(records.count { $0.second == 1 })
        for record in records { tally.take(record) }
        return tally.finish()
    }

    @Test func `A row that was not accepted is a sent device without an opening`() {
        let refused = { RecordSorter.Record.row($0, 1, settled: nil) }
        let found = findings([
            row(1), refused(1), receipt(1, after: 1), refused(2), refused(2), receipt(2, after: 1),
            row(3),
        ])
        #expect(found.arms[0].sent == 3 && found.arms[0].devices == 2)
        #expect(found.arms[0].opened == 1 && found.foreign == 1)
    }

    @Test func `Dead tokens make no difference to a holdout that has them, too`() throws {
        var findings = ReceiptFindings(
            arms: [
                .init(name: "a", isHoldout: false, columns: 0),
                .init(name: "holdout", isHoldout: true, columns: 0),
            ], columns: [], namesTokens: true)
        // A tenth of the tokens is dead, and half of the living devices open the app anyway.
        (findings.arms[0].sent, findings.arms[0].devices, findings.arms[0].opened) = (
            10_000, 9_000, 4_500
        )
        (findings.arms[1].sent, findings.arms[1].devices, findings.arms[1].opened) = (
            10_000, 10_000, 4_500
        )
        for arm in findings.arms.indices { findings.arms[arm].hours[0] = findings.arms[arm].opened }
        #expect(findings.json.contains(#""difference":0,"low":-0.01"#), "\(findings.json)")
        #expect(findings.json.contains(#""devices":9000,"opened":4500,"sent":10000,"share":0.5"#))
    }

    @Test func `A receipt of the very millisecond counts, and one from before does not`() {
        let found = findings([row(1), receipt(1, after: 0), row(2), receipt(2, after: -1)])
        #expect(found.arms[0].devices == 2 && found.arms[0].opened == 1 && found.early == 1)
    }

    @Test func `Each device opens once, whatever the device before it did`() {
        let found = findings([
            row(1), receipt(1, after: 5), receipt(1, after: 6), row(2, arm: 2),
            receipt(2, after: 7),
        ])
        #expect(found.arms.map(\.opened) == [1, 1] && found.repeated == 1)
    }

    @Test
    func `A device with several rows is one device, in the arm of the first that was settled`() {
        let found = findings([row(1), row(1, arm: 2), row(1), receipt(1, after: 3)])
        #expect(found.arms.map(\.devices) == [1, 0] && found.arms.map(\.opened) == [1, 0])
    }

    @Test func `A receipt without a row is foreign, also if another device has rows`() {
        let found = findings([row(1), receipt(2, after: 1), row(3), receipt(3, after: 1)])
        #expect(found.foreign == 1 && found.arms[0].opened == 1)
    }

    @Test func `Hours are counted one by one up to the last, and all later ones together`() {
        let hours: [UInt64] = [0, 1, 46, 47, 48, 49, 1_000]
        let found = findings(
            hours.enumerated().flatMap { index, hour -> [RecordSorter.Record] in
                let key = UInt64(index)
                // The last millisecond of the hour.
                return [row(key), receipt(key, after: Int64((hour + 1) * Self.hour - 1))]
            })
        let counts = found.arms[0].hours
        #expect(counts.count == 49 && counts[0] == 1 && counts[1] == 1 && counts[2] == 0)
        #expect(counts[46] == 1 && counts[47] == 1 && counts[48] == 3)
    }

    @Test func `Values up to the limit are counted one by one, and further ones together`() {
        var tally = tally(columns: 2)
        let limit = ReceiptsJoin.valueLimit
        let numbers = (0..<limit + 5).map { tally.number(of: Array("v\($0)".utf8), 1) }
        #expect(numbers == Array(0..<limit) + Array(repeating: limit, count: 5))
        #expect(tally.number(of: Array("v3".utf8), 1) == 3)
        #expect(tally.number(of: Array("v3".utf8), 0) == 0, "each column has its own numbers")
        #expect(tally.findings.columns[1].values.count == limit + 1)
        #expect(tally.findings.columns[1].values.last == ReceiptsJoin.otherValues)
        tally.take(row(1))
        tally.take(receipt(1, after: 1, values: UInt64(limit) << 8))
        #expect(tally.findings.arms[0].values[1][limit] == 1)
        #expect(tally.findings.arms[0].values[0] == [1])
    }
}
