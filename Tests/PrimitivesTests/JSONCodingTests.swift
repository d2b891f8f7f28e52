import BroadsidePrimitives
import Foundation
import Testing

/// Texts and values of `JSONCoding`, held against Foundation's.
struct JSONCodingTests {
    private enum Kind: String, Codable, CaseIterable { case first, second }

    private struct Leaf: Codable, Equatable {
        var double: Double
        var float: Float
        var text: String?
        var kind: Kind
        var numbers: [Int?]
        var empty: [String: Int] = [:]
    }

    private struct Tree: Codable, Equatable {
        var large: UInt64
        var small: Int8
        var isSet: Bool
        var labels: [String: String]
        var leaves: [Leaf]
        var byNumber: [Int: String]
        var pairs: [UInt32: [Double]]
        var leaf: Leaf?
        var none: String?
    }

    private static let characters: [Character] = [
        "a", "Z", "/", "\"", "\\", "\n", "\r", "\t", "\u{8}", "\u{c}", "\u{1}", "\u{1f}", "\u{7f}",
        "é", "e\u{301}", "\u{2028}", "\u{ff21}", "😀", "ß",
    ]
    private static let doubles: [Double] = [
        0, -0.0, 1, -1, 0.5, 1e15, 1e16, 1e21, 1.5e-9, .leastNonzeroMagnitude, 123_456_789.125,
        1 / 3,
    ]

    private static func text(_ random: inout some RandomNumberGenerator) -> String {
        String(
            (0..<Int.random(in: 0...6, using: &random)).map { _ in
                characters.randomElement(using: &random)!
            })
    }

    private static func leaf(_ random: inout some RandomNumberGenerator) -> Leaf {
        let double = doubles.randomElement(using: &random)!
        return Leaf(
            double: double, float: Float(double),
            text: Bool.random(using: &random) ? text(&random) : nil,
            kind: Kind.allCases.randomElement(using: &random)!,
            numbers: (0..<Int.random(in: 0...3, using: &random)).map { $0 == 1 ? nil : $0 })
    }

    private static func tree(_ random: inout some RandomNumberGenerator) -> Tree {
        Tree(
            large: .random(in: 0 ... .max, using: &random),
            small: .random(in: -128...127, using: &random), isSet: .random(using: &random),
            labels: Dictionary(
                (0..<4).map { _ in (text(&random), text(&random)) },
                uniquingKeysWith: { first, _ in first }),
            leaves: (0..<Int.random(in: 0...3, using: &random)).map { _ in leaf(&random) },
            byNumber: [7: text(&random), 70: ""], pairs: [1: [doubles.randomElement()!]],
            leaf: Bool.random(using: &random) ? leaf(&random) : nil, none: nil)
    }

    @Test(
        arguments: [
            ([], [.withoutEscapingSlashes]), (.pretty, [.withoutEscapingSlashes, .prettyPrinted]),
            (.escapedSlashes, []), ([.pretty, .escapedSlashes], [.prettyPrinted]),
        ] as [(JSONCoding.Style, JSONEncoder.OutputFormatting)])
    func `A text is the one that Foundation writes, and is read as Foundation reads it`(
        _ style: JSONCoding.Style, _ formatting: JSONEncoder.OutputFormatting
    ) throws {
        var random = SystemRandomNumberGenerator()
        let encoder = JSONEncoder()
        encoder.outputFormatting = formatting.union(.sortedKeys)
        for _ in 0..<500 {
            let tree = Self.tree(&random)
            let expected = try encoder.encode(tree)
            let text = try JSONCoding.encode(tree, style)
            #expect(
                text == Array(expected),
                "\(String(decoding: text, as: UTF8.self)): \(String(decoding: expected, as: UTF8.self))"
            )
            #expect(try JSONCoding.decode(Tree.self, from: text) == tree)
        }
    }

    private struct Small: Codable, Equatable {
        var number: Int
        var fraction: Double?
        var text: String?
    }

    @Test(arguments: [
        #"{"number":1.0}"#, #"{"number":1e2,"fraction":null}"#, #"{"number":1,"fraction":3}"#,
        " {\"number\":-0}\n", #"{"number":1,"text":"\ud83d\ude00\u0041\/\b"}"#,
        #"{"number":1,"number":2}"#, #"{"number":9223372036854775807,"more":[{}]}"#,
        // None of these is read.
        #"{"number":1.5}"#, #"{"number":"1"}"#, #"{"number":true}"#, #"{"number":null}"#, "{}",
        "[]", "", "1", #"{"number":01}"#, #"{"number":1} 2"#, #"{"number":1,"fraction":1e999}"#,
        #"{"number":9223372036854775808}"#, #"{"number":1,"text":"\ud83d"}"#,
        "{\"number\":1,\"text\":\"\u{1}\"}",
    ])
    func `A text by others is read or refused as by Foundation`(_ text: String) {
        let read = try? JSONCoding.decode(Small.self, from: Array(text.utf8))
        let expected = try? JSONDecoder().decode(Small.self, from: Data(text.utf8))
        #expect(read == expected)
    }

    @Test func `A number that is not finite is not encoded`() {
        #expect(throws: EncodingError.self) { try JSONCoding.encode([Double.infinity]) }
    }
}
