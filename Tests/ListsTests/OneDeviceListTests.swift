import BroadsideRows
import BroadsideSupport
import Testing

@testable import BroadsideLists

/// The list of a single token, for a test on one device.
@Suite struct OneDeviceListTests {
    private let token = String(repeating: "ab", count: 32)

    @Test func `The columns of a single token are empty, so that defaults apply`() throws {
        let list = try TokenList(
            .single(token), format: nil, tokenColumn: "device.token",
            wanted: [("name", "--payload p.json"), ("a \"b\", c", "--collapse-id")],
            optional: ["name", "a \"b\", c"])
        #expect(list.layout.names == ["device.token", "name", "a \"b\", c"])
        var rows = try RowCursor(list)
        var fields: [(isMissing: Bool, count: Int)] = []
        while try rows.next() != nil {
            #expect(rows.disposition.isSent)
            for index in 0..<3 {
                let field = rows.reader.field(index)
                fields.append((field.form == .missing, field.count))
            }
        }
        #expect(fields.map(\.count) == [64, 0, 0] && !fields.contains { $0.isMissing })
    }

    @Test func `A single token without other columns is a list of lines`() throws {
        let list = try TokenList(
            .single(token), format: nil, tokenColumn: nil, wanted: [("token", "--payload p.json")])
        #expect(list.format == .lines && list.byteCount == 65)
    }

    @Test func `A column without a default is refused for a single token, with its location`() {
        let failure = #expect(throws: BroadsideError.self) {
            _ = try TokenList(
                .single(token), format: nil, tokenColumn: nil,
                wanted: [("name", "--payload p.json"), ("lang", "--payload-by lang=by")],
                optional: ["name"])
        }
        #expect(failure?.exitCode == 2)
        #expect(
            failure?.message.hasPrefix("--payload-by lang=by: --to has no column 'lang', and")
                == true)
    }
}
