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
    /// For delimited formats: the names in the header, in lower case; the token's column is
    /// `header[tokenColumn]`.
    let header: [String]
    let tokenColumn: Int
    /// The names of the token's column and of the header's first columns, as bytes.
    private let headerBytes: [[UInt8]]
    private let byteOrderMark = ListFormat.byteOrderMark
    /// For JSON Lines: the bytes of all names in one buffer, and the end of each name in it.
    let names: FixedBuffer<UInt8>
    let nameEnds: FixedBuffer<Int>

    /// Maximum number of column names that are compared with a text in the token's column.
    private static let comparedNamesLimit = 100

    init(_ layout: RowLayout) {
        format = layout.format
        header = layout.header
        tokenColumn = layout.columnIndices.first ?? 0
        let compared =
            layout.columnIndices.prefix(1).map { layout.header[$0] }
            + layout.header.prefix(Self.comparedNamesLimit)
        headerBytes = compared.map { Array($0.utf8) }
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

extension WantedColumns {
    /// Whether a text is the name of the token's column or of one of the first columns. Does not
    /// allocate, because it is called for each row without a token.
    func mayBeHeader(_ text: RawSpan) -> Bool {
        var (start, end) = (0, text.byteCount)
        let mark = byteOrderMark
        let isMarked =
            end > mark.count && mark.indices.allSatisfy { text.byte(at: $0) == mark[$0] }
        if isMarked { start = mark.count }
        while start < end, format.isBlank(text.byte(at: start)) { start += 1 }
        while end > start, format.isBlank(text.byte(at: end - 1)) { end -= 1 }
        // Behind a byte order mark, quotes are part of the field's text.
        let quote = UInt8(ascii: "\"")
        if isMarked, end - start > 1, text.byte(at: start) == quote,
            text.byte(at: end - 1) == quote
        {
            start += 1
            end -= 1
        }
        guard start < end else { return false }
        for name in headerBytes where name.count == end - start {
            let isSame = name.indices.allSatisfy { index in
                let byte = text.byte(at: start + index)
                let isCapital = byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z")
                return name[index] == (isCapital ? byte | 0x20 : byte)
            }
            if isSame { return true }
        }
        return false
    }
}

extension FixedBuffer where Element == UInt8 {
    /// Whether a range of this buffer has the same bytes as `other`.
    @inline(__always)
    fileprivate func holds(_ other: RawSpan, at part: Range<Int>) -> Bool {
        bytes.extracting(part).holdsSame(as: other)
    }
}
