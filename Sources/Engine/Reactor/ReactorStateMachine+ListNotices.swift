import BroadsideLists
import BroadsidePolicy
import BroadsideRows
import BroadsideSupport

/// Events about rows that show a wrong or damaged list.
extension ReactorStateMachine where Records: ~Copyable {
    /// Records an event if the row that was read last is a header. A run records two such events at
    /// most: for the first header with columns other than those of the list's header, and for the
    /// first header with the same columns. The latter is ignored among the first rows of the list,
    /// because the check of these rows before the run warns about it.
    mutating func noteHeader(at row: UInt64, now: Now) {
        let (same, other) = (run.resources.sameHeaderNotice, run.resources.headerNotice)
        guard !same.isTaken || !other.isTaken, let header = rows.chunks.reader.repeatedHeader,
            !header.isSame || row >= InvalidRowsGuard.firstCheck,
            (header.isSame ? same : other).take()
        else { return }
        let text = header.isSame ? RepeatedHeader.sameText : header.text
        metrics.events.append(
            RunEvent(
                .listHeader, .warning, "line \(header.line) of the list \(text)",
                milliseconds: now.wallMilliseconds))
    }

    /// Counts the row that was read last if it is overwritten with zero bytes. A run records an event
    /// about the first such row. The first rows of the list do not count, because the check of these
    /// rows before the run warns about them.
    mutating func noteOverwritten(at row: UInt64, now: Now) {
        guard let line = rows.chunks.reader.overwrittenLine, row >= InvalidRowsGuard.firstCheck
        else { return }
        metrics.statistics.overwritten.add(OverwrittenRows(line: line))
        guard run.resources.overwrittenNotice.take() else { return }
        metrics.events.append(
            RunEvent(
                .listDamage, .warning,
                "line \(line) of the list contains zero bytes: the list is damaged, and other rows "
                    + "may be missing",
                milliseconds: now.wallMilliseconds))
    }
}
