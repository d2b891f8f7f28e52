import BroadsidePrimitives
import BroadsideSupport

/// The rows that are overwritten with zero bytes. A power cut, a preallocated file or an interrupted
/// download may leave such bytes in place of other rows.
///
/// Some programs write zero bytes on purpose: SQL Server's `bcp` writes one for an empty text, and
/// others fill short texts up to a fixed length. So only two runs of zero bytes may hide a row:
///
/// - A run of at least a sector. A hole in a file has whole sectors.
/// - A run in which a device token has room and which is not at the end of a field. A power cut may
///   leave a short run at the end of a file, and a program then appends other rows to it.
///
/// With fewer zero bytes, a part of each overwritten row is left, and that row is invalid for
/// another reason.
public struct OverwrittenRows: Sendable, Equatable {
    /// Number of such rows.
    public private(set) var count: UInt64 = 0
    /// Line of the first such row; nil if it is unknown.
    public private(set) var firstLine: UInt64?

    /// Number of zero bytes in which a device token has room.
    private static let tokenByteCount = 64
    /// Number of bytes in a sector of a disk.
    private static let sectorByteCount = 512

    /// Creates a count of no rows.
    public init() {}

    /// Creates a count of one row, which starts on a line.
    public init(line: UInt64) {
        count = 1
        firstLine = line
    }

    /// Adds the rows of another part of the list.
    public mutating func add(_ other: OverwrittenRows) {
        count += other.count
        firstLine = [firstLine, other.firstLine].compactMap(\.self).min()
    }

    /// Counts the row that `reader` read last if it is overwritten. This row must have no token.
    public mutating func take(_ row: RowReader.Row, of reader: borrowing RowReader) {
        guard reader.field(0).form == .malformed else { return }
        take(reader.text(of: row), in: reader.columns.format, line: row.line)
    }

    /// Counts a row if it is overwritten.
    ///
    /// - Parameters:
    ///   - text: Text of the row.
    ///   - format: Format of the list.
    ///   - line: Line on which the row starts; nil if it is unknown.
    public mutating func take(_ text: RawSpan, in format: ListFormat, line: UInt64?) {
        guard Self.isOverwritten(text, in: format) else { return }
        if count == 0 { firstLine = line }
        count += 1
    }

    /// Whether a text of a list contains a run of zero bytes that may hide a row.
    public static func isOverwritten(_ text: RawSpan, in format: ListFormat) -> Bool {
        isOverwritten(text, from: 0, to: text.byteCount, in: format)
    }

    /// Whether a range of a list's text contains a run of zero bytes that may hide a row.
    static func isOverwritten(
        _ text: RawSpan, from start: Int, to end: Int, in format: ListFormat
    ) -> Bool {
        var offset = start
        while let first = find(0, in: text, offset, end) {
            offset = first + 1
            while offset < end, text.byte(at: offset) == 0 { offset += 1 }
            let count = offset - first
            if count >= sectorByteCount { return true }
            if count >= tokenByteCount, !isFieldEnd(text, offset, end, in: format) { return true }
        }
        return false
    }

    /// Whether a field ends at `offset`. Zero bytes before it fill the field's text up to a fixed
    /// length.
    private static func isFieldEnd(
        _ text: RawSpan, _ offset: Int, _ end: Int, in format: ListFormat
    ) -> Bool {
        guard let separator = format.separator else { return false }
        // A quote that closes a field is the last byte of the field. Text follows a quote that
        // opens one.
        let isQuote = offset < end && text.byte(at: offset) == UInt8(ascii: "\"")
        let next = isQuote ? offset + 1 : offset
        guard next < end else { return true }
        let byte = text.byte(at: next)
        return byte == separator || byte == UInt8(ascii: "\r") || byte == UInt8(ascii: "\n")
    }
}
