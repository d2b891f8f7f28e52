import BroadsideRows
import Testing

@testable import BroadsideHygiene

/// Texts of other programs in the columns of a list, which are not meant as text.
@Suite struct MissingWordsTests {
    /// Words and escapes that are found in the column `name` of rows with these values.
    private func find(
        _ values: [String], format: ListFormat
    ) throws -> (
        word: MissingWords.Occurrence?, escape: TabEscapes.Occurrence?,
        cut: TabEscapes.Occurrence?
    ) {
        let separator = format == .tsv ? "\t" : ","
        let header = "x\(separator)name"
        let layout = try RowLayout(format: format, names: ["name"], header: Array(header.utf8))
        var words = MissingWords(layout)
        var escapes = TabEscapes(layout)
        var reader = RowReader(layout: layout)
        let pool = ChunkPool(limit: 2)
        var splitter = RowSplitter(format: format, pool: pool)
        let rows = values.map { "1\(separator)\($0)\n" }.joined()
        let list = Array("\(header)\n\(rows)".utf8)
        var offset = 0
        // The list is shorter than a chunk.
        guard case .needsInput = splitter.next(list.span.bytes, at: &offset) else {
            preconditionFailure("the list has more than one chunk")
        }
        let last = splitter.finish()
        reader.open(try #require(last))
        while let row = reader.next() {
            words.take(row, of: reader)
            escapes.take(row, of: reader)
        }
        _ = reader.close()
        return (words.occurrences[0], escapes.occurrences[0], escapes.cutTexts)
    }

    @Test(arguments: [
        "NULL", "null", "<null>", "[null]", "(null)", #"\N"#, "nil", "None", "nan", "N/A", "#N/A",
        "#REF!", "#VALUE!", "#NAME?", "undefined", "[NULL]", "<NULL>", "(NULL)", "n/a", "#DIV/0!",
        "#NUM!", "#NULL!",
    ])
    func `A word for a missing value is found with its line`(word: String) throws {
        let found = try find(["Ann", "", word, "Bob", word], format: .csv)
        #expect(found.word == .init(line: 4, word: word, rows: 2))
        #expect(found.escape == nil)
    }

    // Names, codes and longer texts.
    @Test(arguments: ["NA", "Nil", "Noneya", "Null Island", "n/a b", #"\n"#, #"\NN"#, "#1", "-"])
    func `A text that may be a value is not a word for a missing value`(text: String) throws {
        #expect(try find([text], format: .csv).word == nil)
    }

    @Test func `Escapes are found in TSV only, each row once`() throws {
        let values = [#"a\"#, #"\N"#, #"\d\e"#, #"a\nb\tc"#, #"\\"#, #"x\r"#]
        let found = try find(values, format: .tsv)
        #expect(found.escape == .init(line: 5, escape: #"\n"#, rows: 3))
        #expect(found.word == nil)
        #expect(try find(values, format: .csv).escape == nil)
    }

    @Test func `A text in TSV that ends with an odd number of backslashes is found with its line`()
        throws
    {
        let values = [#"a\\"#, #"Hello\"#, "there", #"b\\\"#]
        let found = try find(values, format: .tsv)
        #expect(found.cut == .init(line: 3, escape: #"\"#, rows: 2))
        #expect(try find(values, format: .csv).cut == nil)
        #expect(try find([#"\N"#, #"a\nb"#, #"Hi\\"#], format: .tsv).cut == nil)
    }
}
