import BroadsideSupport
import Testing

@testable import BroadsideLists

@Suite struct RecordSorterTests {
    @Test(arguments: [0, 1, 63, 64, 65, 5_000])
    func `Sorted records come in order, spilled or not`(count: Int) throws {
        var sorter = RecordSorter(directory: temporaryDirectory(), limit: 64)
        var expected: [RecordSorter.Record] = []
        for _ in 0..<count {
            let record = RecordSorter.Record(
                first: .random(in: 0...40), second: .random(in: 0...3),
                third: .random(in: 0...(.max)), fourth: 1)
            expected.append(record)
            try sorter.append(record)
        }
        expected.sort()
        var merged: [RecordSorter.Record] = []
        try sorter.merge { (record) throws(BroadsideError) in merged.append(record) }
        #expect(merged == expected)
    }

    @Test func `A directory for spilled records that cannot be written is named`() throws {
        var sorter = RecordSorter(directory: "/nowhere", limit: 1)
        let record = RecordSorter.Record(first: 0, second: 0, third: 0, fourth: 0)
        try sorter.append(record)
        var message = ""
        do throws(BroadsideError) { try sorter.append(record) } catch { message = error.message }
        #expect(message.contains("/nowhere") && message.contains("TMPDIR"))
    }
}
