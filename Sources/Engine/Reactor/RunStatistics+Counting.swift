import Campaign

extension RunStatistics {
    /// Counts a row that is settled otherwise than by 200, under a reason that has a code.
    mutating func count(_ state: RowState, reason: UInt8) {
        count(state)
        reasons.add(code: reason)
    }

    /// The same under a reason in the server's own words.
    mutating func count(_ state: RowState, reasonText: RawSpan) {
        count(state)
        reasons.add(text: reasonText)
    }

    private mutating func count(_ state: RowState) {
        switch state {
        case .accepted: accepted += 1
        case .rejected: rejected += 1
        case .invalid: invalid += 1
        case .skipped: skipped += 1
        case .failed: failed += 1
        case .unknown: unknown += 1
        case .remaining, .inDoubt: preconditionFailure("an open row is not settled")
        }
    }
}
