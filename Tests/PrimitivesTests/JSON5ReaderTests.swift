import Foundation
import Testing

@testable import BroadsidePrimitives

@Suite struct JSON5ReaderTests {
    /// A value as Foundation's reader gives it.
    private enum Plain: Decodable, Equatable {
        case null, boolean(Bool), number(Double), string(String)
        case array([Plain]), object([String: Plain])

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if container.decodeNil() {
                self = .null
            } else if let value = try? container.decode(Bool.self) {
                self = .boolean(value)
            } else if let value = try? container.decode(Double.self) {
                self = .number(value)
            } else if let value = try? container.decode(String.self) {
                self = .string(value)
            } else if let value = try? container.decode([Plain].self) {
                self = .array(value)
            } else {
                self = .object(try container.decode([String: Plain].self))
            }
        }

        init(_ value: JSON5Value) {
            switch value.content {
            case .null: self = .null
            case .boolean(let flag): self = .boolean(flag)
            case .number(let text): self = .number(Double(text) ?? .nan)
            case .string(let text): self = .string(text)
            case .array(let elements): self = .array(elements.map(Plain.init))
            case .object(let members):
                self = .object(
                    Dictionary(
                        members.map { ($0.name, Plain($0.value)) }, uniquingKeysWith: { $1 }))
            }
        }
    }

    private static let good = [
        #"{}"#, "[ ]", "'a\"b'", #""a'b""#, "0x1F", "-0xa", "+5", ".5", "5.", "-.25e-2", "1E+3",
        "0",
        "{a:1,}", "{$_x9: [1,2,],\n'b': null}", "// c\n[true/* x */,false]//",
        #"'\x41\u00e9'"#, #"'\ud83d\ude00'"#, "{ü:1}",
        "['\u{2028}']", "{null:false}", "{ a: 1, $b_2: 2, 'c d': 3, \"e\": 4 }",
        "{\"a\":{\"b\":[{}]}}", "/**/1", "[1,\r\n2]", "12.50",
    ]

    @Test(arguments: good)
    func `JSON5 is read as Foundation reads it`(text: String) throws {
        let decoder = JSONDecoder()
        decoder.allowsJSON5 = true
        let other = try decoder.decode(Plain.self, from: Data(text.utf8))
        #expect(Plain(try JSON5Reader.read(Array(text.utf8))) == other)
    }

    private static let malformed: [(String, Int, Int)] = [
        ("", 1, 1), ("{", 1, 2), ("{a}", 1, 3), ("{a:1 b:2}", 1, 6), ("[1 2]", 1, 4),
        ("{,}", 1, 2), ("[,]", 1, 2), ("[1,,2]", 1, 4), ("'a", 1, 1), ("'a\nb'", 1, 1),
        ("1 2", 1, 3), ("{\n a: tru\n}", 2, 5), ("01", 1, 1), ("0x", 1, 1), ("1e", 1, 1),
        (".", 1, 1), ("+", 1, 1), ("--1", 1, 1), ("1.2.3", 1, 1), (#"'\1'"#, 1, 2),
        (#"'\x4'"#, 1, 2), (#"'\ud83d'"#, 1, 2), ("/* a", 1, 1), ("{a-b:1}", 1, 3),
        ("{1a:1}", 1, 2), ("[\r\n1\r\n2]", 3, 1), ("{a:[1}", 1, 6), ("#", 1, 1), ("}", 1, 1),
        ("[1", 1, 3), ("{a:}", 1, 4), ("+-1", 1, 1), ("0x+1", 1, 1), ("hello", 1, 1),
        ("\n\n  'open", 3, 3), ("/x", 1, 1), (#"'\ud800'"#, 1, 2), ("{a:1,\r\n  a:2}", 2, 3),
        ("\r\r\n\n?", 4, 1), ("{'a':1,\"a\":1}", 1, 8),
    ]

    @Test(arguments: malformed)
    func `Text that is not JSON5 fails at its line and column`(text: String, line: Int, column: Int)
    {
        do {
            let value = try JSON5Reader.read(Array(text.utf8))
            Issue.record("\(text) was read as \(value)")
        } catch {
            #expect(
                error.position == JSON5Position(line: line, column: column), "\(text): \(error)")
        }
    }

    @Test(arguments: ["hunter2secret", "MIGHAgEA+Bw", "2hunter", "-hunter", "'hunter"])
    func `A text without quotes, which may be a secret, is not in the message`(text: String) {
        let error = #expect(throws: JSON5Error.self) {
            try JSON5Reader.read(Array("{passphrase: \(text)}".utf8))
        }
        let message = error?.message ?? ""
        #expect(!message.contains("hunter") && !message.contains("MIGH"), "\(message)")
    }

    /// Here Foundation's reader does not follow the specification.
    @Test(arguments: [
        ("'a\\\nb\\\r\nc'", "abc"), (#"'\v\0\q\''"#, "\u{b}\0q'"),
        ("\u{feff}\u{a0}'x'\u{2003}\u{2028}", "x"),
    ])
    func `Escapes, continued lines and blanks are read as spec.json5.org says`(
        text: String, value: String
    ) throws {
        #expect(try JSON5Reader.read(Array(text.utf8)).content == .string(value))
    }

    @Test(arguments: [
        ("0xDEC", "3564"), ("-0x10", "-16"), ("+.5", "0.5"), ("5.", "5"),
        ("-.25e+2", "-0.25e+2"),
        ("18446744073709551615", "18446744073709551615"), ("Infinity", "Infinity"),
        ("-Infinity", "-Infinity"), ("NaN", "NaN"),
    ])
    func `JSON5 numbers are kept as JSON writes them`(text: String, kept: String) throws {
        let value = try JSON5Reader.read(Array(text.utf8))
        #expect(value.content == .number(kept))
        #expect(value.number?.isNaN == (text == "NaN"))
    }

    @Test func `JSON5 values know their place, and nesting has a limit`() throws {
        let value = try JSON5Reader.read(Array("// x\n{ä: 'ö', b:\r\n  [1]}".utf8))
        guard case .object(let members) = value.content else { return #expect(Bool(false)) }
        #expect(members.map(\.position) == [.init(line: 2, column: 2), .init(line: 2, column: 10)])
        #expect(members[0].value.position == .init(line: 2, column: 5))
        #expect(members[1].value.position == .init(line: 3, column: 3))
        #expect(throws: JSON5Error.self) { try JSON5Reader.read([0x27, 0xff, 0x27]) }
        let deep = { (count: Int) in
            Array(
                (String(repeating: "[", count: count)
                    + String(repeating: "]", count: count)).utf8)
        }
        _ = try JSON5Reader.read(deep(JSON5Reader.maximumDepth))
        #expect(throws: JSON5Error.self) {
            try JSON5Reader.read(deep(JSON5Reader.maximumDepth + 1))
        }
    }
}
