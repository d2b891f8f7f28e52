import BroadsidePayloads
import BroadsideSupport

/// The values of the `--payload-by` column, if no row that was read has a payload file for its
/// value. The column, the directory or the names of the files are then probably wrong.
struct UnmatchedValues {
    private let counts: FallbackCounts

    /// Minimum number of rows with a value. Fewer rows may all have the same rare value.
    private static let rowsMinimum: UInt64 = 10

    /// Limit on the values, and on the files, that a message names.
    private static let namedLimit = 3

    /// - Parameter counts: Counts of the rows that were read. None of these rows has a payload file
    ///   for its value.
    /// - Returns: Nil if too few rows have a value.
    init?(_ counts: FallbackCounts) {
        guard counts.namedRows >= Self.rowsMinimum else { return nil }
        self.counts = counts
    }

    /// Problem and advice.
    ///
    /// - Parameters:
    ///   - files: Names of the directory's payload files.
    ///   - isOfFirstRows: Whether the campaign may have other rows.
    func message(files: [String], isOfFirstRows: Bool) -> String {
        let values = counts.byValue.filter { !$0.key.allSatisfy(\.isWhitespace) }
            .sorted { ($1.value, $0.key) < ($0.value, $1.key) }
            .map { "'\(ForeignText.escapedName($0.key))'" }
        let names = files.filter { PayloadFiles.value(ofName: $0) != "default" }
            .map { ForeignText.escapedName($0) }
        let rows = (isOfFirstRows ? "first " : "") + "\(grouped(counts.namedRows)) rows"
        return "none of the \(rows) that have a value has a payload file for it (values: "
            + "\(Self.list(values)); files: \(Self.list(names))), so they get the default payload: "
            + "name the files after the values, or name another column; to send one payload to "
            + "all rows, name it with --payload, without --payload-by"
    }

    private static func list(_ names: [String]) -> String {
        if names.isEmpty { return "none" }
        return names.prefix(namedLimit).joined(separator: ", ")
            + (names.count > namedLimit ? " and others" : "")
    }

    /// Warns, before anything is sent, that all devices would get the default payload.
    ///
    /// - Parameter isOfFirstRows: Whether the campaign may have other rows.
    func warn(_ plan: Plan, isOfFirstRows: Bool) {
        let option = plan.options.payloadBy ?? ""
        let directory = (try? PayloadFiles.choiceDirectory(option))?.directory ?? ""
        let files = (try? PayloadFiles.payloadNames(in: directory)) ?? []
        standardErrorLine(
            "broadside: warning: --payload-by '\(printable(option))': "
                + message(files: files, isOfFirstRows: isOfFirstRows))
    }
}
