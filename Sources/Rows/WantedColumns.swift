import BroadsidePrimitives
import BroadsideSupport

/// Immutable tables with which `RowReader` finds the wanted columns in each format.
///
/// The tables are separate from the reader, because the reader is moved and borrowed for each row,
/// and must stay small.
final class WantedColumns {
    let format: ListFormat
    /// For delimited formats: the field for each column of a row; -1 for columns that are not
    /// wanted.
    let fieldAtColumn: FixedBuffer<Int32>
    /// For delimited formats: maximum number of fields of a row.
    let columnCount: Int
    /// For JSON Lines: the bytes of all names in one buffer, and the end of each name in it.
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

    /// Index of the field that a key names; -1 if there is none.
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
    /// Whether a range of this buffer has the same bytes as `other`.
    @inline(__always)
    fileprivate func holds(_ other: RawSpan, at part: Range<Int>) -> Bool {
        bytes.extracting(part).holdsSame(as: other)
    }
}
