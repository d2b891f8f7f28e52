import BroadsideRows
import BroadsideSupport
import BroadsideTestSupport
import Synchronization
import Testing

@testable import BroadsideLists

/// Which rows a filter lets through, and which conditions are none.
@Suite struct RowFilterTests {
    /// The values of `x` among which a condition on `x` leaves rows, by their places.
    private func places(
        _ conditions: String..., values: [String], format: ListFormat = .csv
    ) throws -> [Int] {
        let text = "token,x,y\n" + values.map { "ab,\($0)\n" }.joined()
        return try places(conditions, list: text, format: format)
    }

    /// The places of the rows that conditions leave in a list.
    func places(
        _ conditions: [String], list text: String, format: ListFormat
    ) throws -> [Int] {
        let filter = try RowFilter(conditions)
        let header = text.prefix { $0 != "\n" }.utf8
        let layout = try RowLayout(
            format: format, names: ["token"] + filter.columns, header: Array(header))
        let list = TokenList(lines: Array(text.utf8), layout: layout)
        var rows = try RowCursor(list)
        var pass = FilterPass(filter, layout: layout)
        var places: [Int] = []
        while let row = try rows.next() {
            if !pass.leavesOut(row, rows.reader) { places.append(Int(row.number)) }
        }
        return places
    }

    /// The warnings after a filter has read a list whose values of `x` are given, without their
    /// common beginning.
    func warnings(
        _ condition: String, values: [String], header: String = "token,x", mayRefuse: Bool = false
    ) throws -> [String] {
        let filter = try RowFilter([condition])
        let layout = try RowLayout(
            format: .csv, names: ["token"] + filter.columns.filter { $0 != "token" },
            header: Array(header.utf8))
        let text = header + "\n" + values.map { "ab,\($0)\n" }.joined()
        let list = TokenList(lines: Array(text.utf8), layout: layout)
        let lines = try finish(filter, list, layout, mayRefuse: mayRefuse)
        let start = "broadside: warning: --where '\(filter.canonicalTexts[0])': "
        return lines.map { $0.replacing(start, with: "") }
    }

    /// The lines that a filter writes after it has read a list.
    func finish(
        _ filter: RowFilter, _ list: TokenList, _ layout: RowLayout, mayRefuse: Bool,
        isBegun: Bool? = nil
    ) throws -> [String] {
        let lines = Mutex<[String]>([])
        let host = HostedRun { line in lines.withLock { $0.append(line) } }
        try HostedRun.$current.withValue(host) {
            var rows = try RowCursor(list)
            var pass = FilterPass(filter, layout: layout)
            while let row = try rows.next() { _ = pass.leavesOut(row, rows.reader) }
            try pass.finish(list, mayRefuse: mayRefuse, isBegun: isBegun ?? !mayRefuse)
        }
        return lines.withLock { $0 }
    }

    @Test func `A value of a set that no row has is a warning, with values that rows have`() throws
    {
        let answers = ["maybe", "never", " maybe "]
        #expect(
            try warnings("x != true", values: answers) == [
                "no row has the value 'true', so it excludes no row: the column has maybe, never"
            ])
        #expect(try warnings("x != maybe", values: answers) == [])
        #expect(try warnings("x != \"\"", values: answers) == [])
        #expect(try warnings("x != TRUE", values: []) == [])
        #expect(
            try warnings("x != \"u1,u2\",u*,FALSE", values: ["u1", "u2", "FALSE", "", "\u{1b}"])
                == [
                    "no row has 2 of these values, such as 'u*', so they exclude no row: the column has u1, "
                        + "u2, FALSE, an empty value and others"
                ])
        let secret = String(repeating: "ab", count: 32)
        let told = try warnings("x != 1", values: ["\(secret)", "\u{1b}[2J"])
        #expect(told.count == 1 && told[0].hasSuffix("the column has abababab…, \\u{1b}[2J"))
        #expect(
            try warnings("token != cd", values: ["1"]) == [
                "no row has the value 'cd', so it excludes no row: check the spelling"
            ])
        // A campaign that has begun can't be corrected.
        #expect(try warnings("x = FR", values: ["DE"]) == [])
        #expect(
            try warnings("x = FR,Ger", values: ["FR", "DE", "FR"]) == [
                "no row has the value 'Ger': check the spelling"
            ])
        #expect(try warnings("x = FR,DE", values: ["FR", "DE", "FR"]) == [])
        let many = (0..<2_000).map { "v\($0 % 7)" } + ["late"]
        #expect(try warnings("x != late", values: many) == [])
    }

    /// The error for which a filter refuses a list of the values of `x`; empty if there is none.
    func refusal(_ condition: String, values: [String], header: String = "token,x")
        -> String
    {
        do {
            _ = try warnings(condition, values: values, header: header, mayRefuse: true)
            return ""
        } catch {
            return (error as? BroadsideError)?.message ?? "\(error)"
        }
    }

    @Test func `A set of which no value occurs is an error that names values of the column`() {
        let french = refusal("x = fr", values: ["FR", "DE", ""])
        #expect(
            french.contains(
                "'x = fr': no row of the list has the value 'fr', so no device would get this campaign: "
                    + "the column has FR, DE, an empty value"), "\(french)")
        let many = refusal("x = a,b", values: ["v1", "v2", "v3", "v4", "v5"])
        #expect(
            many.contains("has any of these values") && many.hasSuffix("v4 and others"), "\(many)")
        #expect(refusal("x = \"\"", values: ["1"]).contains("has an empty value, so no device"))
        let secret = refusal("token = cd", values: ["1"])
        #expect(secret.hasSuffix("so no device would get this campaign: check the spelling"))
        for condition in ["x = FR", "x = FR,Ger", "x != US", "x = \"\""] {
            #expect(refusal(condition, values: ["FR", "DE", ""]) == "", "\(condition)")
        }
        #expect(refusal("x = fr", values: []) == "")
    }

    @Test func `A column of which no value can be compared is an error that names its first value`()
        throws
    {
        let refused = refusal("x > 5", values: ["", "FR", "DE"])
        #expect(
            refused.contains(
                "'x > 5': no row of the list has a value that is a number, so no device would get this "
                    + "campaign: line 3 has 'FR'"), "\(refused)")
        // A segment may be empty on a day.
        for values in [["FR", "1"], ["", ""], []] {
            #expect(refusal("x > 5", values: values) == "", "\(values)")
        }
        // A campaign that has begun can't be corrected.
        #expect(try warnings("x > 5", values: ["FR"]).count == 1)
    }

    @Test func `Numbers with one dot that look like versions are a warning`() throws {
        let versions = ["5.9", "5.10", "5.2"]
        #expect(
            try warnings("x >= 5.9", values: versions) == [
                "'5.10' is compared as a number, and so are all values with one dot; for versions compare "
                    + "with 5.9.0"
            ])
        #expect(try places("x >= 5.9.0", values: versions) == [0, 1])
        for values in [["0.50", "0.75"], ["0.5", "0.75", "0.05"], ["5.9", "12", "10"]] {
            #expect(try warnings("x >= 5.9", values: values) == [], "\(values)")
        }
        #expect(try warnings("x >= 6", values: versions) == [])
        #expect(try warnings("x = 5.9", values: versions) == [])
    }

    @Test func `A date with dots whose year comes first is compared as a version, with a warning`()
        throws
    {
        let values = ["2024.2.29", "2024.03.01", "2024.3.1", "2023.12.0"]
        #expect(try places("x >= 2024.3.1", values: values) == [1, 2])
        #expect(
            try warnings("x >= 2024.3.1", values: values) == [
                "it is compared with versions: for dates write 2024-03-01, here and in the list; for "
                    + "versions write 2024.3.1.0"
            ])
        for version in ["2024.3.1.0", "2024.12.0", "2024.31.31", "5.2.2024.1", "17.0.1"] {
            #expect(try warnings("x >= \(version)", values: values) == [], "\(version)")
        }
    }

    @Test func `A set holds the texts between its commas, without the blanks round them`() throws {
        let values = ["FR", " BE ", "fr", "", "\"Bonaire, Saba\"", "\"a\"\"b\"", "=x", "FR,"]
        #expect(try places("x=FR, BE", values: values) == [0, 1, 7])
        #expect(try places(" x != FR,BE", values: values) == [2, 3, 4, 5, 6])
        #expect(try places("x = \"Bonaire, Saba\" , FR", values: values) == [0, 4, 7])
        #expect(try places("\"x\" = \"\"", values: values) == [3])
        #expect(try places("x = \"a\"\"b\",\"=x\"", values: values) == [5, 6])
        #expect(try places("x = FR,FR,FR", values: values) == [0, 7])
    }

    @Test func `A missing value matches only a set that is left out`() throws {
        let csv = "token,x\nab\nab,\nab,1\n"
        #expect(try places(["x != 1"], list: csv, format: .csv) == [0, 1])
        #expect(try places(["x != \"\""], list: csv, format: .csv) == [0, 2])
        for condition in ["x = 1,\"\"", "x > 0", "x <= 9"] {
            #expect(try places([condition], list: csv, format: .csv).contains(0) == false)
        }
        let tsv = "token\tx\nab\t\\N\nab\t\"\\N\"\nab\t1\n"
        #expect(try places(["x != 1"], list: tsv, format: .tsv) == [0, 1])
        #expect(try places(["x = \"\\N\""], list: tsv, format: .tsv) == [1])
    }

    @Test func `Numbers are compared by their value, however they are written`() throws {
        let values = [
            "9", "10", "1e1", "+10.00", "010", "9.999999999999999999999", "10.0000000000000000001",
            "-11",
            "abc", "", "10,5", "0x10", "1e", ".5", "5.", "-0", "1e-400", "1E+400", "NaN",
        ]
        #expect(try places("x >= 10", values: values) == [1, 2, 3, 4, 6, 10, 17])
        #expect(try places("x > 10", values: values) == [6, 17])
        #expect(try places("x < 10", values: values) == [0, 5, 7, 13, 15, 16])
        #expect(try places("x <= -0.0", values: values) == [7, 15])
        #expect(try places("x > 0", "x < 1e-100", values: values) == [16])
        #expect(
            try places("x > 9007199254740992", values: ["9007199254740993", "9007199254740992"])
                == [0])
    }

    @Test func `Versions are compared part by part, and parts that one lacks are 0`() throws {
        let values = [
            "5.2.0", "5.2", "5", "5.10", "5.9.9.9", "6", "5.2.0.1", "05.02", "5.1.99", "5.2.0-beta",
            "v6",
            "5.2.", ".5", "5..2", "99999999999999999999.1",
        ]
        #expect(try places("x >= 5.2.0", values: values) == [0, 1, 3, 4, 5, 6, 7, 14])
        #expect(try places("x > 5.2.0", values: values) == [3, 4, 5, 6, 14])
        #expect(try places("x < 5.2.0", values: values) == [2, 8])
        #expect(try places("x <= 5.2.0.0.0", values: values) == [0, 1, 2, 7, 8])
        let large = ["10.0.19045", "1.000.000", "01.03.2024", "12.31.2099", "5.100.200"]
        #expect(try places("x >= 10.0.19041", values: large) == [0, 3])
        #expect(try places("x = 01.03.2024,1.000.000", values: large) == [1, 2])
        #expect(try places("x <= 1.000.000.0", values: large) == [1])
        #expect(try places("x >= 01.03.2024.0", values: large) == [0, 2, 3, 4])
        #expect(try places("x >= 32.13.2024", values: large) == [])
        #expect(try places("x >= 5.100.200", values: large) == [0, 3, 4])
        #expect(try places("x > 0.100.020", values: large) == [0, 1, 2, 3, 4])
        #expect(try places("x >= 10.100.200", values: large) == [3])
    }

    @Test func `A date stands for all of the day, the minute or the second that it names`() throws {
        let values = [
            "2024-02-28", "2024-02-29", "2024-02-29T23:59:59Z", "2024-03-01 00:30:00+01:00",
            "2024-03-01", "2024-02-30", "1709164800", "2024-02-29 12:00", "2024-02-29T12:00:00.5Z",
            "20240301", "tomorrow",
        ]
        #expect(try places("x >= 2024-02-29", values: values) == [1, 2, 3, 4, 7, 8])
        #expect(try places("x > 2024-02-29", values: values) == [4])
        #expect(try places("x <= 2024-02-29", values: values) == [0, 1, 2, 3, 7, 8])
        #expect(try places("x < 2024-02-29", values: values) == [0])
        #expect(try places("x > 2024-02-29T12:00:00", values: values) == [2, 3, 4])
        #expect(try places("x < 2024-02-29T13:00+01:00", values: values) == [0, 1])
    }

    @Test func `All conditions hold for a row that is sent, and a column may have several`() throws
    {
        let list = "token,a,b\nab,1,x\nab,2,x\nab,3,y\nab,4,x\n"
        #expect(try places(["a > 1", "b = x", "a != 4"], list: list, format: .csv) == [1])
        #expect(try places(["B = x"], list: list, format: .csv) == [0, 1, 3])
        #expect(try RowFilter(["a > 1", "b = x", "a != 4"]).columns == ["a", "b"])
    }

    @Test func `Keys, paths, numbers, booleans and nulls of JSON Lines are values as in a table`()
        throws
    {
        let list = """
            {"token":"ab","x":18,"p":{"os":"ios"},"on":true}
            {"token":"ab","x":"18","p":{"os":"android"},"on":false}
            {"token":"ab","x":null,"p":{},"on":"true"}
            {"token":"ab","x":1.8e1,"p":null}
            {"token":"ab","x":[18],"p":"ios","on":{}}
            {"token":"ab","x":"1\\u0038","p":{"\\u006fs":"ios"}}
            {"token":"ab","x":"\\ud800"}

            """
        let format = ListFormat.jsonl
        #expect(try places(["x = 18"], list: list, format: format) == [0, 1, 5])
        #expect(try places(["x >= 18"], list: list, format: format) == [0, 1, 3, 5])
        #expect(try places(["x != 18"], list: list, format: format) == [2, 3, 4, 6])
        #expect(try places(["p.os = ios"], list: list, format: format) == [0, 5])
        #expect(try places(["p.os != ios"], list: list, format: format) == [1, 2, 3, 4, 6])
        #expect(try places(["on = true"], list: list, format: format) == [0, 2])
        #expect(try places(["on != true"], list: list, format: format) == [1, 3, 4, 5, 6])
    }

    @Test func `A JSON array or object equals no text, which is a warning or an error`() throws {
        func finish(_ condition: String, _ values: [String], mayRefuse: Bool = true) throws
            -> [String]
        {
            let text = values.map { #"{"token":"ab","x":"# + $0 + "}\n" }.joined()
            let filter = try RowFilter([condition])
            let layout = try RowLayout(format: .jsonl, names: ["token", "x"], header: [])
            let list = TokenList(lines: Array(text.utf8), layout: layout)
            return try self.finish(filter, list, layout, mayRefuse: mayRefuse)
        }
        let some = try finish("x != news", [#""news""#, #"["news"]"#, "{}", "null"])
        #expect(some.count == 1)
        #expect(
            some[0].hasSuffix(
                "2 rows have a JSON array or object, the first on line 2: such a value differs "
                    + "from every text, so this condition keeps these rows"), "\(some)")
        #expect(
            try finish("x = news", [#""news""#, #"["news"]"#])[0]
                .hasSuffix(": such a value does not match"))
        #expect(try finish("x != news", ["[]", "null"], mayRefuse: false).count == 2)
        #expect {
            try finish("x != news", [#"["news"]"#, "null"])
        } throws: {
            "\($0)".contains(
                "no value is a text or number, and line 1 has an array or object: name a")
        }
    }

    @Test(arguments: [
        ("", 1, "names no column"), (" = FR", 2, "names no column"),
        ("country", 8, "has no operator"),
        ("country FR", 11, "has no operator"), ("country == FR", 9, "write ="),
        ("é <> FR", 3, "write !="), ("age => 18", 5, "write >="), ("age =< 18", 5, "write <="),
        ("age <=> 18", 5, "use =, !="), ("age ! 18", 5, "write !="),
        ("country =", 10, "a value is missing"), ("country = FR,", 14, "a value is missing"),
        ("country = ,FR", 11, "a value is missing"), ("country = FR,,BE", 14, "a value is missing"),
        ("country = >FR", 11, "in double quotes"), ("country = F\"R\"", 12, "a quote is inside"),
        ("country = \"FR", 11, "is not closed"), ("\"country = FR", 1, "is not closed"),
        ("country = \"FR\" BE", 16, "follows a closing quote"),
        ("\"a\"b = 1", 4, "has no operator"),
        ("age >= abc", 8, "'abc' is not a number"), ("age > 18,19", 9, "compares with one value"),
        ("age > \"18,5\"", 7, "'18,5' is not a number"), ("day < 2024-02-30", 7, "is not a number"),
        ("v >= v5.2.0", 6, "is not a number"), ("on > true", 6, "is not a number"),
        ("d >= 01.03.2024", 6, "looks like a date: write 2024-03-01, here and in the list, or"),
        ("d >= 1.3.1999", 6, "write 1999-03-01"), ("d >= 03.31.2024", 6, "write 2024-03-31"),
        ("n >= 1.000.000", 6, "write 1000000, here and in the list, or 1.000.000.0 for a version"),
        ("n < \"12.050.678\"", 5, "looks like a number with dots between thousands"),
        ("x >", 4, "a value is missing"), ("x >= \"\"", 6, "is not a number"),
    ])
    func `What is not a condition is refused at its place`(
        text: String, character: Int, says: String
    ) {
        do {
            _ = try RowFilter([text])
            Issue.record("this is not a condition: \(text)")
        } catch {
            #expect(error.message.contains("': character \(character): "), "\(error.message)")
            #expect(error.message.contains(says), "\(error.message)")
        }
    }

    @Test(arguments: [
        ("country != 'FR'", 12, "' is not a quote here: write country != FR, or put a value"),
        ("country != 'FR','DE'", 12, "write country != FR,DE, or"),
        ("country = 'Bonaire, Saba' , FR", 11, "write country = \"Bonaire, Saba\",FR, or"),
        ("city = 's-Hertogenbosch", 8, "write city = \"'s-Hertogenbosch\", or"),
        ("country != FR, 'DE'", 16, "write country != DE, or"),
        ("country != “FR”", 12, "“ is not a quote here: write country != FR, or"),
        ("country != ‘FR’", 12, "write country != FR, or"),
        ("country != `FR`", 12, "write country != FR, or"),
        ("country != (FR,DE)", 12, "( does not begin a set here: write country != FR,DE, or"),
        ("country != [FR]", 12, "write country != FR, or"),
        ("country != {FR}", 12, "write country != FR, or"),
        ("country != ('FR', \"D,E\")", 12, "write country != FR,\"D,E\", or"),
        ("source = (none)", 10, "put a value that begins with ( in double quotes"),
        ("age >= '18'", 8, "write age >= 18, or"),
        ("country != FR and age >= 18", 12, "'FR and age >= 18' contains 'and': write each"),
        ("country != FR AND country != DE", 12, "country != \"FR AND country != DE\""),
        ("country != FR AND premium", 12, "contains 'and'"),
        ("age >= 18 and country = FR", 8, "contains 'and'"),
        ("country != FR Or DE", 12, "contains 'or': separate several values by commas"),
        ("country != FR, city in (Rome)", 16, "contains 'in ('"),
        ("country != FR, age>=18", 16, "'age>=18' contains '>='"),
        ("country != FR, city!=Rome", 16, "contains '!='"),
        ("country != FR; age < 18", 12, "contains '<'"),
        ("id != NULL", 7, "to exclude empty values, or id != \"NULL\" for the word itself"),
        ("id != NULL", 7, "!= always selects rows without a value: to exclude them, name the"),
        ("id = null", 6, "no condition selects only rows without a value: write \"\" for empty"),
        ("id = null", 6, "or id = \"null\" for the word"), ("id != 7, Null", 10, "id != \"Null\""),
        ("id < null", 6, "'null' is not a number, a date such as"),
        ("id = None", 6, "'None' does not stand for a missing value here"),
        ("id != \\N", 7, "id != \"\\N\" for the word itself"),
    ])
    func `A value in the spelling of another language is refused, with the right one`(
        text: String, character: Int, says: String
    ) {
        do {
            _ = try RowFilter([text])
            Issue.record("this would select every row or none: \(text)")
        } catch {
            #expect(error.message.contains("': character \(character): "), "\(error.message)")
            #expect(error.message.contains(says), "\(error.message)")
        }
    }

    @Test func `Double quotes make any value a text, and other words and signs are plain`() throws {
        let values = [
            "'FR'", "(none)", "Trinidad and Tobago", "a=b", "“x”", "NULL", "None", "\\N",
            "Portland",
            "aGk=", "Hi!", "O'Hare",
            "Orkney in Scotland", "AND", "x(1)", "or", "none", "Nullarbor", "N",
        ]
        for (place, value) in values.enumerated() {
            #expect(try places("x = \"\(value)\"", values: values) == [place])
        }
        for (place, value) in values.enumerated().dropFirst(8) {
            #expect(try places("x = \(value)", values: values) == [place])
        }
        // A campaign that began with such a value keeps its identity.
        #expect(
            try RowFilter(["x=\"Trinidad and Tobago\""]).canonicalTexts == [
                "x = Trinidad and Tobago"
            ])
    }

    @Test func `A wrong condition among several is named by its number`() {
        do {
            _ = try RowFilter(["a = 1", "b > x"])
            Issue.record("this is not a filter")
        } catch {
            #expect(error.message.hasPrefix("'b > x': condition 2, character 5: "))
        }
    }

    @Test func `As many conditions and values as there may be are read, and no more`() throws {
        let conditions = Array(repeating: "a = 1", count: RowFilter.conditionsLimit)
        #expect(try RowFilter(conditions).conditions.count == conditions.count)
        #expect(throws: RowFilter.Problem.self) { try RowFilter(conditions + ["a = 1"]) }
        let values = (0..<RowFilter.textsLimit).map { "v\($0)" }
        #expect(
            try RowFilter(["a = \(values.joined(separator: ","))"]).conditions[0].texts.count
                == 1_000)
        #expect(throws: RowFilter.Problem.self) {
            try RowFilter(["a = \(values.joined(separator: ",")),w"])
        }
        #expect(
            try places(
                "x = \(values.joined(separator: ","))", values: ["v0", "v", "v999", "v1000"]) == [
                    0, 2,
                ])
    }

    @Test func `The same conditions have one canonical text, which is read as the same`() throws {
        for (text, canonical) in [
            ("x=b , a,a", "x = a,b"), ("\"x\"   >= \"18\"", "x >= 18"),
            ("x = \"a,b\", \"\"", "x = \"\",\"a,b\""),
            ("\"a=b\" != \"=\"", "\"a=b\" != \"=\""), ("a b = \"\"\"\"", "a b = \"\"\"\""),
        ] {
            let filter = try RowFilter([text])
            #expect(filter.canonicalTexts == [canonical])
            #expect(try RowFilter([canonical]) == filter)
        }
    }

    @Test(arguments: 0..<20)
    func `Decimal numbers are ordered as scaled integers are`(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        /// A number in units of a millionth, and one way to write it.
        func number() -> (value: Int64, text: String) {
            let value =
                Int64.random(in: -2_000_000...2_000_000, using: &random)
                / [1, 10, 1_000, 1_000_000].randomElement(using: &random)!
            let digits = String(value.magnitude)
            let padded = String(repeating: "0", count: max(0, 7 - digits.count)) + digits
            let zeros = String(repeating: "0", count: Int.random(in: 0..<3, using: &random))
            let power = Int.random(in: 0...3, using: &random)
            let point = padded.index(padded.endIndex, offsetBy: power - 6)
            let sign = value < 0 ? "-" : Bool.random(using: &random) ? "+" : ""
            let exponent = power == 0 ? "" : "e-\(power)"
            return (
                value, "\(sign)\(zeros)\(padded[..<point]).\(padded[point...])\(zeros)\(exponent)"
            )
        }
        for _ in 0..<500 {
            let (first, second) = (number(), number())
            let (own, other) = (Array(first.text.utf8), Array(second.text.utf8))
            guard let a = DecimalNumber(own.span.bytes), let b = DecimalNumber(other.span.bytes)
            else {
                Issue.record("not numbers: \(first.text), \(second.text)")
                continue
            }
            let order = DecimalNumber.order(
                of: a, in: own.span.bytes, and: b, in: other.span.bytes)
            #expect(
                order.signum()
                    == (first.value < second.value ? -1 : first.value > second.value ? 1 : 0),
                "\(first.text) and \(second.text)")
        }
    }
}
