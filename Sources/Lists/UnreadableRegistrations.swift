package import BroadsideSupport

extension BroadsideError {
    /// Error for a registration column without a readable time, because its decisions would be
    /// arbitrary.
    ///
    /// - Parameters:
    ///   - column: Its name.
    ///   - option: The option that names it.
    ///   - list: The list.
    ///   - firstLine: Line of a time that had to be read.
    package static func unreadableRegistrations(
        _ column: String, option: String = "registered-column", in list: InputName,
        firstLine: UInt64?
    ) -> BroadsideError {
        .usage(
            option,
            "'\(printable(column))': no row of \(list) has a time in it that can be read"
                + (firstLine.map { ", see line \($0)" } ?? "")
                + ": write Unix seconds or ISO 8601, from 2009 to tomorrow, such as 1767268800 or "
                + "2026-01-01T12:00:00Z (seconds since 2001 become Unix seconds by adding 978307200)"
        )
    }
}
