package import BroadsideSupport

extension BroadsideError {
    /// Error for a registration column in which no time is readable. Decisions based on such a
    /// column would be arbitrary.
    ///
    /// - Parameters:
    ///   - column: Name of the column.
    ///   - option: The option that names the column.
    ///   - list: The list.
    ///   - firstLine: Line of the first time that was needed and could not be read; nil if there is
    ///     none.
    package static func unreadableRegistrations(
        _ column: String, option: String = "registered-column", in list: InputName,
        firstLine: UInt64?
    ) -> BroadsideError {
        .usage(
            option,
            "'\(printable(column))': no row of \(list) has a readable time in this column"
                + (firstLine.map { " (see line \($0))" } ?? "")
                + ": write Unix seconds or ISO 8601, from 2009 to tomorrow, such as 1767268800 or "
                + "2026-01-01T12:00:00Z (if times are seconds since 2001, add 978307200)"
        )
    }
}
