import Testing

@testable import APNs

@Suite struct JSON5ReaderTests {
    private func read(_ text: String) throws -> JSON5Value {
        try JSON5Reader.read(Array(text.utf8))
    }

    private func plain(_ value: JSON5Value) -> String {
        switch value.content {
        case .null: "null"
        case .boolean(let flag): "\(flag)"
        case .number(let number): "\(number)"
        case .string(let text): "'\(text)'"
        case .array(let elements): "[" + elements.map(plain).joined(separator: ",") + "]"
        case .object(let members):
            "{" + members.map { "\($0.name):\(plain($0.value))" }.joined(separator: ",") + "}"
        }
    }

    /// The features that json5.org lists, one by one.
    @Test(arguments: [
        (
            "{ a: 1, $b_2: 2, 'c d': 3, \"e\": 4, \u{fc}x: 5, }",
            "{a:1.0,$b_2:2.0,c d:3.0,e:4.0,\u{fc}x:5.0}"
        ),
        ("[1, 2,]", "[1.0,2.0]"), ("[]", "[]"), ("{}", "{}"),
        ("'it\\'s \"so\"'", "'it's \"so\"'"), ("\"a\\\nb\"", "'ab'"), ("\"a\\\r\nb\"", "'ab'"),
        ("'\\x41\\u00e9\\ud83d\\ude00\\v\\0\\q'", "'A\u{e9}\u{1f600}\u{b}\0q'"),
        ("0xDEC", "3564.0"), (".5", "0.5"), ("5.", "5.0"), ("+1", "1.0"), ("-.25e+2", "-25.0"),
        ("1e3", "1000.0"), ("-0x10", "-16.0"), ("Infinity", "inf"), ("-Infinity", "-inf"),
        ("NaN", "nan"), ("// c\n/* d */ null // e", "null"), ("\u{feff} true", "true"),
        ("{ null: false }", "{null:false}"), ("\u{a0}\u{2028}1", "1.0"),
    ])
    func accepted(_ text: String, expected: String) throws {
        #expect(plain(try read(text)) == expected)
    }

    @Test(arguments: [
        ("", 1, 1), ("{", 1, 2), ("[1", 1, 3), ("[,]", 1, 2), ("{,}", 1, 2), ("{a}", 1, 3),
        ("{a:}", 1, 4), ("{a:1 b:2}", 1, 6), ("1 2", 1, 3), ("01", 1, 1), ("0x", 1, 1),
        ("+-1", 1, 1), (".", 1, 1), ("1e", 1, 1), ("0x+1", 1, 1), ("hello", 1, 1),
        ("\n\n  'open", 3, 3), ("'a\nb'", 1, 1), ("/* a", 1, 1), ("/x", 1, 1), ("'\\x4'", 1, 2),
        ("'\\ud800'", 1, 2), ("'\\1'", 1, 2), ("{a:1,\r\n  a:2}", 2, 3), ("{1a:1}", 1, 2),
        ("\r\r\n\n?", 4, 1),
    ])
    func refused(_ text: String, line: Int, column: Int) {
        let error = #expect(throws: JSON5Error.self) { try read(text) }
        #expect(error?.position == JSON5Position(line: line, column: column), "\(text)")
    }

    @Test func positionsAndLimits() throws {
        let value = try read("{\n  a: [\n    true ] }")
        guard case .object(let members) = value.content,
            case .array(let elements) = members[0].value.content
        else {
            Issue.record("no object")
            return
        }
        #expect(members[0].position == JSON5Position(line: 2, column: 3))
        #expect(elements[0].position == JSON5Position(line: 3, column: 5))
        let deep = String(repeating: "[", count: 32) + String(repeating: "]", count: 32)
        #expect(throws: Never.self) { try read(deep) }
        #expect(throws: JSON5Error.self) { try read("[" + deep + "]") }
        #expect(throws: JSON5Error.self) { try JSON5Reader.read([0x22, 0xff, 0x22]) }
    }
}
