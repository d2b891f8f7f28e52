import BroadsideSupport
import Testing

@testable import BroadsidePayloads

/// Placeholders that another template language would fill in, and that are sent as they are.
@Suite struct ForeignPlaceholderTests {
    @Test(arguments: [
        ("Hi {name}", "{name}", "name"), ("Hi ${ NAME }!", "${ NAME }", "name"),
        ("#{name}", "#{name}", "name"), ("%name%", "%name%", "name"),
        ("100% of %match%", "%match%", "match"), ("[[name]]", "[[name]]", "name"),
        ("<name>", "<name>", "name"), ("{other} {name}", "{name}", "name"),
        ("{\"a\":{name}", "{name}", "name"), ("{user.name}", "{user.name}", "user.name"),
        ("$(name)", "$(name)", "name"), ("*|NAME|*", "*|NAME|*", "name"),
        ("%%name%%", "%%name%%", "name"), ("Hi %%Name%%!", "%%Name%%", "name"),
        ("<%= name %>", "<%= name %>", "name"), ("<%=name%>", "<%=name%>", "name"),
        ("{% if name %}Hi{% endif %}", "{% if name %}", "name"),
        ("{% else %}{%- if x == name -%}", "{%- if x == name -%}", "name"),
        ("{% if user.name != '' %}", "{% if user.name != '' %}", "user.name"),
        ("<% @match.id %>", "<% @match.id %>", "match"), ("{%name%}", "{%name%}", "name"),
        ("{% if names %}", "", ""), ("{% if name", "", ""), ("<%= other %>", "", ""),
        ("*|nam|*", "", ""), ("*|name|", "", ""), ("$(nam)", "", ""), ("(name)", "", ""),
        ("%%name", "", ""), ("100%% name", "", ""),
        ("{{name}}", "", ""), ("{{{{name}}", "", ""), ("{nam}", "", ""), ("{names}", "", ""),
        ("Hi {name|friend}", "{name|friend}", "name"), ("{ name | you }", "{ name | you }", "name"),
        ("${name|friend}", "${name|friend}", "name"),
        ("[[name|friend]]", "[[name|friend]]", "name"),
        ("{name:int}", "{name:int}", "name"), ("{Name:bool|true}", "{Name:bool|true}", "name"),
        ("{name:fit|}", "{name:fit|}", "name"), ("{user.match}", "{user.match}", "match"),
        ("${user.name}", "${user.name}", "user.name"), ("{$name}", "{$name}", "name"),
        ("{$user.match|x}", "{$user.match|x}", "match"), ("%(name)s", "%(name)s", "name"),
        ("[name]", "[name]", "name"), ("Hi [name]!", "[name]", "name"),
        ("Hi $name!", "$name", "name"), ("\"$name\"}", "$name", "name"), ("$name", "$name", "name"),
        ("#name#", "#name#", "name"), ("{other.x|name}", "", ""), ("{name:long}", "", ""),
        ("{name.first}", "", ""), ("{name, select}", "", ""), ("{nam|name}", "", ""),
        // Texts and JSON that have such delimiters for another reason.
        ("[Name] is a heading", "", ""), ("#Name#", "", ""), ("$NAME rises", "", ""),
        ("$names", "", ""), ("US$name", "", ""), ("$$name", "", ""), ("{\"$name\":1}", "", ""),
        ("{\\\"$name\\\":1}", "", ""), ("{\"a\":[true,1]}", "", ""), ("{\"a\":[true]}", "", ""),
        ("{\"k\":\"a.name|x\"}", "", ""), ("{{{{user.match}}", "", ""), ("{{user.match}}", "", ""),
        ("{\"a\":[1]}", "", ""), ("$1", "", ""), ("#1#", "", ""), (":name", "", ""),
        ("/users/:name", "", ""), (":name:", "", ""), ("%(name)", "", ""), ("#name", "", ""),
        ("[[name]", "", ""), ("{name", "", ""), ("%name", "", ""),
        ("{}", "", ""), ("<b>", "", ""), ("name", "", ""), ("", "", ""),
    ])
    func `A placeholder is found if it names a column`(text: String, found: String, column: String)
    {
        let placeholder = ForeignPlaceholder.first(
            in: Array(text.utf8), columns: ["token", "name", "match", "user.name", "", "1", "true"])
        #expect(placeholder?.text ?? "" == found)
        #expect(placeholder?.column ?? "" == column)
    }

    @Test(arguments: [(248, true), (249, false)])
    func `The code of a tag has at most 256 bytes`(count: Int, isFound: Bool) {
        let text = "{% if name\(String(repeating: " ", count: count))%}"
        let found = ForeignPlaceholder.first(in: Array(text.utf8), columns: ["name"])
        #expect((found != nil) == isFound)
    }

    @Test(arguments: [(246, true), (247, false)])
    func `A placeholder with a default has at most 256 bytes`(count: Int, isFound: Bool) {
        let text = "{ name|abcd\(String(repeating: "x", count: count))}"
        let found = ForeignPlaceholder.first(in: Array(text.utf8), columns: ["name"])
        #expect((found != nil) == isFound)
    }

    @Test func `A payload's own placeholders are not foreign, wherever they stand`() throws {
        let text = #"{"aps":{"alert":"Hi {{name}}, {name} and {{{{name}}"}}"#
        let template = try PayloadTemplate(Array(text.utf8).rawSpan)
        #expect(template.foreignPlaceholder(columns: ["name"])?.text == "{name}")
        #expect(template.foreignPlaceholder(columns: ["match"]) == nil)
        let fine = #"{"aps":{"alert":"Hi {{name}} and {{{{name}}"}}"#
        #expect(
            try PayloadTemplate(Array(fine.utf8).rawSpan).foreignPlaceholder(columns: ["name"])
                == nil)
    }
}
