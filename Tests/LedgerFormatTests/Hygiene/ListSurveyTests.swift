import BroadsideAPNs
import BroadsideHygiene
import BroadsideRows
import Testing

/// What `tokens` counts of a list.
@Suite struct ListSurveyTests {
    /// - Returns: The counts, and the token of each row as it would be sent; nil where it has none.
    private func survey(
        _ text: String, format: ListFormat, header: String = ""
    ) throws -> (counts: ListSurvey.Counts, tokens: [String?]) {
        let layout = try RowLayout(format: format, names: ["token"], header: Array(header.utf8))
        var reader = RowReader(layout: layout)
        var survey = ListSurvey()
        var tokens: [String?] = []
        let pool = ChunkPool(limit: 2)
        var cutter = RowSplitter(format: format, pool: pool)
        let list = Array(((header.isEmpty ? "" : header + "\n") + text).utf8)
        var offset = 0
        // The list is shorter than a chunk: its end cuts the one that it is.
        guard case .needsInput = cutter.next(list.span.bytes, at: &offset) else {
            preconditionFailure("the list has more than one chunk")
        }
        if let chunk = cutter.finish() {
            reader.open(chunk)
            while let row = reader.next() {
                let count = survey.take(row, of: reader)
                tokens.append(
                    count == 0
                        ? nil
                        : String(
                            decoding: survey.token(count).withUnsafeBytes { Array($0) },
                            as: UTF8.self))
            }
            _ = reader.close()
        }
        return (survey.counts, tokens)
    }

    private let digits = String(repeating: "0a1b9f", count: 10) + "cdef"

    @Test func `Lines with several JSON objects are counted, and their first line`() throws {
        let row = "{\"token\":\"\(digits)\"}"
        let text = [
            row, "{\"token\":{\"a\":{}}}", "\(row)x", "[\(row)]\(row)", "\(row),\(row)", "{\(row)",
            "\(row)\(row)", row, "\(row) \(row)\(row)",
        ].joined(separator: "\n")
        let counts = try survey(text, format: .jsonl).counts
        #expect(counts.headers.joinedLineCount == 2 && counts.headers.firstJoinedLine == 7)
        #expect(counts.headers.count == 0 && counts.valid == 2 && counts.invalid == 7)
        let plain = try survey("\(row)\(row)", format: .lines).counts
        #expect(plain.headers.firstJoinedLine == nil && plain.invalid == 1)
    }

    @Test func `Tokens are counted by kind and form`() throws {
        let short = String(digits.prefix(62))
        let long = digits + "ab"
        let list = [
            digits, digits.uppercased(), " \(digits)\t", "<\(digits)>", short, long,
            "<\(long.uppercased())>", String(digits.dropLast()) + "F", "oops", digits + "g",
        ]
        let found = try survey(list.joined(separator: "\n"), format: .lines)
        #expect(
            found.tokens == [
                digits, digits, digits, digits, short, long, long, String(digits.dropLast()) + "f",
                nil, nil,
            ])
        let counts = found.counts
        #expect(counts.rows == 10 && counts.valid == 8 && counts.invalid == 2)
        #expect(counts.malformed == 2 && counts.withoutColumn == 0 && counts.malformedRows == 0)
        #expect(counts.withCapitals == 3 && counts.decorated == 3 && counts.suspicious == 1)
        #expect(counts.byDigitCount.count == 201)
        #expect(
            counts.byDigitCount.indices.filter { counts.byDigitCount[$0] > 0 } == [62, 64, 66])
        #expect(counts.byDigitCount[64] == 5 && counts.byDigitCount[66] == 2)
        #expect(counts.firstBadRows.map(\.line) == [9, 10])
        let texts = counts.firstBadRows.map { String(decoding: $0.text, as: UTF8.self) }
        #expect(texts == [list[8], list[9]])
        #expect(counts.firstMalformedRowLine == nil)
    }

    @Test func `Malformed rows are counted by kind, and the first are kept`() throws {
        let rows = ["x", "x,\(digits)", "x,\"\(digits)\"y", "x,nothing", "x,\"\(digits)\"z", "x,"]
        let found = try survey(
            rows.joined(separator: "\n"), format: .csv, header: "name,token")
        let counts = found.counts
        #expect(counts.rows == 6 && counts.valid == 1 && counts.invalid == 5)
        #expect(counts.withoutColumn == 1 && counts.malformedRows == 2 && counts.malformed == 2)
        #expect(counts.firstMalformedRowLine == 4)
        #expect(counts.firstBadRows.map(\.line) == [2, 4, 5, 6, 7])
        #expect(
            counts.firstBadRows.map(\.reason) == [
                .missingColumn, .malformedRow, .malformedToken, .malformedRow, .malformedToken,
            ])
        let texts = counts.firstBadRows.map { String(decoding: $0.text, as: UTF8.self) }
        #expect(texts == ["", rows[2], "nothing", rows[4], ""])
        let many = try survey(
            (0..<30).map { "bad \($0)" }.joined(separator: "\n"), format: .lines
        ).counts
        #expect(many.malformed == 30 && many.firstBadRows.count == 10)
        #expect(many.firstBadRows.last?.line == 10)
        let long = try survey(String(repeating: "x", count: 5_000), format: .lines).counts
        #expect(long.firstBadRows.first?.text.count == 1_024)
    }

    @Test(arguments: [
        ("token,country,opted", true), ("Token, COUNTRY,opted ", true), ("token", true),
        ("\"token\",\"country\",\"opted\"", true), ("token,,", true),
        ("token,opted,country", false), ("country,token,opted", false), ("opted,token", false),
        ("token,opted,x", false), ("token,age", nil), ("token,FR,no", nil), ("token,token", nil),
        ("country,,", nil), ("\u{feff}token,country,opted", true),
        ("\u{feff}token,opted,country", false), ("\u{feff}country,token,opted", false),
        ("\u{feff}\"token\",\"country\",\"opted\"", true), ("country,x,y", nil),
        (",,", nil), ("tokens,country,opted", nil),
        ("token,country,opted,more", nil), ("oops", nil),
    ])
    func `A row that names columns is a header, and its columns are compared with the list's`(
        row: String, isSame: Bool?
    ) throws {
        let text = "\(digits),FR,yes\n\"\",\"a\nb\",no\n\(row)\n\(digits),BE,no\n"
        let headers = try survey(text, format: .csv, header: "token,country,opted").counts.headers
        #expect(headers.first?.isSame == isSame)
        #expect(headers.count == (isSame == nil ? 0 : 1))
        #expect(headers.other?.line == (isSame == false ? 5 : nil))
        let tabs = text.replacing(",", with: "\t").replacing("\"a\nb\"", with: "a")
        let other = try survey(tabs, format: .tsv, header: "token\tcountry\topted").counts.headers
        #expect(other.first?.isSame == isSame && other.first?.line == (isSame == nil ? nil : 4))
    }

    @Test func `A header with a byte order mark is found if the token is not its first column`()
        throws
    {
        let text = "1,\(digits)\n\u{feff}id,token\n2,\(digits)\n"
        let headers = try survey(text, format: .csv, header: "id,token").counts.headers
        #expect(headers.count == 1 && headers.first?.line == 3 && headers.other == nil)
        #expect(headers.first?.columns == ["id", "token"])
    }
}
