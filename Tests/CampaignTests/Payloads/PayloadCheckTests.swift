import APNs
import Campaign
import Testing

@Suite struct PayloadCheckTests {
    func problem(_ text: String) -> PayloadCheck.Problem? {
        let octets = Array(text.utf8)
        return PayloadCheck.syntaxProblem(octets.span.bytes)
    }

    func place(_ text: String) -> [Int?] {
        problem(text).map { [$0.line, $0.column] } ?? []
    }

    @Test func acceptsObjects() {
        #expect(problem("{ \"aps\" : { \"alert\" : \"Hello\" } }") == nil)
        #expect(problem("{}\n") == nil)
        #expect(
            problem("{\"aps\":{\"alert\":\"{{name|friend}}\",\"badge\":\"{{badge:int}}\"}}") == nil)
    }

    @Test func namesLineAndColumn() {
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
                == "p.json, line 1, column 8: \(APNsError.Code.unexpectedCharacter.rawValue)")
    }

    @Test func knowsTheLimits() {
        #expect(PayloadCheck.sizeProblem(count: 4_096, pushType: .alert) == nil)
        #expect(PayloadCheck.sizeProblem(count: 4_097, pushType: .alert) != nil)
        #expect(PayloadCheck.sizeProblem(count: 5_120, pushType: .voip) == nil)
        #expect(PayloadCheck.sizeProblem(count: 5_121, pushType: .voip) != nil)
    }

    @Test func takesBlanksOut() {
        let text = "{ \"a b\" :\t[ 1.50 , \"x \\\" y\\\\\" ]\r\n}\n"
        let octets = Array(text.utf8)
        let minified = PayloadMinifier.minify(octets.span.bytes)
        #expect(
            String(decoding: minified, as: UTF8.self) == "{\"a b\":[1.50,\"x \\\" y\\\\\"]}")
    }
}
