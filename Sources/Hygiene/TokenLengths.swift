import BroadsideAPNs

/// Lengths of a list's tokens in digits, and the line on which each length occurs first.
///
/// If two files are joined without a line end between them, two tokens become one that looks valid.
/// Its length is the sum of two lengths that are usual in the list.
public struct TokenLengths: Sendable {
    /// A length that is the sum of two usual ones.
    public struct Glued: Sendable, Equatable {
        /// Line of the first token of this length.
        public var line: UInt64
        /// Number of digits.
        public var digits: Int
        /// The two usual lengths whose sum is `digits`.
        public var parts: [Int]
        /// Number of rows with a token of this length.
        public var rows: UInt64
    }

    /// Suspicious lengths that no token of another list has.
    public struct Absent: Sendable, Equatable {
        /// Numbers of digits, in ascending order.
        public var digits: [Int]
        /// Number of rows with a token of one of these lengths.
        public var rows: UInt64
        /// Line of the first of these rows.
        public var line: UInt64
    }

    /// A length is usual if its number of rows is at least this many times that of the suspected
    /// sum.
    private static let usualFactor: UInt64 = 4
    /// A length is rare if only one row has it, or at most one in this number of rows.
    private static let rareDivisor: UInt64 = 1_000
    /// Number of digits of the shortest tokens that Apple is known to have issued.
    public static let shortestIssued = 64

    /// Number of rows with tokens of each length; the index is the number of digits.
    public private(set) var rows = [UInt64](repeating: 0, count: TokenText.maximumDigitCount + 1)
    private var firstLines = [UInt64](repeating: 0, count: TokenText.maximumDigitCount + 1)

    /// Creates empty counts.
    public init() {}

    /// Counts a token.
    ///
    /// - Parameters:
    ///   - digits: Number of the token's digits.
    ///   - line: Line on which the token's row starts.
    public mutating func note(_ digits: Int, line: UInt64) {
        assert(digits % 2 == 0, "a token has whole bytes")
        assert(rows[digits] == 0 || firstLines[digits] <= line, "rows come in the list's order")
        if rows[digits] == 0 { firstLines[digits] = line }
        rows[digits] += 1
    }

    /// Suspicious lengths of this list's tokens that no token of another list has; nil if there are
    /// none. A length is suspicious if it is below `shortestIssued`, or if it is rare in this list.
    /// Any other length may belong to an app's second kind of token.
    ///
    /// - Parameters:
    ///   - ignored: A length that is not compared; nil to compare all lengths.
    ///   - includesRare: Whether rare lengths are compared, too.
    public func absent(
        from other: TokenLengths, except ignored: Int? = nil, includesRare: Bool = true
    ) -> Absent? {
        let rare = includesRare ? max(1, rows.reduce(0, +) / Self.rareDivisor) : 0
        let digits = rows.indices.filter {
            rows[$0] > 0 && other.rows[$0] == 0 && $0 != ignored
                && ($0 < Self.shortestIssued || rows[$0] <= rare)
        }
        guard let line = digits.map({ firstLines[$0] }).min() else { return nil }
        return Absent(digits: digits, rows: digits.reduce(0) { $0 + rows[$1] }, line: line)
    }

    /// Number of digits of the longest tokens, and the line of the first of these tokens; nil if
    /// they have at least `shortestIssued` digits, or if there are no tokens.
    public var longestIfShort: (digits: Int, line: UInt64)? {
        guard let digits = rows.lastIndex(where: { $0 > 0 }), digits < Self.shortestIssued else {
            return nil
        }
        return (digits, firstLines[digits])
    }

    /// First token whose length is the sum of two usual lengths; nil if there is none.
    public var glued: Glued? { glued(usualFactor: Self.usualFactor) }

    /// First token whose length is the sum of two usual lengths; nil if there is none.
    ///
    /// - Parameter usualFactor: A length is usual if its number of rows is at least this many times
    ///   that of the suspected sum.
    public func glued(usualFactor: UInt64) -> Glued? {
        var found: Glued?
        for digits in rows.indices where rows[digits] > 0 {
            let isUsual = { (length: Int) in
                self.rows[length] >= self.rows[digits] * usualFactor
            }
            let first = (1...max(1, digits / 2)).first { isUsual($0) && isUsual(digits - $0) }
            guard let first, found.map({ firstLines[digits] < $0.line }) ?? true else { continue }
            found = Glued(
                line: firstLines[digits], digits: digits, parts: [first, digits - first],
                rows: rows[digits])
        }
        return found
    }
}
