package import BroadsidePayloads
import BroadsideSupport

/// What the JSON says of rows without a payload of their value's own.
struct PayloadFallbacks: Encodable {
    /// All of them.
    let rows: UInt64
    /// Rows by value.
    let values: [String: UInt64]
    /// Rows of values that are not told apart.
    let others: UInt64

    init(_ counts: FallbackCounts) {
        rows = counts.rows
        values = counts.byValue
        others = counts.others
    }
}

extension FallbackCounts {
    /// Values that are named.
    private static let namedLimit = 10

    /// How many rows had no payload of their value's own, and which values those were; nil: none.
    package var words: String? {
        guard rows > 0 else { return nil }
        let sorted = byValue.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
        var parts = sorted.prefix(Self.namedLimit).map { value, count in
            "\(value.isEmpty ? "(empty)" : ForeignText.escaped(value)) \(count)"
        }
        let rest = sorted.dropFirst(Self.namedLimit).reduce(others) { $0 + $1.value }
        if rest > 0 { parts.append("others \(rest)") }
        let subject = rows == 1 ? "1 row has" : "\(rows) rows have"
        return "\(subject) no payload of their value's own: \(parts.joined(separator: ", "))"
    }
}
