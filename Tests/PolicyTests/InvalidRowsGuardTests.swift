import BroadsidePolicy
import Testing

/// When too many rows of a list are invalid, to the row.
@Suite struct InvalidRowsGuardTests {
    /// Reads rows of which some are invalid; the row after which something was found wrong.
    private func read(
        _ count: UInt64, percent: Double = 10, isInvalid: (UInt64) -> Bool
    ) -> (row: UInt64?, verdict: InvalidRowsGuard.Verdict?) {
        var rows = InvalidRowsGuard(maximumPercent: percent)
        for row in 0..<count {
            if let verdict = rows.note(isInvalid: isInvalid(row)) { return (row + 1, verdict) }
        }
        return (nil, rows.finish())
    }

    @Test func `Invalid rows are judged after 1,000 rows, every 10,000 more, and at the end`() {
        // The first 900 are good, all that follow are not: 10 percent at row 1,000.
        let late = read(20_000) { $0 >= 900 }
        #expect(late.row == 11_000 && late.verdict == .tooMany(invalid: 10_100, rows: 11_000))
        let early = read(20_000) { $0 >= 899 }
        #expect(early.row == 1_000 && early.verdict == .tooMany(invalid: 101, rows: 1_000))
        let end = read(10_999) { $0 >= 900 }
        #expect(end.row == nil && end.verdict == .tooMany(invalid: 10_099, rows: 10_999))
        #expect(read(50_000) { $0 % 10 == 0 } == (nil, nil))
        #expect(read(21_000) { $0 >= 18_900 || $0 == 5 }.row == 21_000)
    }

    @Test(arguments: [
        (UInt64(0), UInt64(0), 10.0, InvalidRowsGuard.Verdict.noRow),
        (0, 0, 100, .noRow), (3, 3, 10, .noValidRow(rows: 3)), (3, 3, 100, .noValidRow(rows: 3)),
        (3, 1, 10, .tooMany(invalid: 1, rows: 3)), (3, 1, 34, nil), (10, 1, 10, nil),
        (10, 1, 9.9, .tooMany(invalid: 1, rows: 10)), (9, 1, 10, .tooMany(invalid: 1, rows: 9)),
        (1, 0, 0, nil), (1_000_000, 1, 0, .tooMany(invalid: 1, rows: 1_000_000)),
        (1_000, 999, 100, nil),
    ])
    func `Invalid rows of a short list count`(
        rows: UInt64, invalid: UInt64, percent: Double, verdict: InvalidRowsGuard.Verdict?
    ) {
        #expect(read(rows, percent: percent) { $0 >= rows - invalid }.verdict == verdict)
    }

    @Test func `Invalid rows of earlier runs count`() {
        var rows = InvalidRowsGuard(maximumPercent: 10, rows: 12_345, invalid: 1_000)
        #expect(rows.rowsUntilCheck == 21_000 - 12_345)
        #expect(rows.note(rows: 8_654, invalid: 8_654) == nil)
        #expect(rows.note(isInvalid: true) == .tooMany(invalid: 9_655, rows: 21_000))
        #expect(InvalidRowsGuard(maximumPercent: 10).rowsUntilCheck == 1_000)
        for rows in [UInt64(1_000), 10_999] {
            #expect(
                InvalidRowsGuard(maximumPercent: 10, rows: rows).rowsUntilCheck
                    == 11_000 - rows)
        }
    }

    @Test func `A judgement about invalid rows is reported once and kept`() {
        var rows = InvalidRowsGuard(maximumPercent: 10)
        #expect(rows.note(rows: 1_000, invalid: 500) == .tooMany(invalid: 500, rows: 1_000))
        #expect(rows.note(rows: 10_000, invalid: 0) == nil)
        #expect(rows.finish() == .tooMany(invalid: 500, rows: 1_000))
    }
}
