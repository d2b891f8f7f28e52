import BroadsideLedgerFormat
import BroadsideRows

extension RowChunk {
    /// Returns the rows that are due later, and marks them, so that this pass skips them; nil if
    /// there are none. The record of the chunk's reservation releases these rows.
    func takeRowsNotDue() -> ReleasedRows? {
        guard var dispositions, dispositions.contains(.notDue) else { return nil }
        // Without another reference, the array is changed in place.
        self.dispositions = nil
        var released = ReleasedRows(count: rowCount)
        for index in dispositions.indices where dispositions[index] == .notDue {
            released.insert(index)
            dispositions[index] = .settled
        }
        self.dispositions = dispositions
        return released
    }
}
