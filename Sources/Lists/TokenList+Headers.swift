package import BroadsideRows
package import BroadsideSupport

extension TokenList {
    /// Returns the error for a list in which a header with other columns follows rows; nil if there
    /// is no such header. The values of the rows after it belong to other columns.
    package func refusal(of headers: RepeatedHeaders) -> BroadsideError? {
        guard let other = headers.other else { return nil }
        return .request(
            name,
            ": line \(other.line) is another header, with the columns "
                + "\(shownColumns(other.columns)): join only files that have the same columns in "
                + "the same order")
    }

    /// Warns about rows that repeat the header.
    package func warn(of headers: RepeatedHeaders) {
        // `refusal` names a header with other columns.
        guard let first = headers.first, headers.other == nil else { return }
        let lines =
            headers.count == 1
            ? "line \(first.line) repeats the header and is"
            : "\(grouped(headers.count)) lines repeat the header, the first is line "
                + "\(first.line): each is"
        standardErrorLine(
            "broadside: warning: \(name): \(lines) not a device: join files without their headers")
    }
}
