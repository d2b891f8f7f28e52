import Testing

@testable import BroadsidePayloads

/// The texts of a list that stand for numbers and booleans.
@Suite struct TypedValueTests {
    @Test(
        arguments: [
            ("0", 0), ("7", 7), ("-7", -7), ("+7", 7), ("  42 ", 42), ("007", 7), ("-0", 0),
            ("9223372036854775807", .max), ("-9223372036854775808", .min),
            ("9223372036854775808", nil), ("-9223372036854775809", nil),
            ("92233720368547758070", nil), ("", nil), (" ", nil), ("-", nil), ("+", nil),
            ("+-7", nil),
            ("7-", nil), ("1.0", 1), ("-3.00", -3), ("1.", nil), (".0", nil), ("1.05", nil),
            ("1.0.0", nil), ("-.0", nil), (" 9223372036854775807.0 ", .max), ("1e3", nil),
            ("1 2", nil), ("/", nil), (":", nil),
            ("0x1", nil),
            ("\t7", nil), ("７", nil),
        ] as [(String, Int64?)])
    func `A 64-bit integer is read, and no other text`(text: String, value: Int64?) {
        #expect(TypedValue.integer(Array(text.utf8).span.bytes) == value)
        let written = value.map { Array("\($0)".utf8) }
        #expect(TypedValue.written(Array(text.utf8), as: .integer) == written)
    }

    @Test(
        arguments: [
            ("1", true), ("0", false), ("true", true), ("TRUE", true), ("True", true),
            ("tRUe", true),
            ("false", false), ("FALSE", false), (" 1 ", true), (" false", false), ("2", nil),
            ("", nil),
            (" ", nil), ("01", nil), ("t", true), ("F", false), ("y", nil), ("tru", nil),
            ("truee", nil), ("fals", nil),
            ("falsee", nil), ("yes", nil), ("trve", nil), ("faLze", nil), ("1 1", nil),
        ] as [(String, Bool?)])
    func `A boolean is one of two words in any case, 1 or 0`(text: String, value: Bool?) {
        #expect(TypedValue.boolean(Array(text.utf8).span.bytes) == value)
        let written = value.map { Array($0 ? "true".utf8 : "false".utf8) }
        #expect(TypedValue.written(Array(text.utf8), as: .boolean) == written)
        #expect(TypedValue.written(Array(text.utf8), as: .text) == Array(text.utf8))
    }

    @Test(
        arguments: [
            ("plain é", "plain é"), (#"a\u00e9b\ud83c\udf89c"#, "aéb🎉c"), (#"\u0041\u0042"#, "AB"),
            (#"x\u0041\n\u0042y"#, "xA\nBy"), (#"\"\\\/\b\f\n\r\t"#, "\"\\/\u{8}\u{c}\n\r\t"),
            (#"\ud800x"#, "\u{fffd}x"), (#"\udf89\u0041"#, "\u{fffd}A"), (#"é\u0041é"#, "éAé"),
            ("", ""), (#"\u0000"#, "\u{0}"),
        ])
    func `A JSON string is read without its escapes`(inside: String, text: String) {
        #expect(JSONText.decoded(Array(inside.utf8)) == text)
    }
}
