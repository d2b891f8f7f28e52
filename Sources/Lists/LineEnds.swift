import BroadsideRows
import BroadsideSupport

/// The line ends of a list.
///
/// Old spreadsheets end each line with a carriage return alone. If a list's first line ends like
/// this, each carriage return without a following line feed is read as a line feed at the same
/// offset. Line feeds end lines in such a list, too. In any other list, such a carriage return is a
/// fault.
struct LineEnds: Sendable {
    /// Whether carriage returns end lines.
    let areReturns: Bool

    /// Line feeds, optionally after a carriage return.
    static let lineFeeds = LineEnds(areReturns: false)

    private static let (carriageReturn, lineFeed) = (UInt8(ascii: "\r"), UInt8(ascii: "\n"))
    /// Number of bytes within which the first line must end. It is above the maximum length of a
    /// row.
    private static let searchLimit = RowChunk.rowByteCountMax + RowChunk.capacity

    private init(areReturns: Bool) { self.areReturns = areReturns }

    /// Detects the line ends from a list's first line.
    init(of bytes: ListBytes) throws(BroadsideError) {
        var buffer = ReadBuffer(byteCount: RowChunk.capacity)
        var offset = 0
        while offset < Self.searchLimit {
            let count = try bytes.read(at: UInt64(offset), into: &buffer)
            if count == 0 { break }
            let piece = buffer.bytes
            for place in 0..<count {
                let byte = piece.byte(at: place)
                if byte == Self.lineFeed {
                    areReturns = false
                    return
                }
                if byte == Self.carriageReturn {
                    areReturns = try !Self.isLineFeed(bytes, at: UInt64(offset + place + 1))
                    return
                }
            }
            offset += count
        }
        areReturns = false
    }

    private static func isLineFeed(
        _ bytes: ListBytes, at offset: UInt64
    ) throws(BroadsideError) -> Bool {
        var buffer = ReadBuffer(byteCount: 1)
        return try bytes.read(at: offset, into: &buffer) > 0 && buffer.bytes.byte(at: 0) == lineFeed
    }

    /// Reads bytes from an offset on, with line feeds as line ends. Returns 0 only at the end.
    func read(
        _ bytes: ListBytes, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer
    ) throws(BroadsideError) -> Int {
        // SAFETY: the caller's buffer is passed on unchanged.
        let count = try unsafe bytes.read(at: offset, into: buffer)
        if areReturns, count > 0 {
            // SAFETY: `count` bytes are set, and are set again.
            var text = unsafe [UInt8](UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            try replace(&text, bytes, next: offset + UInt64(count))
            assert(text.count == count, "line ends are replaced in place")
            unsafe buffer.copyBytes(from: text)
        }
        return count
    }

    /// Replaces each carriage return by a line feed, unless a line feed follows.
    ///
    /// - Parameter next: Offset in the list at which the text ends.
    func replace(
        _ text: inout [UInt8], _ bytes: ListBytes, next: UInt64
    ) throws(BroadsideError) {
        for place in text.indices where text[place] == Self.carriageReturn {
            let isPair =
                place + 1 < text.count
                ? text[place + 1] == Self.lineFeed : try Self.isLineFeed(bytes, at: next)
            if !isPair { text[place] = Self.lineFeed }
        }
    }
}
