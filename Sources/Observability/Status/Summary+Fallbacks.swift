package import BroadsidePayloads
import BroadsideSupport

/// JSON about rows with a value for which there is no payload.
struct PayloadFallbacks: Encodable {
    /// Total number of rows.
    let rows: UInt64
    /// Rows by value.
    let values: [String: UInt64]
    /// Rows with values that are not counted separately.
    let others: UInt64

    init(_ counts: FallbackCounts) {
        rows = counts.rows
        values = counts.byValue
        others = counts.others
    }
}

extension FallbackCounts {
    /// Maximum number of values listed by name.
    private static let namedLimit = 10

    /// Text about the rows that lack a payload file for their value in the `--payload-by` column:
    /// the number of these rows, and their values. Nil if there are no such rows.
    package var words: String? {
        guard rows > 0 else { return nil }
        let sorted = byValue.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
        var parts = sorted.prefix(Self.namedLimit).map { value, count in
            "\(value.isEmpty ? "(empty)" : ForeignText.escapedName(value)) \(grouped(count))"
        }
        let rest = sorted.dropFirst(Self.namedLimit).reduce(others) { $0 + $1.value }
        if rest > 0 { parts.append("others \(grouped(rest))") }
        let subject = rows == 1 ? "1 row has" : "\(grouped(rows)) rows have"
        return "\(subject) a value without a payload of its own: \(parts.joined(separator: ", "))"
    }
}
