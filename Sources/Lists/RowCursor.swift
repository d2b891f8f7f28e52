package import BroadsideRows
package import BroadsideSupport

/// Goes through the rows of a list that a run is about, in order: for all who look at rows before a run
/// sends them, or without one.
///
/// It holds a chunk at a time, of a pool of its own, and leaves nothing to be closed.
package struct RowCursor: ~Copyable {
    /// What it reads from, for the header.
    package let source: ListSource
    /// Is at the row that was read last.
    package private(set) var reader: RowReader
    /// What the run does with the row that was read last: `send`, `suppressed` or `duplicate`.
    package private(set) var disposition = RowDisposition.send
    private var dispositions: [RowDisposition]?
    /// Where the chunk in hand begins in the list.
    private var chunkOffset: UInt64 = 0
    private let rowsAtOnce: Int
    private let endsOnSignals: Bool
    private var progress: ReadingProgress?

    /// A cursor before the first row.
    ///
    /// - Parameters:
    ///   - selection: Which rows it stops at: those that are in the run, even if they are skipped.
    ///   - layout: The columns that are read; nil: the list's.
    ///   - rowsAtOnce: The most rows that are read ahead of the first one's use: a fault of the list behind
    ///     them is found later.
    ///   - endsOnSignals: A signal to stop ends it: for work that reads all of a list before a run. What is
    ///     short comes to its end.
    ///   - showsProgress: Says on a terminal how much of the list is read.
    package init(
        _ list: TokenList, _ selection: ListSelection = ListSelection(),
        layout: RowLayout? = nil, rowsAtOnce: Int = .max, endsOnSignals: Bool = false,
        showsProgress: Bool = false
    ) throws(BroadsideError) {
        source = try ListSource(list, selection)
        reader = RowReader(layout: layout ?? list.layout)
        self.rowsAtOnce = rowsAtOnce
        self.endsOnSignals = endsOnSignals
        progress = showsProgress ? ReadingProgress(list) : nil
    }

    /// The next row; nil at the end of the list.
    ///
    /// - Throws: Why the list can't be read on; exit code 3 if a signal ended it.
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

    /// Where a row begins in the decoded list: the row that was read last.
    package func byteOffset(of row: RowReader.Row) -> UInt64 { chunkOffset + UInt64(row.start) }
}
