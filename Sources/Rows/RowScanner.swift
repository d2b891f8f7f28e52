import BroadsidePrimitives
import BroadsideSupport

/// Finds where rows end, for each format: the one place that knows. What splits rows into fields
/// (`RowReader`) agrees with it on well-formed rows and asks it about all others.
///
/// For formats whose quoted fields may go over several lines (RFC 4180):
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
/// - A line break is LF or CRLF, and at the end of the text CR.
///
/// One that checks also finds what makes a list unreadable (`fault`) and stops there: quotes that are
/// never closed, or that have rows inside; and outside quotes any other CR. For one that does not,
/// any other CR is text.
public struct RowScanner {
    private enum State {
        case fieldStart
        case unquoted
        case quoted
        case quoteInQuoted
        case quoteThenReturn
        case malformed
    }

    let format: ListFormat
    /// 0 where a row is a line, whatever quotes it has.
    private let separator: UInt8
    private var state = State.fieldStart
    /// Line ends inside quotes so far, in the row that is being looked at.
    private var innerLineCount: UInt64 = 0
    /// Lines of that row before the one on which the latest quote opened.
    private var linesBeforeQuote: UInt64 = 0

    private let isChecking: Bool
    /// What is wrong, by its line in the row that is being looked at, from 0: nothing behind is looked
    /// at.
    public private(set) var fault: ListFault?
    /// The next CR in the text, as far as it is known; `.max` where nobody asks.
    private var nextReturn = Int.max
    /// The text so far ends with a CR outside quotes: a LF follows, or nothing.
    private var isReturnOpen = false
    /// The line inside quotes that is being looked at; nil where rows there are not looked for.
    private let line: QuotedLine?
    /// Whether it has taken in something of the field in work.
    private var isLineBegun = false
    /// Whether it is not the first of its field.
    private var isFieldLong = false

    /// One that does not check.
    public init(format: ListFormat) {
        self.init(format: format, isChecking: false, shape: nil)
    }

    /// One that checks.
    ///
    /// - Parameter shape: What a row looks like; nil: rows inside quotes are not looked for.
    public init(checking format: ListFormat, shape: RowShape?) {
        self.init(format: format, isChecking: true, shape: shape)
    }

    private init(format: ListFormat, isChecking: Bool, shape: RowShape?) {
        self.format = format
        self.isChecking = isChecking
        separator = format.quotesSpanLines ? format.separator ?? 0 : 0
        line = separator == 0 ? nil : shape.map { QuotedLine($0) }
    }

    /// A row's end, or a blank line's.
    public struct RowEnd {
        /// The offset after its line feed.
        var offset: Int
        /// The lines it goes over.
        public var lineCount: UInt64
        /// Whether it broke the rules of its format.
        var isMalformed = false
    }

    /// Looks at the text that is there, from `scan` on, before its row ends are asked for. One that
    /// checks has to be told of each text that is longer than, or another than, the one before.
    ///
    /// - Returns: false where there is a fault.
    public mutating func begin(_ text: RawSpan, from scan: Int) -> Bool {
        guard isChecking else { return true }
        seekReturn(text, scan)
        guard isReturnOpen, scan < text.byteCount else { return fault == nil }
        isReturnOpen = false
        if text.byte(at: scan) != UInt8(ascii: "\n") { fail(.loneReturn, innerLineCount) }
        return fault == nil
    }

    /// Whether its row ends have to be asked for to find what is wrong with the text that it was told of:
    /// not where rows are lines and no line has a carriage return.
    public func mustCheck(at text: RawSpan) -> Bool {
        separator != 0 || nextReturn < text.byteCount
    }

    /// The next row end from `scan` on; nil where there is none, then `scan` is the text's end, or
    /// there is a fault: it is not asked again then.
    ///
    /// It continues where the last call stopped; `text` may be another piece of the same text.
    public mutating func nextEnd(in text: RawSpan, from scan: inout Int) -> RowEnd? {
        if separator != 0 { return nextDelimitedEnd(in: text, from: &scan) }
        guard let newline = find(UInt8(ascii: "\n"), in: text, scan, text.byteCount) else {
            if nextReturn < text.byteCount, !passReturn(text, before: nil) { return nil }
            scan = text.byteCount
            return nil
        }
        if nextReturn < newline, !passReturn(text, before: newline) { return nil }
        scan = newline &+ 1
        return RowEnd(offset: scan, lineCount: 1)
    }

    /// Ends the row at the text's end, `offset`; a quote that is open there is a fault.
    public mutating func endOfText(at offset: Int) -> RowEnd {
        let isMalformed: Bool
        switch state {
        case .fieldStart, .unquoted, .quoteInQuoted, .quoteThenReturn: isMalformed = false
        case .quoted, .malformed: isMalformed = true
        }
        if isChecking, fault == nil {
            if state == .quoted {
                fail(.openQuote, linesBeforeQuote)
            } else if isLineBegun, isFieldLong, state == .quoteInQuoted || state == .malformed,
                line?.isRow ?? false
            {
                fail(.rowInQuotes, linesBeforeQuote)
            }
        }
        isReturnOpen = false
        let end = RowEnd(
            offset: offset, lineCount: innerLineCount + 1, isMalformed: isMalformed)
        innerLineCount = 0
        state = .fieldStart
        return end
    }

    // MARK: Quotes

    private mutating func nextDelimitedEnd(in text: RawSpan, from scan: inout Int) -> RowEnd? {
        let (quote, lineFeed) = (UInt8(ascii: "\""), UInt8(ascii: "\n"))
        let end = text.byteCount
        // Where the bytes begin that `line` has not taken in.
        var untaken = scan
        while scan < end {
            switch state {
            case .fieldStart, .unquoted:
                let found = ByteScan.first(quote, or: lineFeed, in: text, from: scan, to: end)
                if nextReturn < found {
                    let isLine = found < end && text.byte(at: found) == lineFeed
                    if !passReturn(text, from: scan, before: isLine ? found : nil, upTo: found) {
                        return nil
                    }
                }
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
                scan = found + 1
                if isOpening {
                    linesBeforeQuote = innerLineCount
                    isFieldLong = false
                    isLineBegun = false
                    untaken = scan
                }
            case .quoted:
                let found = ByteScan.first(quote, or: lineFeed, in: text, from: scan, to: end)
                scan = min(found + 1, end)
                if found == end { break }
                if text.byte(at: found) == lineFeed {
                    innerLineCount += 1
                    if line != nil, endsRow(text, untaken, found) { return nil }
                    untaken = scan
                    isFieldLong = true
                } else {
                    state = .quoteInQuoted
                }
            case .quoteInQuoted, .quoteThenReturn:
                let byte = text.byte(at: scan)
                if state == .quoteInQuoted, isFieldLong, byte != quote, line != nil,
                    byte == separator || byte == lineFeed || byte == UInt8(ascii: "\r"),
                    endsRow(text, untaken, scan)
                {
                    return nil
                }
                if byte == lineFeed { return rowEnd(scan, &scan) }
                if state == .quoteThenReturn, isChecking {
                    fail(.loneReturn, innerLineCount)
                    return nil
                }
                step(byte)
                if state != .malformed { scan += 1 }
            case .malformed:
                let found = find(lineFeed, in: text, scan, end)
                if nextReturn < found ?? end,
                    !passReturn(text, from: scan, before: found, upTo: found ?? end)
                {
                    return nil
                }
                guard let found else {
                    scan = end
                    break
                }
                if isFieldLong, line != nil, endsRow(text, untaken, found) { return nil }
                return rowEnd(found, &scan)
            }
        }
        takeLine(text, untaken, end)
        return nil
    }

    /// Ends a line inside quotes at `stop`; whether it is a row.
    @inline(never)
    private mutating func endsRow(_ text: RawSpan, _ untaken: Int, _ stop: Int) -> Bool {
        take(text, untaken, stop)
        isLineBegun = false
        let isRow = line?.isRow ?? false
        if isRow { fail(.rowInQuotes, linesBeforeQuote) }
        return isRow
    }

    private mutating func take(_ text: RawSpan, _ start: Int, _ stop: Int) {
        if !isLineBegun { line?.begin() }
        isLineBegun = true
        line?.take(text, from: start, to: stop)
    }

    /// Takes in what the text has of a line inside quotes, as the rest comes with another text.
    private mutating func takeLine(_ text: RawSpan, _ untaken: Int, _ end: Int) {
        switch state {
        case .fieldStart, .unquoted: return
        case .malformed where !isFieldLong: return
        case .quoted, .quoteInQuoted, .quoteThenReturn, .malformed: take(text, untaken, end)
        }
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

    // MARK: Carriage returns

    private mutating func fail(_ kind: ListFault.Kind, _ line: UInt64) {
        fault = ListFault(kind, line: line)
    }

    private mutating func seekReturn(_ text: RawSpan, _ start: Int) {
        nextReturn = find(UInt8(ascii: "\r"), in: text, start, text.byteCount) ?? text.byteCount
    }

    /// Goes on behind the carriage return before a line feed, or at the text's end; false where another
    /// one is a fault.
    @inline(never)
    private mutating func passReturn(_ text: RawSpan, before newline: Int?) -> Bool {
        passReturn(text, from: 0, before: newline, upTo: newline ?? text.byteCount)
    }

    /// The same outside quotes, which begin at `start` and end at `stop`.
    @inline(never)
    private mutating func passReturn(
        _ text: RawSpan, from start: Int, before newline: Int?, upTo stop: Int
    ) -> Bool {
        // Those inside quotes before it are text.
        if nextReturn < start { seekReturn(text, start) }
        guard nextReturn < stop else { return true }
        if nextReturn + 1 == newline {
            seekReturn(text, nextReturn + 1)
            return true
        }
        if nextReturn + 1 == text.byteCount {
            isReturnOpen = true
            nextReturn = text.byteCount
            return true
        }
        fail(.loneReturn, innerLineCount)
        return false
    }
}
