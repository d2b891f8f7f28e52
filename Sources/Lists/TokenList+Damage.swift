package import BroadsideRows
package import BroadsideSupport
internal import Synchronization

/// Signs that rows of a list are missing: rows that are overwritten with zero bytes, and a last row
/// that was cut off. Each command that uses a list asks for them here, after it has read the rows.
extension TokenList {
    /// Warns if rows are probably missing. A list is named once, however often it is read.
    ///
    /// - Parameter overwritten: Overwritten rows, if the caller counted them.
    package func warnOfDamage(
        _ overwritten: OverwrittenRows = OverwrittenRows()
    ) throws(BroadsideError) {
        let words: String
        if let rows = Self.words(overwritten) {
            words = "\(rows): the file is damaged, and other rows may be missing"
        } else if let problem = try endProblem() {
            words =
                "the last row has no line end and \(problem.text): was the list cut off? Other rows "
                + "may be missing, too"
        } else {
            return
        }
        guard !isDamageNamed.exchange(true, ordering: .relaxed) else { return }
        standardErrorLine("broadside: warning: \(name): \(words)")
    }

    /// Refuses a list from which rows are missing. If the last row may also be whole, prints a
    /// warning.
    ///
    /// - Parameters:
    ///   - overwritten: Overwritten rows of the list.
    ///   - consequence: What the missing rows would mean, as the end of a sentence.
    package func refuseDamage(
        _ overwritten: OverwrittenRows, so consequence: String
    ) throws(BroadsideError) {
        if let rows = Self.words(overwritten) {
            throw .request(
                name,
                ": \(rows), so the file is damaged and \(consequence): replace it with an intact copy"
            )
        }
        guard let problem = try endProblem(), !problem.mayBeWhole else { return try warnOfDamage() }
        throw .request(
            name,
            ": the last row has no line end and \(problem.text), so the list was probably cut off and "
                + "\(consequence): replace it with the whole list; if it is whole, end its last row "
                + "with a line break")
    }

    /// Description of overwritten rows; nil if there are none.
    private static func words(_ rows: OverwrittenRows) -> String? {
        let line = rows.firstLine
        switch rows.count {
        case 0: return nil
        case 1: return "\(line.map { "the row on line \($0)" } ?? "1 row") contains zero bytes"
        default:
            let first = line.map { ", the first on line \($0)," } ?? ""
            return "\(grouped(rows.count)) rows\(first) contain zero bytes"
        }
    }
}
