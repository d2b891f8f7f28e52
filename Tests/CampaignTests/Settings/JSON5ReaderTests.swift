import Foundation
import Testing

@testable import Campaign

@Suite struct JSON5ReaderTests {
    /// As another reader would give it.
    private func plain(_ value: JSON5Value) -> Any {
        switch value.kind {
        case .null: return NSNull()
        case .boolean(let flag): return flag
        case .number(let text): return Double(text) ?? .nan
        case .string(let text): return text
        case .array(let elements): return elements.map(plain)
        case .object(let members):
            return Dictionary(members.map { ($0.key, plain($0.value)) }, uniquingKeysWith: { $1 })
        }
    }

    private static let good = [
        #"{}"#, "[ ]", "'a\"b'", #""a'b""#, "0x1F", "-0xa", "+5", ".5", "5.", "-.25e-2", "1E+3",
        "0",
        "{a:1,}", "{$_x9: [1,2,],\n'b': null}", "// c\n[true/* x */,false]//", "'a\\\nb'",
        #"'\x41\u00e9\v\0\q'"#, #"'\ud83d\ude00'"#, "{ü:1}", "\u{feff}[\u{a0}1\u{2003}]",
        "['\u{2028}']", "{\"a\":{\"b\":[{}]}}", "/**/1", "[1,\r\n2]", "12.50",
    ]

    @Test("Foundation reads the same", arguments: good)
    func agrees(text: String) throws {
        let own = plain(try JSON5Reader.read(Array(text.utf8)))
        let other = try JSONSerialization.jsonObject(
            with: Data(text.utf8), options: [.json5Allowed, .fragmentsAllowed])
        #expect((own as AnyObject).isEqual(other as AnyObject), "\(own) \(other)")
    }

    @Test(
        "What is no JSON5 is refused where it stands",
        arguments: [
            ("", 1, 1), ("{", 1, 2), ("{a}", 1, 3), ("{a:1 b:2}", 1, 6), ("[1 2]", 1, 4),
            ("{,}", 1, 2), ("[,]", 1, 2), ("[1,,2]", 1, 4), ("'a", 1, 1), ("'a\nb'", 1, 1),
            ("1 2", 1, 3), ("{\n a: tru\n}", 2, 5), ("01", 1, 1), ("0x", 1, 1), ("1e", 1, 1),
            (".", 1, 1), ("+", 1, 1), ("--1", 1, 1), ("1.2.3", 1, 1), (#"'\1'"#, 1, 2),
            (#"'\x4'"#, 1, 2), (#"'\ud83d'"#, 1, 2), ("/* a", 1, 1), ("{a-b:1}", 1, 3),
            ("{1a:1}", 1, 2), ("[\r\n1\r\n2]", 3, 1), ("{a:[1}", 1, 6), ("#", 1, 1), ("}", 1, 1),
        ])
    func refused(text: String, line: Int, column: Int) {
        do {
            let value = try JSON5Reader.read(Array(text.utf8))
            Issue.record("\(text) was read as \(value)")
        } catch {
            #expect(error.place == .init(line: line, column: column), "\(text): \(error)")
        }
    }

    @Test("Values know their place; what is no UTF-8 is told; nesting has an end")
    func places() throws {
        let value = try JSON5Reader.read(Array("// x\n{ä: 'ö', b:\r\n  [1]}".utf8))
        guard case .object(let members) = value.kind else { return #expect(Bool(false)) }
        #expect(members.map(\.place) == [.init(line: 2, column: 2), .init(line: 2, column: 10)])
        #expect(members[0].value.place == .init(line: 2, column: 5))
        #expect(members[1].value.place == .init(line: 3, column: 3))
        #expect(throws: JSON5Value.Problem.self) { try JSON5Reader.read([0x27, 0xff, 0x27]) }
        let deep = { (count: Int) in
            Array(
                (String(repeating: "[", count: count)
                    + String(repeating: "]", count: count)).utf8)
        }
        _ = try JSON5Reader.read(deep(JSON5Reader.maximumDepth))
        #expect(throws: JSON5Value.Problem.self) {
            try JSON5Reader.read(deep(JSON5Reader.maximumDepth + 1))
        }
    }
}
