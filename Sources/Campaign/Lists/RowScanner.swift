import APNs
import Glibc

/// Finds where rows end, for each format: the one place that knows. What splits rows into fields
/// (`RowReader`) agrees with it on well-formed rows and asks it about all others.
///
/// For delimited formats (RFC 4180), whose rows may go over several lines:
///
///     fieldStart ──"──▶ quoted ──"──▶ quoteInQuoted ──"──▶ quoted
///      ▲   │ other        │ LF: a line     │ separator ──▶ fieldStart
///      │   ▼              └──▶ quoted      │ LF, end of the text: the row's end
///      └─ unquoted                         ├─CR─▶ quoteThenReturn ──LF──▶ the row's end
///       separator                          │             │ other   (end of the text: as LF)
///                                          ▼ other       ▼
///       LF in fieldStart or unquoted:    malformed ◀─────┘
///       the row's end                      └──LF──▶ the row's end
///
/// - A quote opens at a field's first byte only; elsewhere it is text, so that `5" disk` harms
///   nobody.
/// - What follows a closing quote and is neither separator nor line break makes the row malformed:
///   it ends at the next line feed, quotes or not, so that no other row is swallowed.
/// - A row that is open at the end of the text is malformed as well.
/// - A line break is LF or CRLF, and at the end of the text CR; any other CR is text.
struct RowScanner {
    private enum State {
        case fieldStart
        case unquoted
        case quoted
        case quoteInQuoted
        case quoteThenReturn
        case malformed
    }

    let format: ListFormat
    private let separator: UInt8
    private var state = State.fieldStart
    /// Line ends inside quotes so far, in the row that is being looked at.
    private var innerLineCount: UInt64 = 0
    /// Lines of that row before the one on which the latest quote opened.
    private(set) var linesBeforeQuote: UInt64 = 0

    init(format: ListFormat) {
        self.format = format
        separator = format.separator ?? 0
    }

    /// Whether the text ended between quotes.
    var isInsideQuotes: Bool { state == .quoted }

    /// A row's end, or a blank line's.
    struct RowEnd {
        /// The offset after its line feed.
        var offset: Int
        /// The lines it goes over.
        var lineCount: UInt64
        /// Whether it broke the rules of its format.
        var isMalformed = false
    }

    /// The next row end in `bytes[scan..<end]`; nil where there is none, then `scan` is `end`.
    ///
    /// It continues where the last call stopped; `bytes` may be another piece of the same text.
    mutating func nextEnd(
        in bytes: UnsafeRawPointer, from scan: inout Int, to end: Int
    ) -> RowEnd? {
        // SAFETY: the caller vouches for `bytes[..<end]`, and for `scan` to be at most `end`.
        if separator != 0 { return unsafe nextDelimitedEnd(in: bytes, from: &scan, to: end) }
        guard let newline = unsafe find(UInt8(ascii: "\n"), bytes, scan, end) else {
            scan = end
            return nil
        }
        scan = newline + 1
        return RowEnd(offset: scan, lineCount: 1)
    }

    /// Ends the row at the text's end, `offset`.
    mutating func endOfText(at offset: Int) -> RowEnd {
        let isMalformed: Bool
        switch state {
        case .fieldStart, .unquoted, .quoteInQuoted, .quoteThenReturn: isMalformed = false
        case .quoted, .malformed: isMalformed = true
        }
        let end = RowEnd(
            offset: offset, lineCount: innerLineCount + 1, isMalformed: isMalformed)
        innerLineCount = 0
        state = .fieldStart
        return end
    }

    private mutating func nextDelimitedEnd(
        in bytes: UnsafeRawPointer, from scan: inout Int, to end: Int
    ) -> RowEnd? {
        let (quote, lineFeed) = (UInt8(ascii: "\""), UInt8(ascii: "\n"))
        // SAFETY: the caller vouches for `bytes[..<end]`. `scan` starts at most at `end` and never
        // passes it: it goes behind a byte that was found below `end`, or to `end`; bytes are read
        // only below it.
        let text = unsafe RawSpan(_unsafeStart: bytes, byteCount: end)
        while scan < end {
            switch state {
            case .fieldStart, .unquoted:
                let found = ByteScan.first(quote, or: lineFeed, in: text, from: scan, to: end)
                if found == end {
                    let last = unsafe bytes.load(fromByteOffset: end - 1, as: UInt8.self)
                    state = last == separator ? .fieldStart : .unquoted
                    scan = end
                    return nil
                }
                if unsafe bytes.load(fromByteOffset: found, as: UInt8.self) == lineFeed {
                    return rowEnd(found, &scan)
                }
                let isOpening: Bool
                if found == scan {
                    isOpening = state == .fieldStart
                } else {
                    let before = unsafe bytes.load(fromByteOffset: found - 1, as: UInt8.self)
                    isOpening = before == separator
                }
                state = isOpening ? .quoted : .unquoted
                if isOpening { linesBeforeQuote = innerLineCount }
                scan = found + 1
            case .quoted:
                let found = ByteScan.first(quote, or: lineFeed, in: text, from: scan, to: end)
                scan = min(found + 1, end)
                if found == end { return nil }
                if unsafe bytes.load(fromByteOffset: found, as: UInt8.self) == lineFeed {
                    innerLineCount += 1
                } else {
                    state = .quoteInQuoted
                }
            case .quoteInQuoted, .quoteThenReturn:
                let byte = unsafe bytes.load(fromByteOffset: scan, as: UInt8.self)
                if byte == lineFeed { return rowEnd(scan, &scan) }
                step(byte)
                if state != .malformed { scan += 1 }
            case .malformed:
                if let found = unsafe find(lineFeed, bytes, scan, end) {
                    return rowEnd(found, &scan)
                }
                scan = end
            }
        }
        return nil
    }

    /// What a byte behind a quote that may have closed a field makes of the row.
    private mutating func step(_ byte: UInt8) {
        guard state == .quoteInQuoted else {
            state = .malformed
            return
        }
        switch byte {
        case UInt8(ascii: "\""): state = .quoted
        case separator: state = .fieldStart
        case UInt8(ascii: "\r"): state = .quoteThenReturn
        default: state = .malformed
        }
    }

    private mutating func rowEnd(_ newline: Int, _ scan: inout Int) -> RowEnd {
        scan = newline + 1
        let end = RowEnd(
            offset: scan, lineCount: innerLineCount + 1, isMalformed: state == .malformed)
        innerLineCount = 0
        state = .fieldStart
        return end
    }
}

/// The offset of the first `byte` in `bytes[start..<end]`.
@inline(__always)
func find(_ byte: UInt8, _ bytes: UnsafeRawPointer, _ start: Int, _ end: Int) -> Int? {
    // SAFETY: the caller vouches for the range; memchr reads nothing beyond it.
    guard let found = unsafe memchr(bytes + start, Int32(byte), end - start) else { return nil }
    return unsafe UnsafeRawPointer(found) - bytes
}

/// Whether `bytes[start..<end]` holds nothing but blanks and line ends.
@inline(__always)
func isBlank(
    _ bytes: UnsafeRawPointer, _ start: Int, _ end: Int, _ format: ListFormat
) -> Bool {
    var offset = start
    while offset < end {
        // SAFETY: the caller vouches for the range.
        let byte = unsafe bytes.load(fromByteOffset: offset, as: UInt8.self)
        // Most rows are told by their first byte.
        if byte > 0x20 { return false }
        if byte != UInt8(ascii: "\n"), !format.isBlank(byte) { return false }
        offset += 1
    }
    return true
}
