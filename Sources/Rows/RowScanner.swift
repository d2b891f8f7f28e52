import BroadsidePrimitives
import BroadsideSupport

/// Finds the ends of rows, for all formats. No other code decides where a row ends. `RowReader`,
/// which splits rows into fields, finds the same ends for well-formed rows, and uses this scanner
/// for all other rows.
///
/// States for formats whose quoted fields may span lines (RFC 4180), with the bytes that lead to
/// the next state:
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
/// - A quote opens a quoted field only as the field's first byte. Elsewhere it is text, as in `5"
///   disk`.
/// - A closing quote must be followed by a separator or a line break. Any other byte makes the row
///   malformed: it ends at the next line feed, even inside quotes, so that it includes no other
///   row.
/// - A row that is open at the end of the text is malformed as well.
/// - A line break is LF or CRLF. At the end of the text, a CR is also a line break.
///
/// A checking scanner also finds faults that make a list unreadable (`fault`), and stops there.
/// Such faults are quotes that are never closed, quotes that contain rows, and a CR outside quotes
/// that is not part of a line break. For a scanner that does not check, such a CR is text.
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
    /// Separator of fields if quoted fields may span lines. 0 if each line is a row, even inside
    /// quotes.
    private let separator: UInt8
    private var state = State.fieldStart
    /// Number of line ends inside quotes so far, in the current row.
    private var innerLineCount: UInt64 = 0
    /// Number of lines of the current row before the line with the latest opening quote.
    private var linesBeforeQuote: UInt64 = 0

    private let isChecking: Bool
    /// Fault in the current row. Its line is relative to the row, from 0. Nothing after the fault
    /// is scanned.
    public private(set) var fault: ListFault?
    /// Offset of the next CR in the text, or the text's length if there is none; `.max` if the
    /// scanner does not search for faults.
    private var nextReturn = Int.max
    /// Whether the text so far ends with a CR outside quotes. Then only an LF may follow.
    private var isReturnOpen = false
    /// Current line inside quotes; nil if the scanner does not search for rows inside quotes.
    private let line: QuotedLine?
    /// Fields of the current row, as far as `countFields` received it.
    private var fields = FieldCounter()
    /// Index at which `fields` stops: the token's. 0 if no field before the token's has fields
    /// before it, because fields before a quote then don't matter.
    private let fieldCountMax: Int
    /// Whether `line` has received part of the current line.
    private var isLineBegun = false
    /// Whether the current line is not the first one of its field.
    private var isFieldLong = false

    /// Creates a scanner that does not search for faults.
    public init(format: ListFormat) {
        self.init(format: format, isChecking: false, shape: nil)
    }

    /// Creates a scanner that also searches for faults.
    ///
    /// - Parameter shape: Criteria for a row inside quotes; nil if the scanner does not search for
    ///   such rows.
    public init(checking format: ListFormat, shape: RowShape?) {
        self.init(format: format, isChecking: true, shape: shape)
    }

    private init(format: ListFormat, isChecking: Bool, shape: RowShape?) {
        self.format = format
        self.isChecking = isChecking
        separator = format.quotesSpanLines ? format.separator ?? 0 : 0
        line = separator == 0 ? nil : shape.map { QuotedLine($0) }
        let tokenIndex = separator == 0 ? 0 : shape?.tokenIndex ?? 0
        fieldCountMax = tokenIndex > 1 ? tokenIndex : 0
    }

    /// End of a row or of a blank line.
    public struct RowEnd {
        /// Offset of the byte after the line feed.
        var offset: Int
        /// Number of lines of the row.
        public var lineCount: UInt64
        /// Whether the row broke the rules of its format.
        var isMalformed = false
    }

    /// Prepares a text for `nextEnd`, from `scan` on. A checking scanner needs this call after each
    /// change of the text.
    ///
    /// - Returns: false if there is a fault.
    public mutating func begin(_ text: RawSpan, from scan: Int) -> Bool {
        guard isChecking else { return true }
        seekReturn(text, scan)
        guard isReturnOpen, scan < text.byteCount else { return fault == nil }
        isReturnOpen = false
        if text.byte(at: scan) != UInt8(ascii: "\n") { fail(.loneReturn, innerLineCount) }
        return fault == nil
    }

    /// Whether `nextEnd` is needed to find faults in the text passed to `begin`. It is not needed
    /// if each line is a row and the text has no carriage return.
    public func mustCheck(at text: RawSpan) -> Bool {
        separator != 0 || nextReturn < text.byteCount
    }

    /// Returns the next row end from `scan` on; nil if there is a fault, or if there is none
    /// (`scan` is then at the text's end). After a fault, this method must not be called again.
    ///
    /// The call continues where the previous one stopped. `text` may be the next piece of the list.
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

    /// Ends the row at the text's end, which is at `offset`. An open quote is a fault.
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
        beginRow()
        return end
    }

    private mutating func beginRow() {
        innerLineCount = 0
        fields = FieldCounter()
        state = .fieldStart
    }

    // MARK: Quotes

    private mutating func nextDelimitedEnd(in text: RawSpan, from scan: inout Int) -> RowEnd? {
        let (quote, lineFeed) = (UInt8(ascii: "\""), UInt8(ascii: "\n"))
        let end = text.byteCount
        // Offset of the first byte that was not passed to `line`.
        var untaken = scan
        // Offset of the first byte that was not passed to `fields`.
        var uncounted = scan
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
                    countFields(text, &uncounted, end)
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
                    if !isFieldLong { countFields(text, &uncounted, found) }
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
        countFields(text, &uncounted, end)
        takeLine(text, untaken, end)
        return nil
    }

    /// Passes the current row's bytes up to `stop` to `fields`. Separators inside quotes do not
    /// count. So if `stop` is inside quotes, the result is the number of fields before the quote.
    /// This is only needed if a line or a text ends within the row.
    private mutating func countFields(_ text: RawSpan, _ uncounted: inout Int, _ stop: Int) {
        while uncounted < stop, fields.index < fieldCountMax {
            _ = fields.take(text.byte(at: uncounted), separator: separator)
            uncounted += 1
        }
    }

    /// Ends a line inside quotes at `stop`. Returns whether the line is itself a row, which is a
    /// fault of the list.
    @inline(never)
    private mutating func endsRow(_ text: RawSpan, _ untaken: Int, _ stop: Int) -> Bool {
        take(text, untaken, stop)
        isLineBegun = false
        let isRow = line?.isRow ?? false
        if isRow { fail(.rowInQuotes, linesBeforeQuote) }
        return isRow
    }

    private mutating func take(_ text: RawSpan, _ start: Int, _ stop: Int) {
        if !isLineBegun { line?.begin(behind: isFieldLong ? 0 : fields.index) }
        isLineBegun = true
        line?.take(text, from: start, to: stop)
    }

    /// Receives the beginning of a line inside quotes. The next text has the rest of the line.
    private mutating func takeLine(_ text: RawSpan, _ untaken: Int, _ end: Int) {
        switch state {
        case .fieldStart, .unquoted: return
        case .malformed where !isFieldLong: return
        case .quoted, .quoteInQuoted, .quoteThenReturn, .malformed: take(text, untaken, end)
        }
    }

    /// Advances the state by the byte after a quote that may have closed a field.
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
        assert(newline >= scan, "a scan goes forward")
        scan = newline + 1
        let end = RowEnd(
            offset: scan, lineCount: innerLineCount + 1, isMalformed: state == .malformed)
        beginRow()
        return end
    }

    // MARK: Carriage returns

    private mutating func fail(_ kind: ListFault.Kind, _ line: UInt64) {
        assert(isChecking, "only a check finds faults")
        fault = ListFault(kind, line: line)
    }

    private mutating func seekReturn(_ text: RawSpan, _ start: Int) {
        nextReturn = find(UInt8(ascii: "\r"), in: text, start, text.byteCount) ?? text.byteCount
    }

    /// Moves past the carriage return before a line feed or at the text's end. Any other carriage
    /// return is a fault, and the result is then false.
    @inline(never)
    private mutating func passReturn(_ text: RawSpan, before newline: Int?) -> Bool {
        passReturn(text, from: 0, before: newline, upTo: newline ?? text.byteCount)
    }

    /// Moves past carriage returns outside quotes, between `start` and `stop`; false for a fault.
    @inline(never)
    private mutating func passReturn(
        _ text: RawSpan, from start: Int, before newline: Int?, upTo stop: Int
    ) -> Bool {
        // Earlier carriage returns, inside quotes, are text.
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
