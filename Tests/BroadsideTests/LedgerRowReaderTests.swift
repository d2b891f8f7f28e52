import FoundationEssentials
import Testing

@testable import Broadside

struct LedgerRowReaderTests {
    private static let line =
        #"{"line":3,"token":"0badcafe","state":"rejected","status":410,"reason":"Unregistered","#
        + #""apns_timestamp_ms":1700000000500,"attempts":2,"apns_id":"a-b","settled_at_ms":1800000000000}"#

    @Test
    func `A row that arrives in pieces is read once it is whole`() throws {
        var reader = LedgerRowReader()
        let bytes = Array((Self.line + "\n").utf8)
        var rows: [LedgerRow] = []
        for start in stride(from: 0, to: bytes.count, by: 7) {
            let found = reader.rows(in: Array(bytes[start...].prefix(7)))
            rows += try #require(found)
        }
        let row = try #require(rows.first)
        #expect(rows.count == 1 && row.line == 3 && row.token == "0badcafe")
        #expect(row.state == .rejected && row.status == 410 && row.attempts == 2)
        #expect(row.unregisteredAt?.timeIntervalSince1970 == 1_700_000_000.5)
        #expect(row.settledAt?.timeIntervalSince1970 == 1_800_000_000)
        #expect(row.reason == "Unregistered" && row.notificationID == "a-b")
    }

    @Test
    func `Values that are null or escaped are read as such`() throws {
        var reader = LedgerRowReader()
        let line =
            #"{"line":null,"token":"say \"a\\\" \u00fc","state":"remaining","status":null,"#
            + #""reason":"","apns_timestamp_ms":null,"attempts":0,"apns_id":null,"settled_at_ms":null}"#
        let rows = reader.rows(in: Array((line + "\n").utf8))
        let row = try #require(rows?.first)
        #expect(row.token == "say \"a\\\" ü")
        #expect(row.line == nil && row.status == nil && row.reason == nil && row.settledAt == nil)
    }

    @Test(arguments: [
        #"{"token":"0b"}"#, "line", "",
        line.replacing("rejected", with: "lost"), line.replacing("\"status\"", with: "\"statuz\""),
        line.replacing("410", with: "x"),
    ])
    func `A line in another form is no row`(line: String) {
        var reader = LedgerRowReader()
        let rows = reader.rows(in: Array((line + "\n").utf8))
        #expect(rows == nil)
    }
}
