import BroadsidePrimitives
import BroadsideSupport

/// The columns that a `RowReader` is asked for, as its formats look for them; they stay as they are.
///
/// Apart from the reader, which is moved and borrowed for each row and stays small.
final class WantedColumns {
    let format: ListFormat
    /// For delimited formats: for each place in a row, which field it is; -1 where none.
    let fieldAtColumn: FixedBuffer<Int32>
    /// For delimited formats: the most fields of a row.
    let columnCount: Int
    /// For JSON Lines: the names' bytes one after another, and where each ends.
    let names: FixedBuffer<UInt8>
    let nameEnds: FixedBuffer<Int>

    init(_ layout: RowLayout) {
        format = layout.format
        columnCount = layout.columnCount
        var fieldAtColumn = [Int32](repeating: -1, count: (layout.columnIndices.max() ?? -1) + 1)
        for (field, column) in layout.columnIndices.enumerated() {
            fieldAtColumn[column] = Int32(field)
        }
        self.fieldAtColumn = FixedBuffer(fieldAtColumn)
        names = FixedBuffer(layout.names.flatMap { Array($0.utf8) })
        var nameEnds: [Int] = []
        for name in layout.names { nameEnds.append((nameEnds.last ?? 0) + name.utf8.count) }
        self.nameEnds = FixedBuffer(nameEnds)
    }

    /// The index of the field that a key names; -1 if it names none.
    @inline(__always)
    func field(named key: RawSpan) -> Int {
        var start = 0
        for index in 0..<nameEnds.count {
            let end = nameEnds[index]
            if end - start == key.byteCount,
                names.holds(key, at: start..<end)
            {
                return index
            }
            start = end
        }
        return -1
    }
}

extension FixedBuffer where Element == UInt8 {
    /// Whether a part holds the same bytes as `other`.
    @inline(__always)
    fileprivate func holds(_ other: RawSpan, at part: Range<Int>) -> Bool {
        bytes.extracting(part).holdsSame(as: other)
    }
}
