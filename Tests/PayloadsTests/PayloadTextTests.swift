import BroadsideAPNs
import Testing

@testable import BroadsidePayloads

/// What escapes in a payload's texts come to.
@Suite struct PayloadTextTests {
    private func findings(_ payload: String) -> [PayloadLint.Finding] {
        let bytes = Array(payload.utf8)
        return PayloadLint.findings(bytes.span.bytes, pushType: .alert)
    }

    private func payload(_ text: String) -> String { #"{"aps":{"alert":"\#(text)"}}"# }

    @Test(arguments: [#"\ud83d"#, #"x\ude00"#, #"\ud83d x"#, #"\ud83d\u0041"#, #"\ude00\ud83d"#])
    func `Half of a surrogate pair is an error with its place`(text: String) throws {
        let errors = findings(payload(text)).filter(\.isError)
        #expect(errors.allSatisfy { $0.problem.message.contains("half of a character") })
        let first = try #require(errors.first)
        let place = try #require(text.firstIndex(of: "\\"))
        #expect(first.problem.line == 1)
        #expect(first.problem.column == 18 + text.distance(from: text.startIndex, to: place))
    }

    @Test func `Half of a surrogate pair is found in keys and beside aps`() {
        for text in [
            #"{"aps":{"alert":"x"},"k\ud83d":1}"#, #"{"aps":{"alert":"x"},"k":["\udc00"]}"#,
            #"{"aps":{"alert":"{{name|\ud83d}}"}}"#, #"{"aps":{"alert":"\ud83d{{name}}"}}"#,
        ] {
            #expect(findings(text).count { $0.isError } == 1, "\(text)")
        }
    }

    @Test(
        arguments: [
            (#"caf\\u00e9"#, "escaped twice"), (#"one\\ntwo"#, "no line break"),
            (#"one\\r\\ntwo"#, "no line break"), (#"caf\u00e9"#, "4 bytes larger"),
            (#"\ud83d\ude00"#, "8 bytes larger"), (#"\u003cb\u003e"#, "10 bytes larger"),
        ])
    func `Escapes that are probably a mistake are warnings`(text: String, says: String) throws {
        let found = findings(payload(text))
        #expect(found.count == 1 && found[0].isError == false, "\(found)")
        #expect(found[0].problem.message.contains(says), "\(found)")
        #expect(found[0].problem.line == 1 && found[0].problem.column ?? 0 >= 18)
    }

    @Test(
        arguments: [
            #"a\nb"#, #"é 😀"#, #"\\"#, #"C:\\\\new"#, #"\u000a\u0022\u005c\u202e\u009b"#,
            #"\\u00g9"#,
            #"\"\/\t"#, #"\\x"#,
        ])
    func `Valid escapes are no warning`(text: String) {
        #expect(findings(payload(text)).isEmpty)
    }

    @Test func `A path beside aps is not taken for a line break`() {
        #expect(findings(#"{"aps":{"alert":"x"},"path":"C:\\new"}"#).isEmpty)
    }

    @Test(
        arguments: [
            ("Tom &amp; Jerry", "&amp;"), ("It&#8217;s", "&#8217;"), ("It&#x2019;s", "&#x2019;"),
            ("a &lt; b &amp; c", "&lt;"), (#"caf\u0026eacute;"#, "&eacute;"),
            ("{{name}} &nbsp;", "&nbsp;"), ("{{name|Tom &quot; x}}", "&quot;"),
            ("&Uuml;ber", "&Uuml;"), ("a & b &gt; c", "&gt;"),
        ])
    func `An HTML entity in an alert's text is a warning`(text: String, entity: String) {
        for whole in [
            payload(text), #"{"aps":{"alert":{"title":"\#(text)"}}}"#,
            #"{"aps":{"alert":{"title":"x","body":"\#(text)"}}}"#,
        ] {
            let found = findings(whole).filter { $0.problem.message.contains("is not HTML") }
            #expect(found.count == 1 && !found[0].isError, "\(whole)")
            #expect(found.first?.problem.message.contains("devices show \(entity) as") == true)
            #expect(found.first?.problem.column ?? 0 >= 17)
        }
    }

    @Test(arguments: ["Caf\u{fffd}", #"Caf\uFFFD"#, #"\\n\ufffd"#, "{{name|\u{fffd}}}"])
    func `A character that an earlier program lost is a warning`(text: String) {
        for whole in [payload(text), #"{"aps":{"alert":"x"},"note":"\#(text)"}"#] {
            let found = findings(whole).filter { $0.problem.message.contains("U+FFFD") }
            #expect(found.count == 1 && !found[0].isError, "\(whole)")
        }
    }

    @Test func `Characters beside U+FFFD are no warning`() {
        #expect(findings(payload("！ﬁé")) == [])
        #expect(findings(payload(#"C:\\ufffx"#)) == [])
    }

    @Test(
        arguments: [
            "R&D; AT&T", "Q&As; more", "a && b;", "&;", "&#;", "&#x;", "&#12a;", "&amp",
            "fish &chips;", "&",
        ])
    func `An ampersand alone is no HTML entity`(text: String) {
        #expect(findings(payload(text)) == [])
    }

    @Test func `An HTML entity outside of the alert's texts is no warning`() {
        #expect(
            findings(#"{"aps":{"alert":"x","thread-id":"a&amp;b"},"html":"a &amp; b"}"#) == [])
    }
}
