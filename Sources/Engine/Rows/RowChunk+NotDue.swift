import BroadsideLedgerFormat
import BroadsideRows

extension RowChunk {
    /// Rows that are due at a later time, and are passed over from now on; nil if there are none.
    /// The reservation of the chunk releases them.
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
