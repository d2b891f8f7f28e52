/// `--max-invalid`: detects a list with so many invalid rows that it is most likely the wrong list,
/// or read in the wrong way.
///
///     counting ──row 1,000, 11,000, 21,000 …: more than P percent──▶ tooMany
///        └──the list's end──▶ noRow, noValidRow, tooMany, or nil: no problem
///
/// Every row that was read counts, whether it was sent, skipped or invalid. A run, the check of
/// first rows before it, `--dry-run` and `tokens check` use the same guard, and so reach the same
/// verdict.
public struct InvalidRowsGuard: Sendable {
    /// Problem of a list.
    public enum Verdict: Sendable, Equatable {
        /// The list has no row.
        case noRow
        /// Every row of the list is invalid.
        case noValidRow(rows: UInt64)
        /// More rows are invalid than allowed.
        case tooMany(invalid: UInt64, rows: UInt64)
    }

    /// Rows after which the list is checked.
    public struct Schedule: Sendable {
        /// Row of the first check.
        public var first: UInt64
        /// Number of rows between later checks.
        var interval: UInt64

        /// Creates a schedule. The contract fixes the defaults. Other values are for simulations
        /// with short lists.
        public init(first: UInt64 = firstCheck, interval: UInt64 = 10_000) {
            precondition(first > 0 && interval > 0)
            (self.first, self.interval) = (first, interval)
        }

        /// Returns the row of the next check after `rows` rows.
        public func check(after rows: UInt64) -> UInt64 {
            let next = rows < first ? first : first + ((rows - first) / interval + 1) * interval
            assert(next > rows && next - rows <= max(first, interval), "the next check is ahead")
            return next
        }
    }

    /// Row of the first check.
    public static let firstCheck: UInt64 = 1_000

    /// Maximum percentage of invalid rows; 100: no limit.
    let maximumPercent: Double
    /// Number of rows that were read.
    public private(set) var rows: UInt64
    /// Number of invalid rows.
    public private(set) var invalid: UInt64
    /// First problem found; nil if there is none so far.
    private(set) var verdict: Verdict?
    private let schedule: Schedule
    private var nextCheck: UInt64

    /// - Parameters:
    ///   - maximumPercent: `--max-invalid`, 0 to 100.
    ///   - rows: Number of rows that were read before the guard was created.
    ///   - invalid: Number of invalid rows among them.
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

    /// Number of rows up to the next check; at least 1.
    public var rowsUntilCheck: UInt64 { nextCheck - rows }

    /// Whether more rows are invalid than allowed.
    var isExceeded: Bool { Double(invalid) * 100 > maximumPercent * Double(rows) }

    /// Counts rows.
    ///
    /// - Parameters:
    ///   - rows: Number of rows; for an exact check, not more than `rowsUntilCheck`.
    ///   - invalid: Number of invalid rows among them.
    /// - Returns: The problem in the call that finds it; nil in all other calls.
    public mutating func note(rows: UInt64, invalid: UInt64) -> Verdict? {
        precondition(invalid <= rows, "an invalid row is a row")
        self.rows += rows
        self.invalid += invalid
        guard self.rows >= nextCheck else { return nil }
        nextCheck = schedule.check(after: self.rows)
        return check()
    }

    /// Counts one row.
    public mutating func note(isInvalid: Bool) -> Verdict? {
        note(rows: 1, invalid: isInvalid ? 1 : 0)
    }

    /// Checks the whole list at its end.
    ///
    /// - Returns: The problem, even if it was found before.
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

    /// Checks the rows read so far, regardless of the schedule.
    public mutating func check() -> Verdict? {
        guard verdict == nil, isExceeded else { return nil }
        verdict = .tooMany(invalid: invalid, rows: rows)
        return verdict
    }
}
