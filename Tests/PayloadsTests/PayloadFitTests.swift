import BroadsideSupport
import BroadsideTestSupport
import Testing

@testable import BroadsideAPNs
@testable import BroadsidePayloads
@testable import BroadsideRows

/// `{{column:fit}}`: a value that is shortened so that its payload fits.
@Suite struct PayloadFitTests {
    private func compile(_ text: String) throws -> PayloadTemplate {
        let bytes = Array(text.utf8)
        #expect(PayloadCheck.syntaxProblem(bytes.span.bytes) == nil)
        return try PayloadTemplate(bytes.span.bytes)
    }

    /// What rows with values for the columns x, y and z become: payloads, or reasons.
    private func rendered(
        _ payload: String, rows: [[String?]], limit: Int = 4096, collapse: String? = nil
    ) throws -> (texts: [String], shortened: UInt64) {
        let names = ["x", "y", "z"]
        let list = rows.map { row in
            let members = zip(names, row).map { "\"\($0)\":\($1.map(Self.quoted) ?? "null")" }
            return "{\(members.joined(separator: ","))}\n"
        }
        return try rendered(
            payload, list: Array(list.joined().utf8), limit: limit, collapse: collapse)
    }

    private func rendered(
        _ payload: String, list: [UInt8], format: ListFormat = .jsonl, limit: Int,
        collapse: String? = nil
    ) throws -> (texts: [String], shortened: UInt64) {
        let set = PayloadSet(
            templates: [try compile(payload)], choice: nil,
            collapse: try collapse.map { try TextTemplate($0) }, limit: limit)
        let layout = try RowLayout(
            format: format, names: ["x", "y", "z"], header: Array("x,y,z".utf8))
        let pool = ChunkPool(limit: 2)
        var cutter = RowSplitter(format: format, pool: pool)
        var renderer = PayloadRenderer(set, layout: layout)
        var reader = RowReader(layout: layout)
        var texts: [String] = []
        cut(&cutter, pool: pool, pieces: [list]) { chunk in
            reader.open(chunk)
            while reader.next() != nil {
                switch renderer.render(reader) {
                case .invalid(let reason): texts.append(reason.text)
                case .made(let shape):
                    let payload = renderer.lastPayload(shape)
                    #expect(payload.count <= limit)
                    texts.append(
                        String(decoding: payload + renderer.lastCollapseID(shape), as: UTF8.self))
                }
            }
            _ = reader.close()
        }
        return (texts, renderer.shortenedRows)
    }

    /// A text as a JSON string.
    private static func quoted(_ text: String) -> String { "\"\(escaped(text))\"" }

    /// The inside of a JSON string, with what must be escaped written as short as may be.
    private static func escaped(_ text: String) -> String {
        let short: [Unicode.Scalar: String] = [
            "\"": "\\\"", "\\": "\\\\", "\u{8}": "\\b", "\t": "\\t", "\n": "\\n", "\u{c}": "\\f",
            "\r": "\\r",
        ]
        return text.unicodeScalars.map { scalar in
            if let escape = short[scalar] { return escape }
            guard scalar.value < 0x20 else { return String(scalar) }
            let digits = String(scalar.value, radix: 16)
            return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
        }.joined()
    }

    /// A text as it fits into so many bytes, found by trying ever shorter ones.
    private func fitted(_ text: String, _ budget: Int) -> String {
        if Self.escaped(text).utf8.count <= budget { return Self.escaped(text) }
        var kept = Array(text)
        while !kept.isEmpty {
            kept.removeLast()
            let escaped = Self.escaped(String(kept)) + "…"
            if escaped.utf8.count <= budget { return escaped }
        }
        return ""
    }

    @Test func `A value that fits stays, and one byte more shortens it`() throws {
        let found = try rendered(
            #"{"a":"{{x:fit}}"}"#, rows: [["abcdef"], ["abcdefg"], ["ééé"], ["éééé"]], limit: 14)
        #expect(
            found.texts
                == [
                    #"{"a":"abcdef"}"#, #"{"a":"abc…"}"#, #"{"a":"ééé"}"#, #"{"a":"é…"}"#,
                ])
        #expect(found.shortened == 2)
    }

    @Test func `A row that is shortened and then refused for its collapse ID does not count`()
        throws
    {
        let long = String(repeating: "c", count: 65)
        let found = try rendered(
            #"{"a":"{{x:fit}}"}"#,
            rows: [["abcdefg", "c1"], ["abcdefg", long], ["abc", long], ["abcdefgh", "c2"]],
            limit: 14, collapse: "{{y}}")
        #expect(
            found.texts == [
                #"{"a":"abc…"}c1"#, "BadValue", "BadValue", #"{"a":"abc…"}c2"#,
            ])
        #expect(found.shortened == 2)
    }

    @Test func `Values before and behind the shortened one stay whole and in their places`() throws
    {
        let found = try rendered(
            #"{"a":"{{y}}-{{x:fit}}-{{z}}","b":"{{z:int}}"}"#,
            rows: [
                ["0123456789", "left", "7"], ["012", "l", "1234"], ["0123456789ab", "", "12"],
            ],
            limit: 30, collapse: "id{{z}}")
        #expect(
            found.texts == [
                #"{"a":"left-012345…-7","b":7}id7"#, #"{"a":"l-012-1234","b":1234}id1234"#,
                #"{"a":"-01234567…-12","b":12}id12"#,
            ])
    }

    @Test
    func
        `A payload that is too large without the value is refused, and one that has no room for it lacks it`()
        throws
    {
        let text = #"{"a":"{{y}}{{x:fit}}"}"#
        for (length, expected) in [
            (0, "…"), (1, ""), (2, ""), (3, ""), (4, nil),
        ] as [(Int, String?)] {
            let other = String(repeating: "y", count: length)
            let found = try rendered(text, rows: [["xxxx", other]], limit: 11)
            #expect(
                found.texts == [expected.map { "{\"a\":\"\(other)\($0)\"}" } ?? "PayloadTooLarge"])
        }
    }

    @Test func `A default is shortened as a value is, and its escapes stay whole`() throws {
        let text = #"{"a":"{{x:fit|a\n\ud83d\ude00\"b}}"}"#
        for (limit, expected) in [
            (100, "a\\n\u{1f600}\\\"b"), (18, "a\\n\u{1f600}\\\"b"), (17, "a\\n…"),
            (15, "a\\n…"), (14, "a\\n…"), (13, "a…"), (12, "a…"), (11, "…"), (10, ""),
        ] {
            let found = try rendered(text, rows: [[nil], [""], [" \n"]], limit: limit)
            #expect(found.texts == Array(repeating: "{\"a\":\"\(expected)\"}", count: 3))
        }
    }

    @Test func `A row without the value, or whose value is not UTF-8 behind the cut, is invalid`()
        throws
    {
        let text = #"{"a":"{{x:fit}}"}"#
        #expect(
            try rendered(text, rows: [[nil], [""], [" "]], limit: 20).texts == [
                "MissingColumn", #"{"a":""}"#, #"{"a":" "}"#,
            ])
        for bytes: [UInt8] in [[0xff], [0xc3], [0xed, 0xa0, 0x80]] {
            let list = Array("x,y,z\n012345678901234567890".utf8) + bytes + Array("\n".utf8)
            let found = try rendered(text, list: list, format: .csv, limit: 20)
            #expect(found.texts == ["BadValue"])
        }
        let list = Array("{\"x\":[\"text\"]}\n".utf8)
        #expect(try rendered(text, list: list, limit: 20).texts == ["BadValue"])
    }

    /// Characters of one scalar and of many, with escapes of two bytes and of six.
    private static let characters = [
        "a", "b", " ", "\"", "\\", "\u{1}", "\n", "\r\n", "\r", "é", "e\u{301}", "字", "한",
        "\u{1112}\u{1161}\u{11ab}",
        "👍🏽", "👨‍👩‍👧‍👦", "🇩🇪", "🇫🇷", "❤️", "1️⃣", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "z\u{300}\u{301}\u{302}", "\u{200d}", "\u{fe0f}",
        "\u{600}", "क्षि",
    ]

    @Test(arguments: 0..<40)
    func `Any text is cut between characters, and as late as its limit allows`(seed: UInt64) throws
    {
        var random = SeededRandom(seed: seed)
        var rows: [[String?]] = []
        for _ in 0..<50 {
            let count = Int.random(in: 1..<40, using: &random)
            let text = (0..<count).map { _ in
                Self.characters.randomElement(using: &random)!
            }.joined()
            rows.append([
                text, String(repeating: "y", count: Int.random(in: 0..<8, using: &random)),
            ])
        }
        let limit = Int.random(in: 20..<120, using: &random)
        let found = try rendered(#"{"a":"{{x:fit}}{{y}}"}"#, rows: rows, limit: limit)
        for (row, text) in zip(rows, found.texts) {
            let other = row[1]!
            let expected = fitted(row[0]!, limit - 8 - other.utf8.count)
            #expect(text == "{\"a\":\"\(expected)\(other)\"}")
        }
    }

    @Test func `Where Perl divides a text into characters it may be cut, and nowhere else`() throws
    {
        var random = SeededRandom(seed: 3)
        // Perl's Unicode is older than the rule for conjuncts.
        let characters = Self.characters.filter { $0 != "क्षि" }
        let texts = (0..<300).map { _ in
            (0..<20).map { _ in characters.randomElement(using: &random)! }.joined()
        }
        let program = """
            open my $file, "<:encoding(UTF-8)", $ARGV[0]; local $/; my $input = <$file>;
            for my $text (split /\\x{1e}/, $input) {
                my $at = 0; my @ends;
                while ($text =~ /(\\X)/gs) { my $c = $1; utf8::encode($c); $at += length $c; push @ends, $at; }
                print join(",", @ends), "\\n";
            }
            """
        let directory = try TemporaryDirectory()
        let file = try directory.write(texts.joined(separator: "\u{1e}"), to: "texts")
        let run = try Subprocess.run("perl", ["-e", program, file], in: directory)
        let lines = run.output.split(separator: "\n")
        #expect(lines.count == texts.count)
        for (text, line) in zip(texts, lines) {
            let boundaries = [0] + line.split(separator: ",").map { Int($0)! }
            let bytes = Array(text.utf8)
            for offset in bytes.indices where bytes[offset] & 0xc0 != 0x80 {
                let last = CharacterBoundary.last(in: bytes.span.bytes, upTo: offset)
                #expect(last == boundaries.last { $0 <= offset })
            }
        }
    }

    @Test func `A second value to be shortened is refused where it is written`() throws {
        do {
            _ = try compile("{\"a\":\"{{x:fit}}\",\n \"b\":\"é{{y:fit}}\"}")
            Issue.record("this is not a template")
        } catch let problem as PayloadCheck.Problem {
            #expect(problem.line == 2 && problem.column == 8)
            #expect(problem.message.contains("{{x:fit}} is already in this payload"))
            #expect(problem.message.contains("write {{y}} here"))
        }
        #expect(try compile(#"{"a":"{{x:fit}}{{x}}"}"#).fittedColumn == "x")
        #expect(try compile(#"{"a":"{{x}}"}"#).fittedColumn == nil)
        #expect(throws: TextTemplate.Problem.self) { try TextTemplate("{{x:fit}}") }
    }

    @Test func `A value of a megabyte is shortened to the largest payload`() throws {
        let text = String(repeating: "👨‍👩‍👧‍👦", count: 40_000)
        let found = try rendered(#"{"a":"{{x:fit}}"}"#, rows: [[text]])
        let payload = try #require(found.texts.first)
        // 25 bytes each, 8 of JSON and 3 of the ellipsis.
        #expect(payload == "{\"a\":\"\(String(repeating: "👨‍👩‍👧‍👦", count: 163))…\"}")
    }
}
