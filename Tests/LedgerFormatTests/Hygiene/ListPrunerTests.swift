import BroadsideSupport
import BroadsideTestSupport
import Testing

@testable import BroadsideAPNs
@testable import BroadsideHygiene
@testable import BroadsideRows

@Suite struct ListPrunerTests {
    private func prune(
        _ text: String, dead: [TestVerdict], format: ListFormat = .lines,
        columns: [String] = ["token"], header: String = "", windowSize: Int = 1 << 16
    ) throws -> (kept: String, removed: String, counts: PruneCounts) {
        let names = header.split { $0.isNewline }.first ?? ""
        let layout = try RowLayout(format: format, names: columns, header: Array(names.utf8))
        let result = LedgerFormatTests.prune(
            Array(text.utf8), dead: try deadTokens([verdictLedger(dead)]), layout: layout,
            windowSize: windowSize)
        return (
            String(decoding: result.kept, as: UTF8.self),
            String(decoding: result.removed, as: UTF8.self), result.counts
        )
    }

    private func died(_ token: String, at time: UInt64? = nil) -> TestVerdict {
        TestVerdict(token: token, state: .rejected, reason: .unregistered, timestamp: time)
    }

    private let first = testToken(1)
    private let second = testToken(2)
    private let third = testToken(3)

    @Test func `Pruning removes lines and leaves all other bytes`() throws {
        let text = "\u{feff}\(first)\n\n\(second.uppercased())\r\n  \t\n \(second) \noops\n\(third)"
        let result = try prune(text, dead: [died(second)])
        #expect(result.kept == "\u{feff}\(first)\n\n  \t\noops\n\(third)")
        #expect(result.removed == "\(second.uppercased())\r\n \(second) \n")
        #expect(result.counts.rows == 5)
        #expect(result.counts.removed == 2)
        #expect(result.counts.removedByReason[Int(Reason.unregistered.rawValue)] == 2)
        #expect(result.counts.withoutToken == 1)
        let last = try prune(text, dead: [died(third)])
        #expect(last.removed == third)
        #expect(last.kept.utf8.count == text.utf8.count - 64)
    }

    @Test func `A record is removed with all its lines`() throws {
        let header = "name,token,note\r\n"
        let text =
            "\(header)a,\(first),\"one\r\ntwo\n\"\n\n\"b,\"\"\",\"\(second)\",\"three\n\nfour\"\r\nc\n"
            + "\"\(third)\",x,y\n"
        let result = try prune(
            text, dead: [died(second), died(third)], format: .csv, header: header)
        #expect(result.removed == "\(header)\"b,\"\"\",\"\(second)\",\"three\n\nfour\"\r\n")
        #expect(
            result.kept
                == "\(header)a,\(first),\"one\r\ntwo\n\"\n\nc\n\"\(third)\",x,y\n")
        #expect(result.counts.rows == 4)
        #expect(result.counts.withoutToken == 2)
    }

    @Test func `A list and a window may be a single byte`() throws {
        for text in ["x", "\n"] {
            let result = try prune(text, dead: [])
            #expect(result.kept == text && result.removed.isEmpty)
            #expect(result.counts.rows == (text == "x" ? 1 : 0))
        }
    }

    @Test func `A row registered after its token died stays`() throws {
        let header = "token\tsince\n"
        func row(_ value: String) -> String { "\(first)\t\(value)\n" }
        // A second and a minute that have just begun end later.
        let stays = [
            "1700000000", "1700000000001", "2023-11-14T22:13:20Z", "2023-11-14T22:13", "?", "",
            "0",
        ].map(row)
        let goes = [
            "1699999999", "1700000000000", "2023-11-14T22:13:19Z", "2023-11-14T22:12",
            "2023-11-14T22:13:20.000Z",
        ].map(row)
        let result = try prune(
            header + goes.joined() + stays.joined() + "\(first)\n\(second)\t1\n",
            dead: [died(first, at: 1_700_000_000_000)], format: .tsv,
            columns: ["token", "since"], header: header)
        #expect(result.kept == header + stays.joined() + "\(first)\n\(second)\t1\n")
        #expect(result.removed == header + goes.joined())
        #expect(result.counts.registeredLater == 4)
        #expect(result.counts.unreadableRegistrations == 4)
        #expect(result.counts.firstUnreadableLine == 11)
        #expect(result.counts.hasReadableRegistration)
    }

    @Test func `The first compared time without an offset is recorded with its line`() throws {
        let header = "token\tsince\n"
        // A living token's time is not compared, and an unreadable one is no time.
        let others =
            "\(second)\t2023-11-14 22:13:19\n"
            + ["2023-11-14 22:13:19Z", "1699999999", "2999-01-01 00:00:00", "soon"]
            .map { "\(first)\t\($0)\n" }.joined()
        for (value, goes) in [
            ("2023-11-14 22:13:19", true), ("2023-11-14 22:13:21", false), ("2023-11-14", false),
        ] {
            let rows = String(repeating: "\(first)\t\(value)\n", count: 2)
            for (text, line) in [(others, nil), (others + rows, 7), (rows + others, 2)]
                as [(String, UInt64?)]
            {
                let result = try prune(
                    header + text, dead: [died(first, at: 1_700_000_000_000)], format: .tsv,
                    columns: ["token", "since"], header: header, windowSize: 200)
                #expect(result.counts.firstLineWithoutOffset == line, "\(value)")
                #expect(result.counts.removed == (line != nil && goes ? 4 : 2), "\(value)")
            }
        }
    }

    /// Seconds since 2001, for example.
    @Test(arguments: ["785000000", "0", "", "2999-01-01"], [false, true])
    func `A survey knows whether any row's time can be read`(value: String, hasReadable: Bool)
        throws
    {
        let header = "token\tsince\n"
        let dead = "\(first)\t\(value)\n"
        let other = "\(second)\t\(hasReadable ? "1700000000" : value)\n"
        let result = try prune(
            header + dead + other, dead: [died(first, at: 1_700_000_000_000)], format: .tsv,
            columns: ["token", "since"], header: header)
        #expect(result.kept == header + dead + other)
        #expect(result.counts.unreadableRegistrations == 1)
        #expect(result.counts.hasReadableRegistration == hasReadable)
    }

    @Test func `Malformed rows stay and swallow no other`() throws {
        let header = "name,token\n"
        let spoiled = "\"Bob\"by\",\(first)\n"
        let ragged = "\"c\n\",\(second),\n"
        let text = "\(header)\(spoiled)a,\(first)\n\"b\n\",\(first)\n\n\(ragged)"
        for windowSize in [8, 100, 1 << 16] {
            let result = try prune(
                text, dead: [died(first), died(second)], format: .csv, header: header,
                windowSize: windowSize)
            #expect(result.kept == "\(header)\(spoiled)\n\(ragged)")
            #expect(result.counts.rows == 4 && result.counts.withoutToken == 2)
        }
    }

    @Test(arguments: [-1, 0, 1, 2, 70_000])
    func `A row longer than the limit stays, and pruning continues behind it`(excess: Int) throws {
        let isLong = excess > 0
        for format in [ListFormat.lines, .csv] {
            let header = format == .csv ? "token,name\n" : ""
            let row = format == .csv ? "\(first),\"\n" : first
            let filler = RowChunk.rowByteCountMax + excess - row.utf8.count
            let long =
                format == .csv
                ? row + String(repeating: "x", count: filler - 1) + "\"\n"
                : row + String(repeating: " ", count: filler) + "\n"
            for end in ["", "\(second)\n"] {
                let result = try prune(
                    header + long + end, dead: [died(first), died(second)], format: format,
                    header: header, windowSize: 1 << 20)
                #expect(result.kept == header + (isLong ? long : ""))
                #expect(result.counts.withoutToken == (isLong ? 1 : 0))
                #expect(result.counts.rows == (end.isEmpty ? 1 : 2))
            }
        }
    }

    /// A hole of zero bytes in a row of at most 1 MiB, in a row that fits into a window, and in one
    /// that does not.
    @Test(arguments: [ListFormat.lines, .csv], [1 << 19, 3 << 19, 3 << 20])
    func `A hole of zero bytes is counted, however long it is`(
        format: ListFormat, byteCount: Int
    ) throws {
        let header = format == .csv ? "token,name\n" : ""
        let end = format == .csv ? ",Ann\n" : "\n"
        let zeros = String(repeating: "\0", count: byteCount)
        let kept = "\(second)\(end)\(zeros)\(third)\(end)\(second)\(end)"
        let result = try prune(
            "\(header)\(first)\(end)\(kept)", dead: [died(first)], format: format, header: header,
            windowSize: 1 << 20)
        #expect(result.kept == header + kept)
        #expect(result.counts.rows == 4 && result.counts.withoutToken == 1)
        #expect(result.counts.overwritten.count == 1)
        #expect(result.counts.overwritten.firstLine == (format == .csv ? 4 : nil))
    }

    @Test(arguments: [ListFormat.lines, .csv])
    func `All whole rows of a window are handled`(format: ListFormat) throws {
        let header = format == .csv ? "token\n" : ""
        let whole = header + "\(first)\n\(second)\n\(third)\n"
        for part in ["", "ab", format == .csv ? "\"a\nb\n" : "c"] {
            var pruner = ListPruner(
                dead: try deadTokens([verdictLedger([died(second)])]),
                layout: try RowLayout(
                    format: format, names: ["token"], header: Array("token".utf8)),
                collectsRemoved: false, nowMilliseconds: testTime)
            var window = Array((whole + part).utf8)
            var removed: [UInt8] = []
            let outcome = window.withUnsafeMutableBytes {
                pruner.process($0, isLast: false, removed: &removed)
            }
            #expect(outcome.consumedCount == whole.utf8.count)
            #expect(outcome.keptCount == whole.utf8.count - 65)
        }
    }

    @Test(arguments: 0..<60)
    func `Random lists are pruned as by a naive reader, in pieces of any size`(seed: Int) throws {
        var random = SeededRandom(seed: UInt64(seed))
        let format: ListFormat = [.lines, .csv, .tsv].randomElement(using: &random)!
        let dead = (0..<40).map { died(testToken($0)) }
        let list = RandomList(format: format, deadCount: 40, random: &random)
        let layout = try RowLayout(format: format, names: ["token"], header: list.header)
        let windowSize = Int.random(in: 1...600, using: &random)
        let result = LedgerFormatTests.prune(
            list.pieces.flatMap(\.bytes), dead: try deadTokens([verdictLedger(dead)]),
            layout: layout, windowSize: windowSize)
        #expect(result.kept == list.pieces.filter { !$0.goes }.flatMap(\.bytes))
        let removed = list.pieces.filter(\.goes)
        #expect(result.removed == list.markAndHeader + removed.flatMap(\.bytes))
        #expect(result.counts.removed == UInt64(removed.count))
        #expect(result.counts.rows == UInt64(list.rowCount))
    }
}

/// A list put together from pieces of which it is known whether they go.
private struct RandomList {
    struct Piece {
        var bytes: [UInt8]
        var goes = false
    }

    var pieces: [Piece] = []
    var header: [UInt8] = []
    var markAndHeader: [UInt8] = []
    var rowCount = 0

    init(format: ListFormat, deadCount: Int, random: inout SeededRandom) {
        let newline = ["\n", "\r\n"].randomElement(using: &random)!
        if Bool.random(using: &random) { pieces.append(Piece(bytes: [0xef, 0xbb, 0xbf])) }
        let separator = format.separator.map { String(UnicodeScalar($0)) }
        if let separator {
            let text = ["name", "\"token\"", "note"].joined(separator: separator) + newline
            header = Array(text.utf8)
            pieces.append(Piece(bytes: header))
            markAndHeader = pieces.flatMap(\.bytes)
        }
        rowCount = Int.random(in: 0...200, using: &random)
        for row in 0..<rowCount {
            if Int.random(in: 0..<10, using: &random) == 0 {
                let blank = ["", "  ", " "].randomElement(using: &random)! + newline
                pieces.append(Piece(bytes: Array(blank.utf8)))
            }
            let number = Int.random(in: 0..<80, using: &random)
            var token = testToken(number)
            if Int.random(in: 0..<5, using: &random) == 0 { token = token.uppercased() }
            if Int.random(in: 0..<9, using: &random) == 0 { token = " \(token)\t" }
            var text = token
            if let separator {
                // Between tabs no field has several lines.
                let notes =
                    ["", "x", "\"so \"\"it\"\" is\"", "5\" disk"]
                    + (format == .tsv
                        ? ["\"two", "lines\""] : ["\"two\nlines\"", "\"a\r\n\r\nb\""])
                let isQuoted = token.contains("\t") || Bool.random(using: &random)
                text = [
                    notes.randomElement(using: &random)!, isQuoted ? "\"\(token)\"" : token,
                    notes.randomElement(using: &random)!,
                ].joined(separator: separator)
            }
            let isLast = row == rowCount - 1
            if !isLast || Bool.random(using: &random) { text += newline }
            pieces.append(Piece(bytes: Array(text.utf8), goes: number < deadCount))
        }
    }
}
