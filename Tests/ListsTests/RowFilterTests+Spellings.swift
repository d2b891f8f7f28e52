import BroadsideRows
import BroadsideSupport
import Testing

@testable import BroadsideLists

/// Values that differ from a condition's text only in their spelling.
extension RowFilterTests {
    @Test(arguments: [
        ("x != true", ["true", "TRUE", "True", "1", "yes", "t", "y", "on", "no", "", "maybe"], 7),
        ("x != TRUE", ["true", "\" true \"", "false"], 2), ("x != yes", ["YES", "no", "1"], 2),
        ("x != 1", ["1", "10", "01", "+1", "true", "no"], 1), ("x != 1", ["1", "t", "0"], 1),
        ("x != 0", ["false", "n", "7"], 1), ("x != t", ["1", "y", "f", ""], 2),
        ("x != 1", ["1", "1.0", "0.0", "", "2.5"], 1), ("x != true", ["1", "1.0", "0.0", ""], 2),
        ("x != 1.0", ["1.0", "1", "7"], 1), ("x != 0", ["0.0", "10", "0.5", "1.0"], 1),
        ("x != t", ["t", "1.0", "m"], 0), ("x != t", ["t", "1.0"], 1), ("x = 1", ["1", "1.0"], 0),
        ("x != f", ["f", "m", "n"], 0), ("x != f", ["F", "m", "n"], 1), ("x != n", ["no", "z"], 1),
        ("x != true,TRUE", ["TRUE", "true", "tRUE"], 1), ("x != off,de", ["OFF", "DE", "f"], 2),
        ("x != false", ["true", "TRUE", "1", "never"], 0), ("x != de", ["DE", "1"], 0),
        ("x = true", ["true", "TRUE", "1"], 0), ("x != \"\"", ["1"], 0),
    ])
    func `Rows that != keeps although they spell its boolean in another way are an error`(
        condition: String, values: [String], count: Int
    ) {
        let problem = refusal(condition, values: values)
        #expect(problem.isEmpty == (count == 0), "\(problem)")
        let rows = count == 1 ? "1 row has" : "\(count) rows have"
        #expect(count == 0 || problem.contains("': \(rows) another spelling"), "\(problem)")
    }

    @Test func `The error about another spelling of a boolean names line, value and remedy`() throws
    {
        let values = ["true", "no", "TRUE", "1", "TRUE"]
        let problem = refusal("x != true", values: values)
        #expect(
            problem.hasSuffix(
                "'x != true': 3 rows have another spelling of a value of this condition, the first on "
                    + "line 4 ('TRUE' instead of 'true'), and would get this campaign, because values "
                    + "are compared byte for byte: to exclude them, add --where 'x != TRUE,1'; to keep "
                    + "them, name the values that you want with ="), "\(problem)")
        // The list of a campaign that has begun is not refused.
        #expect(
            try warnings("x != true", values: values) == [
                "3 rows have another spelling of a value of this condition, the first on line 4 "
                    + "('TRUE' instead of 'true'): values are compared byte for byte, so this "
                    + "condition keeps such rows. To exclude them, name each spelling"
            ])
    }

    @Test func `Other spellings count only in rows whose outcome they decide`() throws {
        let text = "token,x,y\nab,true,a\nab,TRUE,b\nab,1,a\n"
        func lines(_ conditions: String...) throws -> [String] {
            let filter = try RowFilter(conditions)
            let layout = try RowLayout(
                format: .csv, names: ["token"] + filter.columns, header: Array("token,x,y".utf8))
            let list = TokenList(lines: Array(text.utf8), layout: layout)
            return try finish(filter, list, layout, mayRefuse: true)
        }
        #expect(try lines("x != true", "x != 1", "y = a,c").count == 1, "c is absent")
        #expect(try lines("x != true", "x != TRUE,1") == [])
        // The conditions name the values that are wanted.
        #expect(try lines("x != true", "x = TRUE,1") == [])
        #expect {
            try lines("x != true", "x != TRUE")
        } throws: {
            ($0 as? BroadsideError)?.exitCode == 2 && "\($0)".contains("1 row has another spelling")
        }
        // The list of one part of a campaign is refused, too.
        let filter = try RowFilter(["x != true"])
        let layout = try RowLayout(
            format: .csv, names: ["token", "x"], header: Array("token,x,y".utf8))
        let list = TokenList(lines: Array(text.utf8), layout: layout)
        #expect(throws: BroadsideError.self) {
            try finish(filter, list, layout, mayRefuse: false, isBegun: false)
        }
        #expect(try lines("x = true", "y = a").count == 1)
        #expect(try lines("x = true,1", "y = a") == [])
    }

    @Test func `A value in another letter case is a warning`() throws {
        let start = "another letter case of a value of this condition, "
        #expect(
            try warnings("x != de,FR", values: ["de", "FR", "DE", "De", "US"], mayRefuse: true) == [
                "2 rows have \(start)the first on line 4 ('DE' instead of 'de'): values are compared "
                    + "byte for byte, so this condition keeps such rows. To exclude them, name each "
                    + "spelling"
            ])
        #expect(
            try warnings("x = de", values: ["de", "DE"], mayRefuse: true) == [
                "1 row has \(start)on line 3 ('DE' instead of 'de'): values are compared byte for "
                    + "byte, so this condition excludes such rows. To send them, name each spelling"
            ])
        let yes = try warnings("x = true", values: ["true", "yes", "TRUE"], mayRefuse: true)
        #expect(yes.count == 1 && yes[0].hasPrefix("2 rows have another spelling"), "\(yes)")
        #expect(try warnings("x != de,FR", values: ["de", "FR", "US"], mayRefuse: true) == [])
        let secret = String(repeating: "ab", count: 32)
        let told = try warnings(
            "x != \(secret.uppercased())", values: [secret], mayRefuse: true)
        #expect(told.count == 1 && told[0].contains("('abababab…' instead of 'ABABABAB…')"))
    }

    @Test func `Invisible characters around a value are ignored, in the list and the condition`()
        throws
    {
        let values = ["true\u{a0}", "\u{feff}true", "true \u{200b} ", "true", "false", "\u{3000}"]
        for condition in ["x != true", "x != true\u{a0}", "x != \"\u{200b}true\""] {
            #expect(try warnings(condition, values: values, mayRefuse: true) == [])
            let text = "token,x\n" + values.map { "ab,\($0)\n" }.joined()
            #expect(try places([condition], list: text, format: .csv) == [4, 5])
        }
        #expect(try RowFilter(["x = true\u{a0}"]).canonicalTexts == ["x = true"])
    }

    @Test(arguments: ["\u{a0}plan", "plan\u{200b}", "\u{feff} plan"])
    func `A column is named with the invisible characters that its name in the list has`(
        name: String
    ) throws {
        let text = "token,\(name)\nab,pro\ncd,free\n"
        for condition in ["\(name)=pro", " \(name) = pro", "\"\(name)\" = pro\u{a0}"] {
            #expect(try RowFilter([condition]).columns == [name])
            #expect(try places([condition], list: text, format: .csv) == [0])
        }
    }

    @Test(arguments: [
        ("x != unsubscribed", "un\u{200b}subscribed", "'un\\u{200b}subscribed' instead of 'unsub"),
        ("x != Zürich", "Zu\u{308}rich", "'Zu\\u{308}rich' instead of 'Zürich'"),
        ("x != Zu\u{308}rich", "Zürich", "'Zürich' instead of 'Zu\\u{308}rich'"),
        ("x != tr\u{200b}ue", "true", "'true' instead of 'tr\\u{200b}ue'"),
        ("x != New York", "New\u{a0}York", "'New\\u{a0}York' instead of 'New York'"),
    ])
    func `Rows that != keeps although their value looks like an excluded one are an error`(
        condition: String, value: String, text: String
    ) throws {
        let problem = refusal(condition, values: ["other", value])
        #expect(problem.contains("1 row has a value with invisible characters"), "\(problem)")
        #expect(problem.contains(text) && problem.contains("on line 3"), "\(problem)")
        // A campaign that has begun, and a condition with =, get a warning.
        let keeps = try warnings(condition, values: ["other", value])
        #expect(keeps.first?.contains("keeps such rows") == true, "\(keeps)")
        let wanted = condition.replacing("!=", with: "=")
        let excludes = try warnings(wanted, values: ["other", value])
        #expect(excludes.first?.contains("excludes such rows") == true, "\(excludes)")
    }

    @Test(arguments: [
        ("x != 北京", ["上海", "東京タワー", "한국"]), ("x != Zürich", ["Züri", "Genève", "Hà Nội"]),
        ("x != a-b", ["a–b", "ab", "\u{1f469}\u{200d}\u{1f680}"]),
        ("x != de,d\u{200b}e", ["d\u{200b}e", "de", "fr"]),
    ])
    func `Values that only resemble an excluded one are no error`(
        condition: String, values: [String]
    ) {
        let problem = refusal(condition, values: values)
        #expect(problem.isEmpty, "\(problem)")
    }

    @Test func `Messages show the invisible characters of values`() {
        let problem = refusal("x = fr", values: ["d\u{200b}e"])
        #expect(problem.contains("the column has d\\u{200b}e"), "\(problem)")
    }
}
