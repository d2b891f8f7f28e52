internal import BroadsideSupport

/// Rows with a JSON array or object in a column that should have one value. Such a value equals no
/// text.
package struct NestedValues: Sendable {
    /// Number of these rows.
    package private(set) var count: UInt64 = 0
    /// Line of the first of these rows.
    private var firstLine: UInt64 = 0

    /// Creates a count of 0.
    package init() {}

    package mutating func note(line: UInt64) {
        if count == 0 { firstLine = line }
        count += 1
    }

    /// Subject of a warning, such as `2 rows have a JSON array or object, the first on line 5`.
    package var subject: String {
        count == 1
            ? "1 row has a JSON array or object, on line \(firstLine)"
            : "\(grouped(count)) rows have a JSON array or object, the first on line \(firstLine)"
    }

    /// Problem of a column without any text, with advice.
    package func problem(of column: String) -> String {
        "no value is a text or number, and line \(firstLine) has an array or object: name a key "
            + "inside it, as in \(shownColumn(column)).id"
    }
}
