internal import BroadsideAPNs
internal import BroadsideRows
internal import BroadsideSupport

/// Rows that one pass over a list sends: the rows of time zones in which it is time to send. All
/// other rows stay unsent for a later pass.
package struct DueRows: Sendable {
    /// What a pass does with the rows of a zone.
    package enum Action: Hashable, Sendable {
        /// Sends the rows.
        case send
        /// Leaves the rows to a later pass.
        case wait
        /// Settles the rows as skipped, because their time has passed.
        case skip
    }

    private let zones: RowZones
    /// Action for each zone, by its number minus `RowZones.firstZone`.
    private let actions: [Action]
    /// Number of rows in the list divided by the number of due rows. Chunks may be larger by this
    /// factor.
    private let stride: Int

    /// Number of rows whose zones are read to limit a chunk; a chunk rarely has more rows.
    private static let windowCount = 8_192
    /// Maximum value of `stride`.
    private static let strideLimit: UInt64 = 1_024

    /// - Parameter action: Returns the action for a zone, by its index in `zones`.
    package init(_ zones: RowZones, _ action: (Int) -> Action) {
        self.zones = zones
        let actions = zones.zones.indices.map(action)
        self.actions = actions
        var (due, waiting): (UInt64, UInt64) = (0, 0)
        for (zone, action) in zip(zones.zones, actions) {
            if action == .wait { waiting += zone.rows } else { due += zone.rows }
        }
        stride = Int(min(Self.strideLimit, max(1, (due + waiting) / max(1, due))))
    }

    private func action(_ number: UInt16) -> Action {
        guard number >= RowZones.firstZone else { return .send }
        return actions[Int(number - RowZones.firstZone)]
    }

    /// Whether a range has unsent rows that the pass sends or skips.
    func hasAny(in rows: Range<UInt64>) throws(BroadsideError) -> Bool {
        try zones.numbers(of: rows).contains { action($0) != .wait }
    }

    /// Number of rows in a range that are in a selection and due.
    func count(in rows: Range<UInt64>, of selection: RowSelection) throws(BroadsideError) -> UInt64
    {
        var count: UInt64 = 0
        var first = rows.lowerBound
        let end = min(rows.upperBound, zones.endRow)
        while first < end {
            let window = first..<min(end, first + UInt64(ChunkReservation.rowCountMax))
            for (index, number) in try zones.numbers(of: window).enumerated()
            where number >= RowZones.firstZone && action(number) == .send
                && selection.contains(first + UInt64(index))
            {
                count += 1
            }
            first = window.upperBound
        }
        return count
    }

    /// Converts a limit on the due rows of a chunk into a limit on all its rows.
    ///
    /// - Parameters:
    ///   - row: First row of the chunk.
    ///   - selection: Rows that count as due.
    func rowLimit(
        _ limit: Int, from row: UInt64, of selection: RowSelection
    ) throws(BroadsideError) -> Int {
        let (product, overflow) = limit.multipliedReportingOverflow(
            by: stride * Int(selection.divisor))
        let most = min(overflow ? .max : product, max(limit, Self.windowCount))
        guard most > limit else { return limit }
        var due = 0
        let numbers = try zones.numbers(of: row..<row + UInt64(most))
        for (index, number) in numbers.enumerated()
        where number >= RowZones.firstZone && action(number) == .send
            && selection.contains(row + UInt64(index))
        {
            due += 1
            if due == limit { return index + 1 }
        }
        return most
    }

    /// Marks the rows of a chunk that the pass does not send.
    func mark(_ chunk: RowChunk) throws(BroadsideError) {
        let first = chunk.start.row
        // A row in doubt of an erased device was not sent either, if its zone is unknown or skipped.
        let numbers = try zones.numbersWithErased(of: first..<(first + UInt64(chunk.rowCount)))
        guard
            numbers.contains(where: { $0 == RowZones.unknown || action($0) != .send })
        else { return }
        var dispositions =
            chunk.dispositions ?? Array(repeating: .send, count: chunk.rowCount)
        assert(dispositions.count == chunk.rowCount, "each row has one disposition")
        // With no other reference to the array, it is changed in place instead of copied.
        chunk.dispositions = nil
        for (index, number) in numbers.enumerated() {
            switch (action(number), dispositions[index]) {
            case (.wait, .send): dispositions[index] = .notDue
            // The row stays in doubt, or keeps its verdict.
            case (.wait, .sendAgain): dispositions[index] = .settled
            // A row in doubt was not sent either, because the earlier run also skipped it.
            case (.skip, .send), (.skip, .sendAgain), (.skip, .becomesUnknown):
                dispositions[index] = .skipped(.late)
            case (.send, .send), (.send, .sendAgain), (.send, .becomesUnknown):
                if number == RowZones.unknown { dispositions[index] = .invalid(.badZone) }
            case (.skip, .erased): dispositions[index] = .erased(mayHaveBeenSent: false)
            case (.send, .erased) where number == RowZones.unknown:
                dispositions[index] = .erased(mayHaveBeenSent: false)
            default: break
            }
        }
        chunk.dispositions = dispositions
    }
}
