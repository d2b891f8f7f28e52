import Campaign

extension RunStatistics {
    /// Counts a row that is settled otherwise than by 200, under a reason that has a code.
    mutating func count(_ state: RowState, reason: UInt8) {
        count(state)
        reasons[reason, default: 0] += 1
    }

    /// The same under a reason in the server's own words.
    mutating func count(_ state: RowState, reasonText: RawSpan) {
        count(state)
        let text = String(
            decoding: unsafe reasonText.withUnsafeBytes { unsafe Array($0) }, as: UTF8.self)
        if reasonTexts[text] != nil || reasonTexts.count < Self.reasonTextsLimit {
            reasonTexts[text, default: 0] += 1
        } else {
            reasonTexts["(others)", default: 0] += 1
        }
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
