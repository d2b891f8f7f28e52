import Testing

@testable import BroadsideLedgerFormat
@testable import BroadsideRows

/// Which rows of a list are a campaign's, and what makes it the same campaign.
@Suite struct CampaignRowsTests {
    private let part = ListExtent(
        firstRow: 10, byteOffset: 650, firstLine: 12, endRow: 40, endByteOffset: 2_600)

    @Test(arguments: [1, 2, 3, 7] as [UInt64], [nil, 0, 13, 25, 100] as [UInt64?])
    func `Rows of a campaign are counted as they are selected one by one`(
        divisor: UInt64, limit: UInt64?
    ) {
        for remainder in 0..<divisor {
            let selection = RowSelection(divisor: divisor, remainder: remainder)
            let rows = CampaignRows(part: part, selection: selection, limit: limit)
            #expect(rows.end == limit ?? .max)
            for end in 0..<60 as Range<UInt64> {
                func naive(from first: UInt64) -> Int {
                    (first..<max(first, end)).count { rows.contains($0, .remaining) }
                }
                #expect(rows.count(upTo: end) == UInt64(naive(from: 10)))
                #expect(rows.openCount(from: 17, to: end) == UInt64(naive(from: 17)))
            }
            for row in 0..<60 as Range<UInt64> {
                let isIn = row % divisor == remainder
                #expect(selection.contains(row) == isIn)
                #expect(rows.contains(row, .remaining) == (isIn && row < limit ?? .max))
                // What an earlier run may have sent belongs to it behind the limit as well.
                #expect(rows.contains(row, .inDoubt) == isIn)
                #expect(rows.contains(row, .accepted) == isIn)
            }
        }
    }

    @Test func `A gap lies between chunks, the part's bounds and the limit`() {
        func gap(
            _ previous: ChunkReservation?, _ next: ChunkReservation?, limit: UInt64? = nil
        ) -> [UInt64?]? {
            let rows = CampaignRows(part: part, limit: limit)
            return rows.open(after: previous, before: next).map {
                [$0.firstRow, $0.byteOffset, $0.firstLine, $0.endRow, $0.endByteOffset]
            }
        }
        let (first, second) = (testChunk(10, 5), testChunk(20, 5))
        #expect(gap(nil, nil) == [10, 650, 12, 40, 2_600])
        #expect(gap(nil, first) == nil)
        #expect(gap(nil, second) == [10, 650, 12, 20, 1_300])
        #expect(gap(first, second) == [15, 975, 16, 20, 1_300])
        #expect(gap(second, nil) == [25, 1_625, 26, 40, 2_600])
        #expect(gap(first, testChunk(15, 2)) == nil)
        #expect(gap(first, second, limit: 15) == nil && gap(first, second, limit: 3) == nil)
        #expect(gap(first, second, limit: 16)?[3] == 16)
        #expect(gap(first, second, limit: 20)?[3] == 20 && gap(first, second, limit: 99)?[3] == 20)
        #expect(gap(second, nil, limit: 30)?[3] == 30)
        #expect(gap(second, nil, limit: 50)?[3] == 40)
    }

    @Test func `Reading a gap's rows leaves the rest of the gap`() {
        #expect(part.rest(behind: testChunk(10, 30)) == nil)
        #expect(part.rest(behind: testChunk(10, 31)) == nil)
        let rest = part.rest(behind: testChunk(10, 29))
        #expect(rest?.firstRow == 39 && rest?.byteOffset == 39 * 65 && rest?.firstLine == 40)
        #expect(rest?.endRow == 40 && rest?.endByteOffset == 2_600)
        #expect(ListExtent.wholeList.rest(behind: testChunk(0, 7))?.firstRow == 7)
    }

    private static let changes:
        [(change: @Sendable (inout CampaignIdentity) -> Void, words: String)] =
            [
                ({ $0.listByteCount = 7 }, "the list's size in bytes was 1000, now it is 7"),
                ({ $0.wireProtocol = "binary" }, "the protocol was http2, now it is binary"),
                ({ $0.payloadSHA256 = "cd" }, "the payload differs"),
                ({ $0.suppressSHA256 = "cd" }, "the suppression list differs"),
                ({ $0.listFormat = "tsv" }, "the list's format was csv, now it is tsv"),
                ({ $0.columns = ["t"] }, "the columns in use was token,name, now it is t"),
                ({ $0.topic = nil }, "the topic was com.example.shop, now it is not set"),
                ({ $0.pushType = "voip" }, "the push type was alert, now it is voip"),
                ({ $0.priority = 5 }, "the priority was 10, now it is 5"),
                ({ $0.expiration = "0" }, "the expiration was +2h, now it is 0"),
                ({ $0.collapseID = "c" }, "the collapse id was not set, now it is c"),
                (
                    { $0.environment = "development" },
                    "the environment was production, now it is dev"
                ),
                (
                    { $0.shard = .init(index: 2, count: 3, isByRow: true) },
                    "the shard was not set, now it is 2/3 by rows"
                ),
                ({ $0.shard = .init(index: 1, count: 3, isByRow: false) }, "now it is 1/3"),
                (
                    { $0.duplicates = "skip" },
                    "the rule for duplicates was not set, now it is skip"
                ),
            ]

    @Test(arguments: changes.indices)
    func `A campaign that differs in any field is another one, with the field named`(index: Int) {
        let (change, words) = Self.changes[index]
        var other = testIdentity
        #expect(testIdentity.firstDifference(from: other) == nil)
        change(&other)
        #expect(testIdentity.firstDifference(from: other)?.contains(words) == true)
        #expect(other.firstDifference(from: testIdentity) != nil)
    }

    @Test func `An unknown size is no difference, and a shard by bytes selects all rows`() {
        var unknown = testIdentity
        unknown.listByteCount = nil
        #expect(testIdentity.firstDifference(from: unknown) == nil)
        #expect(unknown.firstDifference(from: testIdentity) == nil)
        for (index, count, isByRow, expected) in [
            (1, 3, true, RowSelection(divisor: 3, remainder: 0)),
            (3, 3, true, RowSelection(divisor: 3, remainder: 2)), (1, 1, true, .all),
            (2, 3, false, .all), (0, 3, true, .all), (4, 3, true, .all),
        ] as [(UInt32, UInt32, Bool, RowSelection)] {
            var identity = testIdentity
            identity.shard = .init(index: index, count: count, isByRow: isByRow)
            #expect(identity.selection == expected)
        }
        #expect(testIdentity.selection == .all && !testIdentity.acceptsBySilence)
        unknown.wireProtocol = "binary"
        #expect(unknown.acceptsBySilence)
        unknown.wireProtocol = "feedback"
        #expect(!unknown.acceptsBySilence)
    }
}
