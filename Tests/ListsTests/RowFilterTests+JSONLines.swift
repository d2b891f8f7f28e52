import BroadsideRows
import BroadsideSupport
import Testing

@testable import BroadsideLists

extension RowFilterTests {
    @Test func `A row without a token is judged, one that can't be read is not`() throws {
        let list = """
            {"x":"ios"}
            {"token":"FCM token","x":"android"}
            {"token":1
            ["token"]
            {"token":{},"x":"ios"}

            """
        #expect(try places(["x = ios"], list: list, format: .jsonl) == [0, 2, 3, 4])
        let csv = "token,x\n,ios\nnone,android\n\"ab\"c,android\nab,android,1\n"
        #expect(try places(["x = ios"], list: csv, format: .csv) == [0, 2, 3])
    }

    @Test(arguments: [#"{"id":"ab"}"#, #"["ab"]"#, #""\ud800""#])
    func `A row whose token is not a text is judged by its other keys`(token: String) throws {
        let list = """
            {"token":\(token),"x":"ios"}
             { "x":"android", "token":\(token) }
            {"token":\(token),"x":"android"}
            ["ab"]

            """
        #expect(try places(["x = ios"], list: list, format: .jsonl) == [0, 3])
        #expect(try places(["p.x != ios"], list: list, format: .jsonl) == [0, 1, 2, 3])
        let nested = list.replacing(#""x":"android""#, with: #""p":{"x":"android"}"#)
        #expect(try places(["p.x != android"], list: nested, format: .jsonl) == [0, 3])
    }

    @Test func `A key that no row has is an error, and in a part of a table a warning`() throws {
        let filter = try RowFilter(["lang != fr"])
        let layout = try RowLayout(format: .jsonl, names: ["token", "lang"], header: [])
        let text = #"{"token":"ab","user":{"lang":"fr"}}"# + "\n"
        let list = TokenList(lines: Array(text.utf8), layout: layout)
        #expect(throws: BroadsideError.self) {
            _ = try finish(filter, list, layout, mayRefuse: true)
        }
        let lines = try finish(filter, list, layout, mayRefuse: false, isBegun: false)
        #expect(lines.count == 1, "\(lines)")
        #expect(
            lines.first?.hasPrefix("broadside: warning: --where 'lang != fr': no row of ") == true,
            "\(lines)")
    }
}
