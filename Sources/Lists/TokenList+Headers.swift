package import BroadsideRows
package import BroadsideSupport

extension TokenList {
    /// Returns the error for a list with a second header whose columns differ from those of the
    /// first; nil if there is no such header. The values of rows after the second header belong to
    /// its columns.
    ///
    /// - Parameter isBegun: Whether the campaign has begun. The list can't be corrected then, so
    ///   the second header only causes a warning.
    package func refusal(
        of headers: RepeatedHeaders, isBegun: Bool = false
    ) -> BroadsideError? {
        guard !isBegun, let other = headers.other else { return nil }
        return .request(
            name,
            ": line \(other.line) \(other.place): join only files that have the same columns in the "
                + "same order\(other.isJoined ? ", and end each with a line break" : "")")
    }

    /// Warns about rows that are headers, unless `refusal` names one of them, and about lines with
    /// several JSON objects.
    ///
    /// - Parameter isBegun: Whether the campaign has begun.
    package func warn(of headers: RepeatedHeaders, isBegun: Bool = false) {
        if let line = headers.firstJoinedLine {
            let lines =
                headers.joinedLineCount == 1
                ? "line \(line) has several JSON objects, so it is invalid"
                : "\(grouped(headers.joinedLineCount)) lines have several JSON objects, the first is "
                    + "line \(line), so they are invalid"
            // The list of a campaign that has begun can't be corrected.
            standardErrorLine(
                "broadside: warning: \(name): \(lines): were files joined without a line break "
                    + "between them?"
                    + (isBegun ? "" : " Write one object per line, as jq -c . does"))
        }
        if let other = headers.other {
            guard isBegun else { return }
            return standardErrorLine(
                "broadside: warning: \(name): line \(other.line) \(other.text)")
        }
        guard let first = headers.first else { return }
        let verb = first.isJoined ? "end with" : "repeat"
        let lines =
            headers.count == 1
            ? "line \(first.line) \(first.isJoined ? "ends with" : "repeats") the header and is"
            : "\(grouped(headers.count)) lines \(verb) the header, the first is line "
                + "\(first.line): each is"
        standardErrorLine(
            "broadside: warning: \(name): \(lines) "
                + (first.isJoined
                    ? "invalid, because files were joined without a line break: end each with one"
                    : "not a device: join files without their headers"))
    }
}

extension RepeatedHeader {
    /// Description of a header with other columns.
    fileprivate var place: String {
        "\(isJoined ? "ends with" : "is") another header, with the columns \(shownColumns(columns))"
            + (isJoined ? ", because files were joined without a line break" : "")
    }

    /// Description of a header with other columns in the list of a campaign that has begun.
    package var text: String {
        "\(place): the values of later rows belong to other columns: stop the run, and send the rest "
            + "with a corrected list, as another campaign"
    }

    /// Description of a header with the same columns in the list of a campaign that has begun.
    package static let sameText =
        "repeats the header and is not a device: was the list joined to itself or to another file?"
}
