/// `--max-invalid`: whether so many rows of a list are invalid that it is most likely another list,
/// or one that is read the wrong way.
///
///     counting ──row 1,000, 11,000, 21,000 …: more than P percent──▶ tooMany
///        └──the list's end──▶ noRow, noValidRow, tooMany, or nil: nothing is wrong
///
/// Rows that count are those that were read: sent, skipped and invalid ones alike. It is the same
/// value for whoever reads a list (a run, the look before it, `--dry-run`, `tokens check`), so that
/// all of them say the same.
public struct InvalidRowsGuard: Sendable {
    /// What is wrong with a list.
    public enum Verdict: Sendable, Equatable {
        /// The list has no row.
        case noRow
        /// Every row of the list is invalid.
        case noValidRow(rows: UInt64)
        /// More rows are invalid than may be.
        case tooMany(invalid: UInt64, rows: UInt64)
    }

    /// After which rows it is checked.
    public struct Schedule: Sendable {
        /// The row after which it is checked first.
        public var first: UInt64
        /// After so many further rows it is checked again.
        var interval: UInt64

        /// Always the contract's, but in simulations whose lists are short.
        public init(first: UInt64 = firstCheck, interval: UInt64 = 10_000) {
            precondition(first > 0 && interval > 0)
            (self.first, self.interval) = (first, interval)
        }

        /// The next check after so many rows.
        public func check(after rows: UInt64) -> UInt64 {
            rows < first ? first : first + ((rows - first) / interval + 1) * interval
        }
    }

    /// The row after which it is checked first.
    public static let firstCheck: UInt64 = 1_000

    /// The most rows in a hundred that may be invalid; 100: any number.
    let maximumPercent: Double
    /// Rows that were read.
    public private(set) var rows: UInt64
    /// How many of them are invalid.
    public private(set) var invalid: UInt64
    /// What was found wrong first; nil while nothing was.
    private(set) var verdict: Verdict?
    private let schedule: Schedule
    private var nextCheck: UInt64

    /// - Parameters:
    ///   - maximumPercent: `--max-invalid`, 0 to 100.
    ///   - rows: Rows that were read before.
    ///   - invalid: How many of them are invalid.
    public init(
        maximumPercent: Double, rows: UInt64 = 0, invalid: UInt64 = 0,
        schedule: Schedule = Schedule()
    ) {
        precondition(invalid <= rows, "an invalid row is a row")
        self.maximumPercent = maximumPercent
        self.rows = rows
        self.invalid = invalid
        self.schedule = schedule
        nextCheck = schedule.check(after: rows)
    }

    /// Rows that may be read until it is checked next; at least 1.
    public var rowsUntilCheck: UInt64 { nextCheck - rows }

    /// True where more rows are invalid than may be.
    var isExceeded: Bool { Double(invalid) * 100 > maximumPercent * Double(rows) }

    /// Takes note of rows.
    ///
    /// - Parameters:
    ///   - rows: How many; not more than `rowsUntilCheck` where the check is to be exact.
    ///   - invalid: How many of them are invalid.
    /// - Returns: What is wrong, once, when it was found.
    public mutating func note(rows: UInt64, invalid: UInt64) -> Verdict? {
        precondition(invalid <= rows, "an invalid row is a row")
        self.rows += rows
        self.invalid += invalid
        guard self.rows >= nextCheck else { return nil }
        nextCheck = schedule.check(after: self.rows)
        return check()
    }

    /// Takes note of one row.
    public mutating func note(isInvalid: Bool) -> Verdict? {
        note(rows: 1, invalid: isInvalid ? 1 : 0)
    }

    /// The list is at its end.
    ///
    /// - Returns: What is wrong with it, also where that was found before.
    public mutating func finish() -> Verdict? {
        if rows == 0 {
            verdict = .noRow
        } else if invalid == rows {
            verdict = .noValidRow(rows: rows)
        } else {
            _ = check()
        }
        return verdict
    }

    /// Checks the rows that were read so far, wherever it stands.
    public mutating func check() -> Verdict? {
        guard verdict == nil, isExceeded else { return nil }
        verdict = .tooMany(invalid: invalid, rows: rows)
        return verdict
    }
}
