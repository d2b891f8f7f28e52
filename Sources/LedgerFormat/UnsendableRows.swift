public import BroadsideRows

/// Failed and unknown rows that the option `--retry` does not send again.
public struct UnsendableRows: Sendable, Equatable {
    /// Rows whose device was erased by `ledger forget`, by state.
    public var erased = RowCounts()
    /// Rows beyond the limit of the latest run, by state.
    public var beyondLimit = RowCounts()

    /// Creates the counts of no row.
    public init() {}

    /// Number of these rows in a state.
    public subscript(_ state: RowState) -> UInt64 { erased[state] + beyondLimit[state] }

    /// Counts a row if it is one that the option would name, but that it does not send.
    ///
    /// - Parameter isBeyondLimit: Whether the row is beyond the limit of the latest run.
    mutating func count(_ row: RowVerdict, isBeyondLimit: Bool) {
        guard row.state == .failed || row.state == .unknown else { return }
        if row.isErased {
            erased[row.state] += 1
        } else if isBeyondLimit {
            beyondLimit[row.state] += 1
        }
    }

    mutating func add(_ other: UnsendableRows) {
        erased += other.erased
        beyondLimit += other.beyondLimit
    }
}
