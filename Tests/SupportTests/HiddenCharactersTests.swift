import BroadsideSupport
import Testing

/// Characters of values that no one sees.
@Suite struct HiddenCharactersTests {
    private func trimmed(_ text: String) -> String {
        let bytes = Array(text.utf8)
        return String(
            decoding: [UInt8](HiddenCharacters.trimmed(bytes.rawSpan)), as: UTF8.self)
    }

    @Test(arguments: [
        ("true\u{a0}", "true"), ("\u{feff}true \u{200b} ", "true"), ("\u{a0}\u{2060}", ""),
        ("", ""),
        ("\u{2028}x\u{3000}", "x"), ("\u{202e}a\u{a0}b", "a\u{a0}b"), ("x\u{85}", "x"),
        ("\u{61c}x\u{ad}", "x"), ("\u{1680}x\u{180e}", "x"), ("\u{202f}x\u{205f}", "x"),
        // The last byte of these is also the last one of a blank.
        ("à", "à"), ("Ġ", "Ġ"), ("京", "京"), ("â", "â"),
    ])
    func `Blanks and characters without a width are removed at both ends`(
        text: String, expected: String
    ) {
        #expect(Array(trimmed(text).utf8) == Array(expected.utf8))
        #expect(HiddenCharacters.areAll(of: Array(text.utf8).rawSpan) == expected.isEmpty)
    }

    @Test func `Bytes that are not UTF-8 are kept`() {
        for bytes: [UInt8] in [[0xa0], [0x74, 0xa0], [0xe2, 0x80], [0xc2], [0x80, 0xbf]] {
            #expect([UInt8](HiddenCharacters.trimmed(bytes.rawSpan)) == bytes)
            let isHidden = HiddenCharacters.areAll(of: bytes.rawSpan)
            #expect(!isHidden)
        }
    }

    @Test(arguments: [
        ("Zu\u{308}rich", true), ("New\u{a0}York", true), ("\u{1112}\u{1161}", true),
        ("カ\u{3099}", true), ("❤\u{fe0f}", true), ("Zürich", false), ("Hà Nội", false),
        ("東京タワー", false), ("한국", false), ("a–b", false), ("plain", false), ("", false),
    ])
    func `Only values with hidden characters or accents of their own are examined`(
        text: String, isExamined: Bool
    ) {
        #expect(HiddenCharacters.mayBe(in: Array(text.utf8).rawSpan) == isExamined)
    }

    @Test func `Texts that look alike are equal as a reader sees them`() {
        func visible(_ text: String) -> String {
            HiddenCharacters.visibleText(Array(text.utf8).rawSpan)
        }
        #expect(visible("Zu\u{308}rich") == visible("Zürich"))
        #expect(visible("New\u{a0}Yo\u{200b}rk") == "New York")
        #expect(visible("❤\u{fe0f}") == visible("❤") && visible("ab") != visible("a b"))
    }
}
