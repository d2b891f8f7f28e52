import BroadsideAPNs

/// How many digits the tokens of a list have, and where each length occurs first.
///
/// Two files that are joined without a line end between them make one token of two, which looks like a
/// valid one: its length is the sum of two that are usual in the list.
public struct TokenLengths: Sendable {
    /// A length that is the sum of two usual ones.
    public struct Glued: Sendable, Equatable {
        /// The line of the first token of this length.
        public var line: UInt64
        /// Its digits.
        public var digits: Int
        /// The two lengths that it is the sum of.
        public var parts: [Int]
        /// Rows with a token of this length.
        public var rows: UInt64
    }

    /// A length is usual if it occurs this many times as often as the sum.
    private static let usualFactor: UInt64 = 4

    /// Rows by the number of their token's digits.
    public private(set) var rows = [UInt64](repeating: 0, count: TokenText.maximumDigitCount + 1)
    private var firstLines = [UInt64](repeating: 0, count: TokenText.maximumDigitCount + 1)

    /// No token yet.
    public init() {}

    /// Counts a token.
    ///
    /// - Parameters:
    ///   - digits: How many it has.
    ///   - line: The line on which its row starts.
    public mutating func note(_ digits: Int, line: UInt64) {
        if rows[digits] == 0 { firstLines[digits] = line }
        rows[digits] += 1
    }

    /// The first token that is as long as two usual ones; nil if there is none.
    public var glued: Glued? {
        var found: Glued?
        for digits in rows.indices where rows[digits] > 0 {
            let isUsual = { (length: Int) in
                self.rows[length] >= self.rows[digits] * Self.usualFactor
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
