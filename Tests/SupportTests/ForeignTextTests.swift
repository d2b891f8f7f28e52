import BroadsideSupport
import Testing

@Suite struct ForeignTextTests {
    @Test(arguments: [
        ("", ""), ("Gruß an 日本 👩‍👩‍👧", "Gruß an 日本 👩‍👩‍👧"), ("a\nb", "a\\nb"), ("a\r\nb", "a\\r\\nb"),
        ("\t", "\\t"), ("\u{1b}[2J", "\\u{1b}[2J"), ("\u{0}", "\\u{0}"), ("\u{7f}", "\\u{7f}"),
        ("\u{9b}31m", "\\u{9b}31m"), ("a\u{85}b", "a\\u{85}b"), ("\u{2028}", "\\u{2028}"),
        ("\u{2029}", "\\u{2029}"), ("\u{202e}gpj.exe", "\\u{202e}gpj.exe"),
        ("\u{2066}x\u{2069}", "\\u{2066}x\\u{2069}"), ("\u{200f}", "\\u{200f}"),
        ("\u{61c}", "\\u{61c}"), ("C:\\new", "C:\\new"), ("\u{feff}a", "\u{feff}a"),
        // In an alert, these are part of the text.
        ("Bonjour\u{a0}!", "Bonjour\u{a0}!"), ("می\u{200c}خواهم", "می\u{200c}خواهم"),
        // A control that a letter's cluster would hide.
        ("e\u{301}\u{1b}c", "e\u{301}\\u{1b}c"),
    ])
    func `Escaped text has only visible characters and stays the same when escaped again`(
        text: String, expected: String
    ) {
        #expect(ForeignText.escaped(text) == expected)
        #expect(ForeignText.escaped(expected) == expected)
        #expect(ForeignText.escaped(text, limit: .max) == expected)
    }

    @Test func `Text is split at a separator although a combining mark follows it`() {
        let name = "--name=\u{301}a=b"
        #expect(name.parts(atFirst: "=").map { [$0, $1] } == ["--name", "\u{301}a=b"])
        #expect(name.parts(atLast: "=").map { [$0, $1] } == ["--name=\u{301}a", "b"])
        #expect("lists/\u{301}x".parts(atLast: "/").map { [$0, $1] } == ["lists", "\u{301}x"])
        #expect("lists".parts(atLast: "/") == nil && "".parts(atFirst: "/") == nil)
        #expect("/".parts(atFirst: "/").map { [$0, $1] } == ["", ""])
        #expect("it's'\u{301}".pieces(at: "'") == ["it", "s", "\u{301}"])
        #expect("''".pieces(at: "'") == ["", "", ""] && "".pieces(at: "'") == [""])
        #expect("/\u{301}".starts(withBytes: "/") && !"x/".starts(withBytes: "/"))
    }

    @Test func `Every control, bidirectional control and line separator is escaped`() {
        for value in UInt32(0)...0x3000 {
            guard let scalar = Unicode.Scalar(value) else { continue }
            let properties = scalar.properties
            let isSeparator: Bool =
                switch properties.generalCategory {
                case .control, .lineSeparator, .paragraphSeparator: true
                default: false
                }
            // UAX 44: Bidi_Control.
            let isInvisible = isSeparator || properties.isBidiControl
            #expect(
                (ForeignText.escaped(String(scalar)) != String(scalar)) == isInvisible,
                "\(String(value, radix: 16))")
        }
    }

    @Test(arguments: [
        ("token", "token"), ("first name", "first name"), ("naïve 日本", "naïve 日本"),
        ("\u{a0}token", "\\u{a0}token"), ("tok\u{200b}en", "tok\\u{200b}en"),
        ("token\u{200d}", "token\\u{200d}"), ("\u{2060}\u{feff}x", "\\u{2060}\\u{feff}x"),
        ("a\nb", "a\\nb"), ("\\u{a0}", "\\u{a0}"),
    ])
    func `Joiners and unusual blanks are escaped in a name`(name: String, expected: String) {
        #expect(ForeignText.escapedName(name) == expected)
    }

    @Test func `escapedLines keeps line breaks and escapes other control characters`() {
        #expect(ForeignText.escapedLines("a\n\u{1b}b\r\nc") == "a\n\\u{1b}b\\r\nc")
    }

    @Test func `A limit of escaped text counts scalars, not characters`() {
        let stacked = "e" + String(repeating: "\u{301}", count: 1_000)
        #expect(ForeignText.escaped(stacked, limit: 10).unicodeScalars.count == 10)
    }
}
