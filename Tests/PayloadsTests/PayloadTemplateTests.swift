import BroadsideSupport
import BroadsideTestSupport
import Foundation
import Testing

@testable import BroadsideAPNs
@testable import BroadsidePayloads
@testable import BroadsideRows

@Suite struct PayloadTemplateTests {
    private func compile(_ text: String, checksValues: Bool = true) throws -> PayloadTemplate {
        let bytes = Array(text.utf8)
        #expect(PayloadCheck.syntaxProblem(bytes.span.bytes) == nil)
        return try PayloadTemplate(bytes.span.bytes, checksValues: checksValues)
    }

    /// What rows of a CSV list become: payloads, or reasons.
    private func rendered(
        _ payload: String, csv: String, collapse: String? = nil, limit: Int = 4096,
        checksValues: Bool = true
    ) throws -> [String] {
        let template = try compile(payload, checksValues: checksValues)
        let set = PayloadSet(
            templates: [template], choice: nil, collapse: try collapse.map { try TextTemplate($0) },
            limit: limit)
        let pool = ChunkPool(limit: 2)
        var cutter = RowSplitter(format: .csv, pool: pool)
        let lines = csv.split(separator: "\n", maxSplits: 1)
        let names = lines[0].split(separator: ",").map(String.init)
        let layout = try RowLayout(format: .csv, names: names, header: Array(lines[0].utf8))
        var renderer = PayloadRenderer(set, layout: layout)
        var reader = RowReader(layout: layout)
        var result: [String] = []
        cut(&cutter, pool: pool, pieces: [Array(csv.utf8)]) { chunk in
            reader.open(chunk)
            while reader.next() != nil {
                switch renderer.render(reader) {
                case .invalid(let reason): result.append(reason.text)
                case .made(let shape):
                    var body = [UInt8](repeating: 0, count: Int(shape.payloadCount))
                    let pieces = [UInt8](renderer.lastPieces)
                    body.withUnsafeMutableBytes { body in
                        pieces.withUnsafeBytes { pieces in
                            renderer.writePayload(
                                shape, pieces: pieces, to: body.baseAddress!)
                        }
                    }
                    let id = String(
                        decoding: pieces.suffix(Int(shape.collapseCount)), as: UTF8.self)
                    result.append(String(decoding: body, as: UTF8.self) + id)
                }
            }
            _ = reader.close()
        }
        return result
    }

    @Test func `A column has a default only if each of its placeholders has one`() throws {
        let text = #"{"a":"{{x|1}} {{y}}","b":"{{x|}}","c":"{{y|2}}","d":"{{z:int|3}}"}"#
        let template = try PayloadTemplate(Array(text.utf8).span.bytes)
        #expect(template.uses.map(\.column).filter(template.hasDefault) == ["x", "z"])
        #expect(try TextTemplate("{{x|1}}-{{y}}-{{z|}}{{y|2}}").requiredColumns == ["y"])
    }

    @Test
    func `A payload without placeholders keeps its text but for blanks between tokens`() throws {
        let text = #"{ "a b" : "{ {x} } }} \"{ {\"" , "n": [ 1.50 , -0e1 ] }"#
        let template = try compile(text)
        #expect(!template.isPersonal)
        #expect(
            String(decoding: template.constantPayload, as: UTF8.self)
                == #"{"a b":"{ {x} } }} \"{ {\"","n":[1.50,-0e1]}"#)
        #expect(template.constantPayload == PayloadMinifier.minify(Array(text.utf8).span.bytes))
    }

    @Test func `Placeholders take values, types and defaults, and doubled braces stay`() throws {
        #expect(
            try rendered(
                #"{"a":"{{{{{{x}}{{{{", "b": "{{y:int|5}}", "{{{{k": "{{ x | z}}"}"#,
                csv: "x,y\nv,1\n,\n\"\"\"\",-3\nw,0\n")
                == [
                    #"{"a":"{{v{{","b":1,"{{k":"v"}"#, #"{"a":"{{{{","b":5,"{{k":" z"}"#,
                    #"{"a":"{{\"{{","b":-3,"{{k":"\""}"#, #"{"a":"{{w{{","b":0,"{{k":"w"}"#,
                ])
    }

    @Test func `Blanks alone are a missing value where there is a default`() throws {
        #expect(
            try rendered(
                #"{"a":"{{x|z}}","b":"{{y:int|5}}","c":"{{x}}"}"#,
                csv: "x,y\n  , \n\" \t\n\",7\n v ,\n")
                == [
                    #"{"a":"z","b":5,"c":"  "}"#, #"{"a":"z","b":7,"c":" \t\n"}"#,
                    #"{"a":" v ","b":5,"c":" v "}"#,
                ])
        #expect(try rendered(#"{"a":"{{x:int}}"}"#, csv: "x,y\n ,1\n") == ["BadValue"])
        #expect(
            try rendered("{}", csv: "x,y\n ,1\nb,1\n", collapse: "{{x|a}}") == ["{}a", "{}b"])
    }

    @Test func `Characters that cannot be seen are a missing value where there is a default`()
        throws
    {
        #expect(
            try rendered(
                #"{"a":"{{x|z}}","b":"{{y:int|5}}"}"#,
                csv: "x,y\n\u{a0},\u{200b}\n \u{feff} ,7\n\u{a0}v\u{2060},1\n👩\u{200d}👧,1\n")
                == [
                    #"{"a":"z","b":5}"#, #"{"a":"z","b":7}"#, "{\"a\":\"\u{a0}v\u{2060}\",\"b\":1}",
                    "{\"a\":\"👩\u{200d}👧\",\"b\":1}",
                ])
    }

    @Test func `Integers are written with all of their digits`() throws {
        var random = SeededRandom(seed: 1)
        let values =
            [0, 9, 10, 99, 100, -1, -10, 1_234_567_890, .max, .min]
            + (0..<200).map { _ in
                Int64.random(in: .min ... .max, using: &random)
                    >> Int64.random(in: 0..<64, using: &random)
            }
        let csv = "x\n" + values.map { "\($0)\n" }.joined()
        #expect(
            try rendered(#"{"a":"{{x:int}}"}"#, csv: csv) == values.map { #"{"a":\#($0)}"# })
        #expect(
            try rendered(#"{"a":"{{x:bool}}"}"#, csv: "x\n1\nFALSE\n2\n")
                == [#"{"a":true}"#, #"{"a":false}"#, "BadValue"])
    }

    @Test func `A row whose value makes a badge below 0 is invalid, wherever the badge is`() throws
    {
        let csv = "x,y\n-1,a\n0,a\n7,a\n-0,a\n,a\nx,a\n-9223372036854775808,a\n"
        #expect(
            try rendered(#"{"aps":{"badge":"{{x:int|3}}"},"badge":"{{x:int|-2}}"}"#, csv: csv)
                == [
                    "BadValue", #"{"aps":{"badge":0},"badge":0}"#,
                    #"{"aps":{"badge":7},"badge":7}"#, #"{"aps":{"badge":0},"badge":0}"#,
                    #"{"aps":{"badge":3},"badge":-2}"#, "BadValue", "BadValue",
                ])
        #expect(
            try rendered(
                #"{"badge":"{{x:int}}","aps":{"alert":{"badge":"{{x:int}}"}}}"#, csv: "x\n-1\n")
                == [#"{"badge":-1,"aps":{"alert":{"badge":-1}}}"#])
        #expect(
            try rendered(#"{"aps":{"badge":"{{x:int}}"}}"#, csv: "x\n-1\n", checksValues: false)
                == [#"{"aps":{"badge":-1}}"#])
    }

    @Test func `A row whose value is not an interruption level of Apple is invalid`() throws {
        let levels = ["passive", "active", "time-sensitive", "critical"]
        let others = ["timeSensitive", "Active", "active.", "time sensitive", "urgent", "activf"]
        let rows = levels + others + ["", "\" active\""]
        let csv = "x,y\n" + rows.map { "\($0),1\n" }.joined()
        let payload = #"{"aps":{"interruption-level":"{{x}}"}}"#
        let valid = levels.map { #"{"aps":{"interruption-level":"\#($0)"}}"# }
        for payload in [payload, payload.replacing("{{x}}", with: "{{x:fit}}")] {
            #expect(
                try rendered(payload, csv: csv)
                    == valid + [String](repeating: "BadValue", count: others.count + 2))
        }
        // The payload check has the same levels.
        for level in levels + others {
            let text = Array(#"{"aps":{"alert":"a","interruption-level":"\#(level)"}}"#.utf8)
            let found = PayloadLint.findings(text.span.bytes, pushType: .alert)
            #expect(found.isEmpty == levels.contains(level), "\(level)")
        }
        // Default, other keys, and a value that is only a part of the text.
        #expect(
            try rendered(
                #"{"aps":{"interruption-level":"{{x|active}}"},"interruption-level":"{{x|y}}"}"#,
                csv: "x,z\n,1\nurgent,1\ncritical,1\n")
                == [
                    #"{"aps":{"interruption-level":"active"},"interruption-level":"y"}"#,
                    "BadValue",
                    #"{"aps":{"interruption-level":"critical"},"interruption-level":"critical"}"#,
                ])
        for text in ["{{x}}{{x}}", "{{x}} ", "time-{{x}}"] {
            let part = #"{"aps":{"interruption-level":"\#(text)"}}"#
            #expect(try rendered(part, csv: "x\nu\n")[0].hasPrefix("{"), "\(text)")
        }
        #expect(
            try rendered(payload, csv: "x\nurgent\n", checksValues: false)
                == [#"{"aps":{"interruption-level":"urgent"}}"#])
    }

    @Test func `A filled payload above the limit is PayloadTooLarge`() throws {
        let csv = "x\n" + "ab\nabc\n\"a\"\"\"\n"
        #expect(
            try rendered(#"{"a":"{{x}}"}"#, csv: csv, limit: 10)
                == [#"{"a":"ab"}"#, "PayloadTooLarge", "PayloadTooLarge"])
    }

    @Test(arguments: [1, 255, 256])
    func `The largest number of placeholders leaves room for the longest payload`(
        count: Int
    ) throws {
        let text = "{\"a\":\"\(String(repeating: "{{x}}", count: count))\"}"
        let id = String(repeating: "c", count: 64)
        for length in [1, 7, 15] {
            let value = String(repeating: "v", count: length)
            let whole = "{\"a\":\"\(String(repeating: value, count: count))\"}"
            for (limit, expected) in [
                (whole.utf8.count, whole + id), (whole.utf8.count - 1, "PayloadTooLarge"),
            ] {
                let found = try rendered(
                    text, csv: "x,y\n\(value),\(id)\n", collapse: "{{y}}", limit: limit)
                #expect(found == [expected])
            }
        }
    }

    @Test func `Exactly what JSON forbids in a string is escaped`() throws {
        for (value, escaped) in [
            ("\u{1}\u{b}\u{1f}", "\\u0001\\u000b\\u001f"), ("\u{10}\u{1a}", "\\u0010\\u001a"),
            ("\u{8}\t\u{c}", "\\b\\t\\f"), ("\\/", "\\\\/"),
            ("\u{7f}é\u{1f389}", "\u{7f}é\u{1f389}"),
        ] {
            let found = try rendered("{\"a\":\"{{x}}\"}", csv: "x\n\(value)\n")
            #expect(found == ["{\"a\":\"\(escaped)\"}"])
        }
    }

    @Test func `A value that is not UTF-8 makes the row invalid`() throws {
        let set = PayloadSet(
            templates: [try compile(#"{"a":"{{x}}"}"#)], choice: nil, collapse: nil, limit: 100)
        let layout = try RowLayout(format: .csv, names: ["x"], header: Array("x".utf8))
        var renderer = PayloadRenderer(set, layout: layout)
        var reader = RowReader(layout: layout)
        for bytes: [UInt8] in [[0xff], [0x61, 0xc3], [0xed, 0xa0, 0x80], [0xc0, 0x80]] {
            let pool = ChunkPool(limit: 2)
            var cutter = RowSplitter(format: .csv, pool: pool)
            cut(&cutter, pool: pool, pieces: [[0x78, 0x0a] + bytes + [0x0a]]) { chunk in
                reader.open(chunk)
                #expect(reader.next() != nil)
                #expect(renderer.render(reader) == .invalid(.badValue))
                _ = reader.close()
            }
        }
    }

    @Test
    func `A collapse ID above 64 bytes or with control characters is BadValue, an empty one none`()
        throws
    {
        let long = String(repeating: "é", count: 31)
        #expect(
            try rendered(
                "{}", csv: "x\n\(long)\n\(long)é\n\" \"\n\"a\n\"\n\"\"\n", collapse: "{{x}}{{{{")
                == ["{}\(long){{", "BadValue", "BadValue", "BadValue", "{}{{"])
    }

    @Test func `A payload that is too large names its longest value`() throws {
        let set = PayloadSet(
            templates: [try compile(#"{"a":"{{x}}{{y}}"}"#)], choice: nil, collapse: nil,
            limit: 20)
        let pool = ChunkPool(limit: 2)
        var splitter = RowSplitter(format: .jsonl, pool: pool)
        let layout = try RowLayout(format: .jsonl, names: ["token", "x", "y"])
        var renderer = PayloadRenderer(set, layout: layout)
        var reader = RowReader(layout: layout)
        // One value is too long, or both together are, or the first leaves no room.
        let lengths = [(12, 1), (7, 12), (800, 900)]
        let list = lengths.map { x, y in
            let values = [x, y].map { String(repeating: "v", count: $0) }
            return #"{"token":"aa","x":"\#(values[0])","y":"\#(values[1])"}"# + "\n"
        }
        var fields: [Int?] = []
        cut(&splitter, pool: pool, pieces: [Array(list.joined().utf8)]) { chunk in
            reader.open(chunk)
            while reader.next() != nil {
                if case .invalid(.payloadTooLarge) = renderer.render(reader) {
                    fields.append(renderer.culprit?.field)
                }
            }
            _ = reader.close()
        }
        #expect(fields == [1, 2, 2])
        #expect(renderer.culprit?.use == .payloadOver(limit: 20))
    }

    @Test func `A column that a collapse ID lacks is reported as the collapse ID's`() throws {
        let set = PayloadSet(
            templates: [try compile(#"{"a":"{{y}}"}"#)], choice: nil,
            collapse: try TextTemplate("id-{{x}}"), limit: 4096)
        let pool = ChunkPool(limit: 2)
        var cutter = RowSplitter(format: .jsonl, pool: pool)
        let layout = try RowLayout(format: .jsonl, names: ["token", "y", "x"])
        var renderer = PayloadRenderer(set, layout: layout)
        var reader = RowReader(layout: layout)
        let token = String(repeating: "ab", count: 32)
        let row = #"{"token":"\#(token)","y":"text","x":null}"# + "\n"
        var reasons: [Reason] = []
        cut(&cutter, pool: pool, pieces: [Array(row.utf8)]) { chunk in
            reader.open(chunk)
            while reader.next() != nil {
                if case .invalid(let reason) = renderer.render(reader) { reasons.append(reason) }
            }
            _ = reader.close()
        }
        #expect(reasons == [.missingColumn])
        #expect(renderer.culprit == .init(field: 2, use: .collapseID))
    }

    @Test(arguments: [
        (#"{"a":"x {{name"}"#, 9, "not closed"),
        ("{\"a\":\n\"ä{{}}\"}", 3, "names no column"),
        (#"{"{{a}}":1}"#, 3, "keys can't contain templates"),
        (#"{"a":"{{n:float}}"}"#, 7, "':float' is not a type"),
        (#"{"a":"{{custom:lang}}"}"#, 7, "part of the column's name, rename the column"),
        (#"{"a":"x{{n:int}}"}"#, 8, "write {{n}}"),
        (#"{"a":"{{n:int|x}}"}"#, 7, "default 'x' is not a whole number"),
        (#"{"a":"{{n:bool|2}}"}"#, 7, "default '2' is not true or false"),
        (#"{"a":"{{{n}}}"}"#, 7, "{{{ is not a placeholder: write {{n}}"),
        (#"{"a":"{{{n:fit|x}}}"}"#, 7, "write {{n:fit|x}}"),
        (#"{"a":"{{{}}}"}"#, 7, "write {{{{ for {{"),
        (#"{"a":"{{n {x}}"}"#, 7, "write {{{{ for {{"),
        (#"{"a":"{{n|x{{y}}"}"#, 7, "the default of {{n}} contains {{"),
    ])
    func `A mistake in a payload template is reported with line and column`(
        text: String, column: Int, says: String
    ) throws {
        do {
            _ = try compile(text)
            Issue.record("this is not a template: \(text)")
        } catch let problem as PayloadCheck.Problem {
            #expect(problem.column == column, "\(problem)")
            #expect(problem.message.contains(says), "\(problem)")
            #expect(problem.line == (text.contains("\n") ? 2 : 1))
        }
    }

    @Test(arguments: [
        ("ab{{n", 3, "not closed"), ("é–{{n", 3, "not closed"), ("{{}}", 1, "names no column"),
        ("x{{n:int}}", 2, "without types: write {{n}}"),
        ("{{a}}{{n:bool}}", 6, "without types: write {{n}}"),
        ("x{{n|default: 'y'}}", 2, "no filters: write {{n|y}}"),
    ])
    func `A mistake in a header template is reported with its character`(
        text: String, character: Int, says: String
    ) {
        do {
            _ = try TextTemplate(text)
            Issue.record("this is not a template: \(text)")
        } catch {
            #expect(error.message.hasPrefix("character \(character): "), "\(error.message)")
            #expect(error.message.contains(says), "\(error.message)")
        }
    }

    @Test func `A header template has its columns and its constant text`() throws {
        let template = try TextTemplate("a-{{x}}-{{y|z}}-{{{{")
        #expect(template.isPersonal && template.columns == ["x", "y"])
        #expect(String(decoding: template.constant, as: UTF8.self) == "a---{{")
        #expect(try !TextTemplate("a").isPersonal)
    }

    @Test func `A column's name in a template has at most 256 bytes`() throws {
        let name = String(repeating: "n", count: 256)
        #expect(try compile("{\"a\":\"{{\(name)}}\"}").uses.map(\.column) == [name])
        #expect(throws: PayloadCheck.Problem.self) { try compile("{\"a\":\"{{\(name)n}}\"}") }
    }

    @Test func `A template names each column once, with its first place`() throws {
        let template = try compile("{\"a\":\"{{n}}{{n\\u0065}}\",\n \"b\":\"{{n:int}}\"}")
        #expect(template.uses.map(\.column) == ["n", "ne"])
        #expect(template.uses.map(\.character) == [7, 12])
        let many = String(repeating: "{{n}}", count: 257)
        #expect(throws: PayloadCheck.Problem.self) { try compile("{\"a\":\"\(many)\"}") }
        #expect(try compile("{\"a\":\"\(many.dropLast(5))\"}").segments.count == 256)
    }
}
