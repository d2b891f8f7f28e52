import BroadsideHygiene
import BroadsideRows
import BroadsideSupport
import BroadsideTestSupport
import Synchronization
import Testing

@testable import BroadsideLists

/// The last row of a list that has no line end: what shows that the list was cut off.
@Suite struct CutEndTests {
    private static let tokens = (0..<500).map { number in
        let digits = String(number, radix: 16)
        return String(repeating: "a", count: 64 - digits.count) + digits
    }
    private static let objects = tokens.map { "{\"token\":\"\($0)\",\"n\":{\"x\":1}}\n" }.joined()
    private static let quoted =
        "\"token\",\"name\",\"note\"\n"
        + tokens.map { "\"\($0)\",\"Ann, \"\"A\"\"\",\"one\ntwo\"\n" }.joined()
    private static let tabs =
        "token\tname\tcity\n" + tokens.map { "\($0)\t5\"\tRome\n" }.joined()

    private func problem(
        _ text: some StringProtocol, _ format: ListFormat, _ names: [String] = ["token"]
    ) throws -> String? {
        let bytes = Array(text.utf8)
        let header = Array(bytes.prefix { $0 != UInt8(ascii: "\n") })
        let layout = try RowLayout(
            format: format, names: names, header: format.hasHeader ? header : nil)
        return try TokenList(lines: bytes, layout: layout).endProblem()?.text
    }

    @Test(arguments: [2, 500], ["token", "n.x"])
    func `A last line of JSON Lines is cut off if it is not a whole object`(
        rows: Int, name: String
    ) throws {
        let text = Self.objects.prefix(Self.objects.count / 500 * rows)
        for count in [0, 1] { #expect(try problem(text.dropLast(count), .jsonl, [name]) == nil) }
        for count in [2, 10, 40, 86] {
            #expect(
                try problem(text.dropLast(count), .jsonl, [name])
                    == "is not a complete JSON object", "\(count)")
        }
        // One such line among many is a cut, but a list without any object is another file.
        let last = "{\"token\":\"\(Self.tokens[0])\"}"
        #expect(try problem("[1]\n\(last)", .jsonl) == nil)
        #expect(try problem("no\nobject", .jsonl) == nil)
        #expect(try problem(text + "   ", .jsonl) == nil)
    }

    @Test(arguments: [2, 500])
    func `A last row with quotes is cut off if it lacks fields or a closing quote`(
        rows: Int
    ) throws {
        let text =
            Self.quoted.prefix { $0 != "\n" } + "\n"
            + Self.quoted.split(separator: "\n", omittingEmptySubsequences: false).dropFirst()
            .prefix(2 * rows).joined(separator: "\n") + "\n"
        for count in [0, 1] { #expect(try problem(text.dropLast(count), .csv) == nil) }
        // After the line break of the last field, behind its first quote, in the field before.
        for count in [2, 4, 9, 12] {
            #expect(try problem(text.dropLast(count), .csv) == "ends inside quotes", "\(count)")
        }
        for count in [11, 23, 24] {
            #expect(
                try problem(text.dropLast(count), .csv) == "fewer fields than the rows before",
                "\(count)")
        }
        // A complete row after one that is malformed.
        #expect(try problem(text + "\"a\"b,c\n" + "\(Self.tokens[0]),x,y", .csv) == nil)
    }

    @Test func `A last row with a quote that is text is compared like others`() throws {
        for count in [0, 1, 3] { #expect(try problem(Self.tabs.dropLast(count), .tsv) == nil) }
        #expect(try problem(Self.tabs.dropLast(7), .tsv) == "fewer fields than the rows before")
        let last = "name,token\n" + Self.tokens.map { "5\" disk,\"\($0)\"\n" }.joined()
        #expect(try problem(last.dropLast(), .csv) == nil)
        #expect(try problem(last + "x,\(Self.tokens[0])", .csv) == nil)
        #expect(
            try problem(last + "x,\(Self.tokens[0].dropLast(9))", .csv)
                == "fewer digits than the rows before")
    }

    @Test func `The end of a list that begins with a long row is not compared`() throws {
        let long = String(repeating: "x", count: 20_000)
        #expect(try problem("token\n" + long, .csv) == nil)
        #expect(try problem("{\"token\":\"\(long)", .jsonl) == nil)
    }

    @Test(arguments: [1, 100, 8_192, 16_384, 100_000])
    func `Zero bytes at the end are named, however many they are`(count: Int) throws {
        let zeros = String(repeating: "\0", count: count)
        for (text, format) in [
            (Self.tabs, ListFormat.tsv), (Self.objects, .jsonl),
            (Self.tokens.joined(separator: "\n"), .lines),
        ] {
            #expect(try problem(text + zeros, format) == "contains zero bytes")
            #expect(try problem(text.dropLast(20) + zeros, format) == "contains zero bytes")
        }
    }

    @Test func `Brackets, open quotes, long rows and one short token do not hide a cut`() throws {
        let brackets = Self.tokens.map { "<\($0.prefix(32)) \($0.suffix(32))>" }
            .joined(separator: "\n")
        #expect(try problem(brackets, .lines) == nil)
        #expect(
            try problem(brackets.dropLast(30), .lines) == "fewer digits than the rows before")
        let quoted = "n\ttoken\n" + Self.tokens.map { "5\t\"\($0)\"\n" }.joined()
        #expect(try problem(quoted.dropLast(), .tsv) == nil)
        #expect(try problem(quoted.dropLast(20), .tsv) == "fewer digits than the rows before")
        let long = String(repeating: "x", count: 20_000)
        let objects = Self.tokens.prefix(30).map { "{\"token\":\"\($0)\",\"x\":\"\(long)\"}\n" }
            .joined()
        #expect(try problem(objects.dropLast(), .jsonl) == nil)
        #expect(try problem(objects.dropLast(10), .jsonl) == "is not a complete JSON object")
        let tokens = Self.tokens.dropLast() + ["abcd", Self.tokens[7]]
        let lines = tokens.joined(separator: "\n")
        #expect(try problem(lines, .lines) == nil)
        #expect(try problem(lines.dropLast(20), .lines) == "fewer digits than the rows before")
        // The app has such tokens, too.
        #expect(try problem(lines + "\nabcd", .lines) == nil)
    }

    @Test(arguments: [40, 500, 40_000], [Packing.gzip, .zstd])
    func `The end of a compressed list is checked once the list is read`(
        rows: Int, packing: Packing
    ) throws {
        let directory = try TemporaryDirectory()
        let text = "token,name\n" + (0..<rows).map { "\(hexToken($0)),Ann\n" }.joined()
        for (dropped, expected) in [
            (1, nil), (5, "fewer fields than the rows before"),
        ] as [(Int, String?)] {
            let file = try packing.write(
                Array(text.utf8.dropLast(dropped)), to: "list.csv", in: directory)
            let list = try TokenList(.file(file), format: nil, tokenColumn: nil)
            var cursor = try RowCursor(list)
            while try cursor.next() != nil {}
            #expect(try list.endProblem()?.text == expected)
        }
    }

    /// What a list says if it is asked for missing rows twice: warnings, and the refusal.
    private func damage(
        _ text: String, refuses: Bool, overwritten: OverwrittenRows = OverwrittenRows()
    ) throws -> (warnings: [String], refusal: BroadsideError?) {
        let list = TokenList(lines: Array(text.utf8))
        let lines = Mutex<[String]>([])
        let host = HostedRun { line in lines.withLock { $0.append(line) } }
        var refusal: BroadsideError?
        HostedRun.$current.withValue(host) {
            for _ in 0..<2 {
                do throws(BroadsideError) {
                    if refuses {
                        try list.refuseDamage(overwritten, so: "opt-outs are lost")
                    } else {
                        try list.warnOfDamage(overwritten)
                    }
                } catch {
                    refusal = error
                }
            }
        }
        return (lines.withLock { $0 }, refusal)
    }

    @Test func `Missing rows are one warning, or a refusal where they would do harm`() throws {
        let whole = Self.tokens.joined(separator: "\n")
        for refuses in [false, true] {
            let found = try damage(whole, refuses: refuses)
            #expect(found.warnings == [] && found.refusal == nil)
        }
        let warned = try damage(String(whole.dropLast(10)), refuses: false)
        #expect(
            warned.warnings == [
                "broadside: warning: the list: the last row has no line end and fewer digits than the "
                    + "rows before: was the list cut off? Other rows may be missing, too"
            ])
        let refused = try damage(String(whole.dropLast(10)), refuses: true)
        #expect(refused.warnings == [] && refused.refusal?.exitCode == 2)
        #expect(refused.refusal?.message.contains("cut off and opt-outs are lost") == true)
        // One device, written without a line break.
        #expect(try damage(Self.tokens[0], refuses: true).refusal == nil)
    }

    @Test func `A last token that is shorter, but long enough for a whole one, is only a warning`()
        throws
    {
        let long = Self.tokens.map { $0 + String(repeating: "b", count: 96) }.joined(
            separator: "\n")
        let found = try damage(long + "\n" + Self.tokens[0], refuses: true)
        #expect(found.warnings.count == 1 && found.refusal == nil)
    }

    @Test func `Overwritten rows are counted, and named by the first line that is known`() throws {
        var rows = OverwrittenRows()
        let zeros = [UInt8](repeating: 0, count: 512)
        rows.take(zeros.rawSpan, in: .lines, line: 7)
        let one = try damage("", refuses: false, overwritten: rows)
        #expect(one.warnings.count == 1)
        #expect(one.warnings.first?.contains("the row on line 7 contains zero bytes") == true)
        rows.take(zeros.rawSpan, in: .lines, line: 9)
        let two = try damage("", refuses: true, overwritten: rows)
        #expect(two.warnings == [] && two.refusal?.exitCode == 2)
        #expect(
            two.refusal?.message.contains("2 rows, the first on line 7, contain zero bytes") == true
        )
    }

    @Test func `Lines with several JSON objects are a warning`() throws {
        let row = "{\"token\":\"\(String(repeating: "ab", count: 32))\"}"
        func warnings(_ rows: [String], isBegun: Bool = false) throws -> [String] {
            let list = try TokenList(
                lines: Array(rows.joined(separator: "\n").utf8),
                layout: RowLayout(format: .jsonl, names: ["token"]))
            let headers = try list.survey().headers
            let lines = Mutex<[String]>([])
            let host = HostedRun { line in lines.withLock { $0.append(line) } }
            HostedRun.$current.withValue(host) { list.warn(of: headers, isBegun: isBegun) }
            return lines.withLock { $0 }
        }
        #expect(try warnings([row, "\(row)x", row]) == [])
        let one = try warnings([row, row + row])
        #expect(
            one.count == 1
                && one[0].contains("line 2 has several JSON objects, so it is invalid: were files"),
            "\(one)")
        #expect(one.first?.contains("Write one object per line") == true)
        let begun = try warnings([row + row, row, row + row], isBegun: true)
        #expect(
            begun.count == 1 && begun[0].contains("2 lines have several")
                && begun[0].contains("the first is line 1") && !begun[0].contains("Write one"),
            "\(begun)")
    }

    @Test func `Erased tokens that are joined or too short are warnings, also in a short list`() {
        func warnings(_ digits: [Int]) -> [String] {
            let lines = Mutex<[String]>([])
            let host = HostedRun { line in lines.withLock { $0.append(line) } }
            HostedRun.$current.withValue(host) {
                var lengths = ErasedLengths()
                for (line, count) in digits.enumerated() {
                    lengths.note(count, line: UInt64(line + 1))
                }
                lengths.warn(TokenList(lines: []))
            }
            return lines.withLock { $0 }
        }
        #expect(warnings([64]) == [] && warnings([64, 160, 64]) == [] && warnings([160]) == [])
        let joined = warnings([64, 128])
        #expect(
            joined.count == 1 && joined[0].contains("the token on line 2 has 128 digits"),
            "\(joined)")
        let short = warnings([60, 60])
        #expect(short.count == 1 && short[0].contains("were they cut off?"), "\(short)")
    }
}
