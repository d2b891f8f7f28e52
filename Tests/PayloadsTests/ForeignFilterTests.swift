import BroadsideAPNs
import Testing

@testable import BroadsidePayloads

/// Defaults that are filters of Liquid, Jinja and other languages. They would be sent as text.
@Suite struct ForeignFilterTests {
    private func findings(_ text: String, isFilledIn: Bool = false) -> [PayloadLint.Finding] {
        let bytes = Array(#"{"aps":{"alert":"Hi \#(text)"}}"#.utf8)
        return PayloadLint.findings(bytes.span.bytes, pushType: .alert, isFilledIn: isFilledIn)
    }

    @Test(
        arguments: [
            ("{{x|default:'friend'}}", "{{x|friend}}"),
            ("{{ x | default: 'friend' }}", "{{x|friend}}"),
            (#"{{x|default(\"friend\")}}"#, "{{x|friend}}"),
            (#"{{x | default: \"y\"}}"#, "{{x|y}}"), ("{{x|default ‘you’}}", "{{x|you}}"),
            ("{{x|default: '', allow_false: true}}", "{{x|}}"),
            ("{{x:fit|default: 'y'}}", "{{x:fit|y}}"), ("{{x|default: nickname}}", "{{x|friend}}"),
            ("{{x|default('y'}}", "{{x|y}}"), ("{{x|default:'y}}", "{{x|friend}}"),
            ("{{x | strip | default: 'y'}}", "{{x|y}}"),
            ("{{x|friend | upcase}}", "{{x|friend}}"),
            ("{{x|upcase}}", "write {{x}}, or {{x|friend}}"),
            ("{{x|downcase}}", "the filter downcase"), ("{{x | capitalize }}", "capitalize"),
            ("{{x|escape}}", "{{x}}"), ("{{x|strip}}", "{{x}}"), ("{{x|trim}}", "{{x}}"),
            ("{{x|strip_html}}", "{{x}}"), ("{{x|truncate: 20}}", "truncate: 20"),
            ("{{x|truncate(20)}}", "truncate(20)"), ("{{x|date: '%d.%m.'}}", "date: '%d.%m.'"),
            ("{{x|title()}}", "title()"),
        ])
    func `A filter as a default is an error that shows the right form`(
        text: String, says: String
    ) {
        let found = findings(text)
        #expect(found.count == 1 && found[0].isError, "\(found)")
        #expect(found.first?.problem.message.contains(says) == true, "\(found)")
        #expect(found.first?.problem.column == 21)
    }

    @Test(arguments: ["title", " title ", "upper", "lower", "safe"])
    func `A filter that could be a word of a text is a warning`(word: String) {
        let found = findings("{{x|\(word)}}")
        #expect(found.count == 1 && !found[0].isError, "\(found)")
        #expect(found.first?.problem.message.contains("write {{x}} if a filter") == true)
    }

    @Test(arguments: [
        ("{{x|'friend'}}", "with its quotes: write {{x|friend}}"),
        (#"{{x|\"friend\"}}"#, "with its quotes"), (#"{{x | \"friend\"}}"#, "with its quotes"),
        ("{{x|''}}", "with its quotes"), ("{{x:fit|'y'}}", "write {{x:fit|friend}}"),
        ("{{x||friend}}", "with a |: write {{x|friend}}"), ("{{x||'friend'}}", "with a |"),
        ("{{x || friend}}", "with a |"), ("{{x | y}}", "with the blanks around it"),
    ])
    func `A default with quotes or a second bar is a warning`(text: String, says: String) {
        let found = findings(text)
        #expect(found.count == 1 && !found[0].isError, "\(found)")
        #expect(found.first?.problem.message.contains(says) == true, "\(found)")
    }

    @Test(arguments: ["%@", "%s", "%d", "%1$@", "%2$s"])
    func `A placeholder of a format string in a shown text is a warning`(format: String) {
        for text in ["\(format)", "Hi \(format), bye", "\(format)!"] {
            let found = findings(text)
            #expect(found.count == 1 && !found[0].isError, "\(found)")
            #expect(
                found.first?.problem.message.contains("devices show \(format) as it is") == true)
        }
    }

    @Test(arguments: [
        "50% discount", "50%discount", "20%sale", "100%", "100%s", "%%s", "%sale", "%dx", "%5",
        "% s",
        "%1$", "%", "a%20b", "%c3%bc",
    ])
    func `A percent sign in a text is not a placeholder`(text: String) {
        #expect(findings(text) == [])
    }

    @Test func `The app's own texts may have placeholders of format strings`() {
        for payload in [
            #"{"aps":{"alert":{"loc-key":"k","loc-args":["a"],"body":"%@"}}}"#,
            #"{"aps":{"alert":"Hi"},"format":"%s"}"#,
        ] {
            let bytes = Array(payload.utf8)
            #expect(PayloadLint.findings(bytes.span.bytes, pushType: .alert) == [])
        }
    }

    @Test(arguments: [
        "{{x|friend}}", "{{x|default}}", "{{x|'t is you}}", "{{x|“you”}}", "{{x|'}}",
        "{{x|default (see below)}}", "{{x|default text}}",
        "{{x|Upcase}}", "{{x|escape room}}", "{{x|date: to be announced}}", "{{x|first}}",
        "{{x|your title: 'Dr'}}", "{{x|a|b}}", "{{x||}}", "{{x|}}", "{{x|title|name}}",
        "{{{{x|upcase}}",
    ])
    func `A default that is a text is no filter`(text: String) {
        #expect(findings(text) == [])
    }

    @Test func `A filter in a row's own text is neither an error nor a warning`() {
        #expect(findings("{{x|upcase}} {{y | z }}", isFilledIn: true) == [])
    }

    @Test func `A long filter is shortened in its message`() throws {
        let long = String(repeating: "y", count: 10_000)
        for text in ["{{x|default:'\(long)'}}", "{{x|truncate:\(long)}}"] {
            let found = try #require(findings(text).first)
            #expect(found.isError && found.problem.message.utf8.count < 250)
            #expect(found.problem.message.contains("{{x|friend}}"))
        }
    }
}
