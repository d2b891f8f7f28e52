import BroadsideAPNs
import BroadsideTestSupport
import Testing

@testable import BroadsidePrimitives

@Suite struct JSONTokenizerTests {
    /// The kinds of all tokens, or the error.
    func kinds(_ bytes: [UInt8]) -> Result<[JSONTokenizer.Token.Kind], JSONError> {
        var tokenizer = JSONTokenizer()
        var kinds: [JSONTokenizer.Token.Kind] = []
        do throws(JSONError) {
            while let token = try tokenizer.next(in: bytes.span.bytes) { kinds.append(token.kind) }
            return .success(kinds)
        } catch {
            return .failure(error)
        }
    }

    func failure(_ text: String) -> JSONError? {
        if case .failure(let error) = kinds(Array(text.utf8)) { return error }
        return nil
    }

    @Test func `Each kind of JSON token is read`() {
        let text = #" {"a" : [1, -0.5e+3, "x\"\u00e9", true,false , null], "b":{}, "c":[] } "#
        #expect(
            kinds(Array(text.utf8))
                == .success([
                    .objectStart, .key, .arrayStart, .number, .number, .string, .true_, .false_,
                    .null, .arrayEnd, .key, .objectStart, .objectEnd, .key, .arrayStart, .arrayEnd,
                    .objectEnd,
                ]))
        #expect(kinds(Array("7".utf8)) == .success([.number]))
    }

    @Test func `A syntax error has the offset of its first bad byte`() {
        #expect(failure("") == JSONError(.unexpectedEnd, at: 0))
        #expect(failure("{") == JSONError(.unexpectedEnd, at: 1))
        #expect(failure("{\"a\":1,}") == JSONError(.unexpectedCharacter, at: 7))
        #expect(failure("{\"a\" 1}") == JSONError(.unexpectedCharacter, at: 5))
        #expect(failure("[1,]") == JSONError(.unexpectedCharacter, at: 3))
        #expect(failure("[1}") == JSONError(.unexpectedCharacter, at: 2))
        #expect(failure("{} x") == JSONError(.trailingText, at: 3))
        #expect(failure("{a:1}") == JSONError(.unexpectedCharacter, at: 1))
        #expect(failure("[01]") == JSONError(.badNumber, at: 2))
        #expect(failure("[1.]") == JSONError(.badNumber, at: 3))
        #expect(failure("[-]") == JSONError(.badNumber, at: 2))
        #expect(failure("[tru]") == JSONError(.unexpectedCharacter, at: 4))
        #expect(failure("\"a\nb\"") == JSONError(.controlCharacter, at: 2))
        #expect(failure("\"\\x\"") == JSONError(.badEscape, at: 1))
        #expect(failure("\"\\u12g4\"") == JSONError(.badEscape, at: 1))
        #expect(failure("\u{feff}{}") == JSONError(.unexpectedCharacter, at: 0))
    }

    @Test func `UTF-8 sequences are accepted exactly if they are well-formed`() {
        for good in ["é", "€", "😀", "\u{10ffff}", "\u{d7ff}\u{e000}"] {
            #expect(failure("\"\(good)\"") == nil)
        }
        for bad: [UInt8] in [
            [0x80], [0xc0, 0x80], [0xc1, 0xbf], [0xe0, 0x80, 0x80], [0xed, 0xa0, 0x80],
            [0xf0, 0x80, 0x80, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xf5, 0x80, 0x80, 0x80], [0xc3],
            [0xe2, 0x82],
        ] {
            #expect(kinds([0x22] + bad + [0x22]) == .failure(JSONError(.badUTF8, at: 1)))
        }
    }

    @Test func `Nesting deeper than the limit fails`() {
        let deepest = JSONTokenizer.maximumDepth
        let text = String(repeating: "[", count: deepest)
        #expect(failure(text + String(repeating: "]", count: deepest)) == nil)
        #expect(failure(text + "[") == JSONError(.tooDeep, at: deepest))
    }

    /// Random bytes and mutilated JSON must end in a value or an error inside the text.
    @Test(arguments: 0..<10 as Range<UInt64>)
    func `Random and damaged JSON ends in a value or an error inside the text`(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        let sample = Array(#"{"aps":{"alert":"é\n","badge":1.5e3},"x":[true,null,"\u0041"]}"#.utf8)
        for _ in 0..<1_000 {
            var bytes = sample
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                let place = Int.random(in: 0..<bytes.count, using: &random)
                switch Int.random(in: 0...2, using: &random) {
                case 0: bytes[place] = UInt8.random(in: 0...255, using: &random)
                case 1: bytes.remove(at: place)
                default: bytes.insert(bytes.randomElement(using: &random)!, at: place)
                }
            }
            if case .failure(let error) = kinds(bytes) {
                #expect(error.offset >= 0 && error.offset <= bytes.count)
            }
            _ = ReasonBody.parse(bytes.span.bytes)
        }
    }
}
