import Testing

@testable import BroadsideAPNs
@testable import BroadsidePayloads
@testable import BroadsidePrimitives

@Suite struct PayloadCheckTests {
    func problem(_ text: String) -> PayloadCheck.Problem? {
        let bytes = Array(text.utf8)
        return PayloadCheck.syntaxProblem(bytes.span.bytes)
    }

    func place(_ text: String) -> [Int?] {
        problem(text).map { [$0.line, $0.column] } ?? []
    }

    @Test func `A JSON object is accepted, with placeholders or without`() {
        #expect(problem("{ \"aps\" : { \"alert\" : \"Hello\" } }") == nil)
        #expect(problem("{}\n") == nil)
        #expect(
            problem("{\"aps\":{\"alert\":\"{{name|friend}}\",\"badge\":\"{{badge:int}}\"}}") == nil)
    }

    @Test func `A syntax error names its line and column in characters`() {
        #expect(place("{\"a\":1,}") == [1, 8])
        #expect(place("{\n  \"é€😀\": x\n}") == [2, 10])
        #expect(place("\r\n {") == [2, 3])
        #expect(place("[1]") == [1, 1])
        #expect(place("\n \"text\"") == [2, 2])
        #expect(place("\u{feff}{}") == [1, 1])
        #expect(place("{} {}") == [1, 4])
        #expect(problem("")?.line == nil)
        #expect(problem("") != nil)
        #expect(
            problem("{\"a\":1,}")?.description(file: "p.json")
                == "p.json, line 1, column 8: \(JSONError.Code.unexpectedCharacter.rawValue)")
    }

    @Test(
        arguments: [
            ("", nil, "is empty"), ("\u{feff}{}", 1, "byte-order mark"),
            ("\u{feff}", 1, "byte-order mark"), ("\u{fefe}{}", 1, "is not a JSON object"),
            ("\u{fe3f}{}", 1, "is not a JSON object"), ("\u{ebff}{}", 1, "is not a JSON object"),
            ("[1]", 1, "is not a JSON object"), (" \t\r7", 4, "is not a JSON object"),
            ("\"{}\"", 1, "is not a JSON object"), ("null", 1, "is not a JSON object"),
            ("{} {}", 4, "JSON"), ("{\"a\" 1}", 6, "JSON"), ("{\"a\":1", 7, "JSON"),
            ("{\u{201c}aps\u{201d}:{}}", 2, "typographic quote"),
            ("{\"a\": \u{201e}b\u{201c}}", 7, "typographic quote"),
            ("{\"a\":\u{2018}b\u{2019}}", 6, "typographic quote"),
            ("{\"a\":\u{2026}}", 6, "a wrong kind of quote"),
            (" ", 2, "JSON"), ("{\"é\":\u{1f389}}", 6, "JSON"),
        ] as [(String, Int?, String)])
    func `Each mistake in a payload is reported with its place`(
        text: String, column: Int?, words: String
    ) {
        let problem = problem(text)
        #expect(problem?.column == column && (problem?.line == nil) == (column == nil))
        #expect(
            problem?.message.contains(words) == true || words == "JSON", "\(problem as Any)")
    }

    @Test func `Filled-in values add to the size of a template's constant part`() throws {
        func problem(_ filler: Int, _ text: String) throws -> PayloadCheck.Problem? {
            let bytes = Array((text + String(repeating: "x", count: filler) + "\"}").utf8)
            let template = try PayloadTemplate(bytes.span.bytes)
            return PayloadCheck.sizeProblem(template, pushType: .alert)
        }
        let (personal, constant) = ("{\"a\":\"{{n}}", "{\"a\":\"")
        for (text, hint) in [(personal, true), (constant, false)] {
            #expect(try problem(4_088, text) == nil)
            let found = try problem(4_089, text)
            #expect(found?.message.hasPrefix("has 4,097 bytes") == true)
            #expect(
                found?.message.contains(
                    " before its columns are filled in, but push type alert allows 4,096:")
                    == hint)
            #expect(found?.line == nil && found?.column == nil)
            #expect(found?.description(file: "p.json").hasPrefix("p.json: has 4,097") == true)
        }
    }

    @Test
    func `An alert of more than 4,096 bytes and a voip payload of more than 5,120 are too large`() {
        #expect(PayloadCheck.sizeProblem(count: 4_096, pushType: .alert) == nil)
        #expect(PayloadCheck.sizeProblem(count: 4_097, pushType: .alert) != nil)
        #expect(PayloadCheck.sizeProblem(count: 5_120, pushType: .voip) == nil)
        #expect(PayloadCheck.sizeProblem(count: 5_121, pushType: .voip) != nil)
    }

    @Test func `Minifying removes the blanks between tokens and none within strings`() {
        let text = "{ \"a b\" :\t[ 1.50 , \"x \\\" y\\\\\" ]\r\n}\n"
        let bytes = Array(text.utf8)
        let minified = PayloadMinifier.minify(bytes.span.bytes)
        #expect(
            String(decoding: minified, as: UTF8.self) == "{\"a b\":[1.50,\"x \\\" y\\\\\"]}")
    }
}
