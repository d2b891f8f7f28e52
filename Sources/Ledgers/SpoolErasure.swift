internal import BroadsideAPNs
import BroadsideLedgerFormat
import BroadsideLists
import BroadsideRows
import BroadsideSupport

/// Erasure of devices from a ledger's copy of the list. A ledger contains such a copy if the list
/// came from standard input.
///
/// The letters and digits of the devices' rows are replaced, and no other byte changes. So row
/// numbers, line numbers and offsets do not change. A run that continues treats these rows as
/// invalid.
struct SpoolErasure {
    private let list: TokenList
    /// Number of the list's rows that belong to the devices.
    private(set) var rowCount = 0
    /// The parts of the list that change.
    private(set) var changedPages = PageSet()

    /// Bytes that are processed at a time.
    private static let pieceByteCount: UInt64 = 1 << 18
    /// Bytes read before and after each piece, so that no token is cut. A token may have as many
    /// separators as digits.
    private static let marginByteCount = UInt64(2 * TokenText.maximumDigitCount)

    /// Whether the list contains a row of a device.
    var isAffected: Bool { !changedPages.isEmpty }

    /// Reads the list.
    ///
    /// - Parameters:
    ///   - path: Path of the list.
    ///   - manifest: Manifest of the ledger, which records the list's format.
    ///   - devices: The devices. The set counts those that are found.
    init(
        _ path: String, manifest: Manifest, devices: inout DeviceSet
    ) throws(BroadsideError) {
        list = try manifest.openList(at: path)
        var (rows, pages) = (0, PageSet())
        try process(&devices, rowCount: &rows) { (original, masked, offset) in
            for index in original.indices where original[index] != masked[index] {
                let position = offset + UInt64(index)
                pages.insert(position..<(position + 1))
            }
        }
        rowCount = rows
        changedPages = pages
    }

    /// Writes the list without the devices.
    func write(
        to descriptor: Int32, name: String, devices: inout DeviceSet
    ) throws(BroadsideError) {
        var rows = 0
        try process(&devices, rowCount: &rows) { (_, masked, _) throws(BroadsideError) in
            try writeAll(masked, to: descriptor, name: name)
        }
        precondition(rows == rowCount, "the list did not change while the ledger was locked")
    }

    /// Passes each piece of the list to a closure: its bytes before and after the erasure, and its
    /// offset.
    private func process(
        _ devices: inout DeviceSet, rowCount: inout Int,
        _ take: ([UInt8], [UInt8], UInt64) throws(BroadsideError) -> Void
    ) throws(BroadsideError) {
        var rows = try DeviceRows(list)
        var buffer = ReadBuffer(byteCount: Int(Self.pieceByteCount + 2 * Self.marginByteCount))
        var row = try rows.next(&devices)
        var offset: UInt64 = 0
        while true {
            let start = offset - min(offset, Self.marginByteCount)
            var text: [UInt8] = []
            let wanted = Int(offset - start + Self.pieceByteCount + Self.marginByteCount)
            while text.count < wanted {
                let count = try list.bytes.read(
                    at: start + UInt64(text.count), into: &buffer, limit: wanted - text.count)
                guard count > 0 else { break }
                let bytes = buffer.bytes
                for index in 0..<count { text.append(bytes.byte(at: index)) }
            }
            let first = Int(offset - start)
            guard text.count > first else { break }
            let piece = first..<min(text.count, first + Int(Self.pieceByteCount))
            let end = start + UInt64(piece.upperBound)
            let original = Array(text[piece])
            let count = text.count
            _ = devices.maskTokens(in: &text)
            while let found = row, found.lowerBound < end {
                let lower = max(found.lowerBound, offset)
                let upper = min(found.upperBound, end)
                if lower < upper {
                    DeviceSet.maskRow(&text, Int(lower - start)..<Int(upper - start))
                }
                if found.upperBound > end { break }
                rowCount += 1
                row = try rows.next(&devices)
            }
            assert(text.count == count, "what replaces a token is as long")
            try take(original, Array(text[piece]), offset)
            offset = end
        }
        assert(row == nil, "each row is a part of the list")
    }
}

/// Rows of the devices in a list, in order.
private struct DeviceRows: ~Copyable {
    private var cursor: RowCursor
    private var digits = TokenDigits()

    init(_ list: TokenList) throws(BroadsideError) { cursor = try RowCursor(list) }

    /// Returns the range of the next row of a device in the list; nil if there is none.
    mutating func next(_ devices: inout DeviceSet) throws(BroadsideError) -> Range<UInt64>? {
        while let row = try cursor.next() {
            let refusal = digits.write {
                cursor.reader.readToken(cursor.reader.field(0), into: &$0)
            }
            guard refusal == nil, devices.find(token: digits.bytes) else { continue }
            let offset = cursor.byteOffset(of: row)
            return offset..<(offset + UInt64(row.count))
        }
        return nil
    }
}
