import BroadsideRows
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
    func `A row whose token is no text is judged by its other keys`(token: String) throws {
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
}
