import APNs
import Glibc
import Support

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

    /// The next row end from `scan` on; nil where there is none, then `scan` is the text's end.
    ///
    /// It continues where the last call stopped; `text` may be another piece of the same text.
    mutating func nextEnd(in text: RawSpan, from scan: inout Int) -> RowEnd? {
        if separator != 0 { return nextDelimitedEnd(in: text, from: &scan) }
        guard let newline = find(UInt8(ascii: "\n"), in: text, scan, text.byteCount) else {
            scan = text.byteCount
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

    private mutating func nextDelimitedEnd(in text: RawSpan, from scan: inout Int) -> RowEnd? {
        let (quote, lineFeed) = (UInt8(ascii: "\""), UInt8(ascii: "\n"))
        let end = text.byteCount
        while scan < end {
            switch state {
            case .fieldStart, .unquoted:
                let found = ByteScan.first(quote, or: lineFeed, in: text, from: scan, to: end)
                if found == end {
                    state = text.byte(at: end - 1) == separator ? .fieldStart : .unquoted
                    scan = end
                    return nil
                }
                if text.byte(at: found) == lineFeed { return rowEnd(found, &scan) }
                let isOpening: Bool
                if found == scan {
                    isOpening = state == .fieldStart
                } else {
                    isOpening = text.byte(at: found - 1) == separator
                }
                state = isOpening ? .quoted : .unquoted
                if isOpening { linesBeforeQuote = innerLineCount }
                scan = found + 1
            case .quoted:
                let found = ByteScan.first(quote, or: lineFeed, in: text, from: scan, to: end)
                scan = min(found + 1, end)
                if found == end { return nil }
                if text.byte(at: found) == lineFeed {
                    innerLineCount += 1
                } else {
                    state = .quoteInQuoted
                }
            case .quoteInQuoted, .quoteThenReturn:
                let byte = text.byte(at: scan)
                if byte == lineFeed { return rowEnd(scan, &scan) }
                step(byte)
                if state != .malformed { scan += 1 }
            case .malformed:
                if let found = find(lineFeed, in: text, scan, end) { return rowEnd(found, &scan) }
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

/// The offset of the first `byte` in a part of a text.
@inline(__always)
func find(_ byte: UInt8, in text: RawSpan, _ start: Int, _ end: Int) -> Int? {
    precondition(
        UInt(bitPattern: start) <= UInt(bitPattern: end) && end <= text.byteCount,
        "outside of the text")
    // SAFETY: the part was checked to lie in the text; memchr reads nothing beyond it.
    return unsafe text.withUnsafeBytes { bytes in
        guard let first = bytes.baseAddress,
            let found = unsafe memchr(first + start, Int32(byte), end - start)
        else { return nil }
        return unsafe UnsafeRawPointer(found) - first
    }
}

/// Whether a part of a text holds nothing but blanks and line ends. Most rows are told by their first
/// byte.
@inline(__always)
func isBlank(_ text: RawSpan, _ start: Int, _ end: Int, _ format: ListFormat) -> Bool {
    // SAFETY: `start` is below `end`, which is not behind the text.
    if UInt(bitPattern: start) < UInt(bitPattern: end), end <= text.byteCount,
        unsafe text.unsafeLoad(fromUncheckedByteOffset: start, as: UInt8.self) > 0x20
    {
        return false
    }
    return isAllBlank(text, start, end, format)
}

@inline(never)
private func isAllBlank(_ text: RawSpan, _ start: Int, _ end: Int, _ format: ListFormat) -> Bool {
    (start..<end).allSatisfy {
        let byte = text.byte(at: $0)
        return byte == UInt8(ascii: "\n") || format.isBlank(byte)
    }
}
