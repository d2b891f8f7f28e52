package import BroadsideLedgerFormat
package import BroadsideRows
package import BroadsideSupport

/// Cursor over the rows that a run covers, in the order of the list. A run uses it to read rows
/// before it sends them. Commands without a run use it, too.
///
/// The cursor has one chunk at a time, from its own pool. It need not be closed.
package struct RowCursor: ~Copyable {
    /// Source of the rows. It also has the list's header.
    package let source: ListSource
    /// Reader positioned at the latest row.
    package private(set) var reader: RowReader
    /// What the run does with the latest row: sends it, or skips it for a reason.
    package private(set) var disposition = RowDisposition.send
    private var dispositions: [RowDisposition]?
    /// Offset of the current chunk in the list.
    private var chunkOffset: UInt64 = 0
    private let rowsAtOnce: Int
    private let endsOnSignals: Bool
    private var progress: ReadingProgress?

    /// Creates a cursor before the first row.
    ///
    /// - Parameters:
    ///   - selection: Rows to return. Rows that the run skips are included.
    ///   - left: Work that earlier runs left. Only rows that need work are returned; nil: all rows
    ///     of the selection.
    ///   - layout: Columns to read; nil for the list's layout.
    ///   - rowsAtOnce: Maximum number of rows that are read ahead of use. A fault of the list
    ///     beyond these rows is found later.
    ///   - endsOnSignals: Whether a stop signal ends the reading: true for reading a whole list
    ///     before a run; false for short reads, which are completed instead.
    ///   - showsProgress: Whether the reading progress is shown on a terminal.
    package init(
        _ list: TokenList, _ selection: ListSelection = ListSelection(),
        left: consuming ResumePlan? = nil, layout: RowLayout? = nil, rowsAtOnce: Int = .max,
        endsOnSignals: Bool = false, showsProgress: Bool = false
    ) throws(BroadsideError) {
        source = try ListSource(
            list: list, pool: ChunkPool(limit: ChunkPool.oneReader), plan: left,
            selection: selection)
        reader = RowReader(layout: layout ?? list.layout)
        self.rowsAtOnce = rowsAtOnce
        self.endsOnSignals = endsOnSignals
        progress = showsProgress ? ReadingProgress(list) : nil
    }

    /// Returns the next row; nil at the end of the list.
    ///
    /// - Throws: The reason why the list can't be read further; exit code 3 if a signal ended the
    ///   reading.
    package mutating func next() throws(BroadsideError) -> RowReader.Row? {
        while true {
            while let row = reader.next() {
                guard let dispositions else { return row }
                disposition = dispositions[row.index]
                if disposition != .settled { return row }
            }
            guard try advanceToNextChunk() else { return nil }
        }
    }

    @inline(never)
    private mutating func advanceToNextChunk() throws(BroadsideError) -> Bool {
        if let chunk = reader.close() { source.giveBack(chunk) }
        dispositions = nil
        disposition = .send
        if endsOnSignals { try SignalWatch.stopIfRequested() }
        guard let chunk = try source.next(rowLimit: rowsAtOnce) else {
            progress?.end()
            return false
        }
        progress?.update(chunk.end.byteOffset)
        chunkOffset = chunk.start.byteOffset
        dispositions = chunk.dispositions
        assert(
            (dispositions?.count ?? chunk.rowCount) == chunk.rowCount,
            "each row has one disposition")
        reader.open(chunk)
        return true
    }

    /// Returns the offset of the latest row in the decoded list.
    package func byteOffset(of row: RowReader.Row) -> UInt64 { chunkOffset + UInt64(row.start) }
}
