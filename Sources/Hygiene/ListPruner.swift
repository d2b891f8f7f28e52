import BroadsideAPNs
public import BroadsideRows
import BroadsideSupport

/// Removes the rows of dead tokens from a list. The list is processed in windows, in place. All
/// other bytes stay unchanged.
///
///     the window before   | mark, header | row | dead row | row | blank | row | part of a row
///     and after           | mark, header | row | row | blank | row |
///                         └────────────── kept ────────────────────┘   consumed up to here ┘
///
/// The next window starts with the bytes that were not consumed, followed by more bytes. A row that
/// exceeds the maximum length has no token, and is skipped in pieces. A scanner checks all bytes of
/// a window before any row of the window is processed. So nothing after a `fault` is consumed.
public struct ListPruner: ~Copyable {
    /// Result for a window.
    public struct Outcome: Sendable {
        /// Number of bytes at the window's start that belong to the pruned list.
        public var keptCount: Int
        /// Number of processed bytes. The next window must begin with the bytes after them.
        public var consumedCount: Int
    }

    /// The counts so far.
    public internal(set) var counts = PruneCounts()
    /// Fault that ends the list; there is no pruned list then.
    public private(set) var fault: ListFault?
    /// The ranges of the last window, with offsets in the unchanged window. `handedOut` has the
    /// rows that were passed out as removed. `cut` has the bytes that were cut from the list. Both
    /// are empty unless `notesRanges` is set.
    public internal(set) var removedRanges: (handedOut: [Range<Int>], cut: [Range<Int>]) = ([], [])

    let dead: DeadTokens
    let layout: RowLayout
    /// Whether field 1 is the registration time of a row.
    let hasRegistration: Bool
    /// Returns the topic of the row that a reader read last, or nil if that row names none. The
    /// closure itself is nil if rows name no topics.
    let topicOfRow: ((borrowing RowReader) -> String?)?
    /// Parser of registration times.
    let registrationTime: RegistrationTime
    /// Whether removed rows are passed out.
    let collectsRemoved: Bool
    /// Whether `removedRanges` is recorded.
    let notesRanges: Bool
    var reader: RowReader
    var isAtStart = true
    var isHeaderDue: Bool
    /// Whether a first line that names the separator may precede the header.
    var isSeparatorDue: Bool
    /// Line at the start of the next window; only for delimited formats.
    var line: UInt64 = 1
    var digits = TokenDigits()
    /// Scanner for the end of a row that exceeds the maximum length; nil if there is none.
    private var longRow: RowScanner?
    /// Scanner that checks each byte before it is processed.
    private var checker: RowScanner
    /// Number of bytes at the start of the next window that `checker` has checked already.
    private var checkedCount = 0
    /// Line at which `checker` continues.
    private var checkedLine: UInt64 = 1
    /// Start of the bytes that are kept but not moved yet. They will be moved to offset `keptEnd`.
    var runStart = 0
    var keptEnd = 0

    /// - Parameters:
    ///   - dead: The dead tokens, sealed.
    ///   - layout: Field 0 is the token.
    ///   - hasRegistration: Whether field 1 is the registration time. If this parameter is nil, any
    ///     field 1 of the layout counts as the registration time.
    ///   - topicOfRow: Returns the topic of the row that a reader with this layout read last, or
    ///     nil if that row names none. If this parameter is nil, a token that is dead under any
    ///     topic counts as dead.
    ///   - collectsRemoved: Whether `process` passes out removed rows.
    ///   - nowMilliseconds: Current time, milliseconds since 1970.
    ///   - notesRanges: Whether `removedRanges` is recorded.
    public init(
        dead: consuming DeadTokens, layout: RowLayout, hasRegistration: Bool? = nil,
        topicOfRow: ((borrowing RowReader) -> String?)? = nil, collectsRemoved: Bool,
        nowMilliseconds: UInt64, notesRanges: Bool = false
    ) {
        self.dead = dead
        self.layout = layout
        self.notesRanges = notesRanges
        checker = RowScanner(checking: layout.format, shape: layout.shape)
        self.hasRegistration =
            hasRegistration ?? (layout.format != .lines && layout.names.count > 1)
        self.topicOfRow = topicOfRow
        self.collectsRemoved = collectsRemoved
        registrationTime = RegistrationTime(nowMilliseconds: nowMilliseconds)
        reader = RowReader(layout: layout)
        isHeaderDue = layout.format.hasHeader
        isSeparatorDue = isHeaderDue
    }

    /// Processes the complete rows of a window.
    ///
    /// - Parameters:
    ///   - window: The list from the end of the consumed bytes on; it is changed.
    ///   - isLast: Whether the list ends with the window.
    ///   - removed: Receives the removed rows, preceded by the header.
    /// - Returns: The result; if nothing is consumed, a row is longer than the window.
    public mutating func process(
        _ window: UnsafeMutableRawBufferPointer, isLast: Bool, removed: inout [UInt8]
    ) -> Outcome {
        // SAFETY: the memory belongs to the caller during this call, and nothing keeps the window
        // longer.
        guard let window = unsafe PrunerWindow(window) else {
            return Outcome(keptCount: 0, consumedCount: 0)
        }
        runStart = 0
        keptEnd = 0
        removedRanges = ([], [])
        var start = 0
        if isAtStart {
            if window.count < 3, !isLast { return Outcome(keptCount: 0, consumedCount: 0) }
            isAtStart = false
            if startsWithByteOrderMark(window) { start = 3 }
            checkedCount = start
        }
        guard check(window, isLast: isLast) else { return Outcome(keptCount: 0, consumedCount: 0) }
        if start > 0, isHeaderDue { handOut(window, 0..<start, to: &removed) }
        var consumed = passLongRow(window, from: &start)
        if start == window.count {
        } else if layout.format == .lines {
            consumed = goThroughLines(window, from: start, isLast: isLast, removed: &removed)
        } else {
            consumed = goThroughRecords(window, from: start, isLast: isLast, removed: &removed)
        }
        if !isLast, window.count - consumed > RowChunk.storedCountMax {
            beginLongRow(window, from: consumed)
            consumed = window.count
        }
        moveRun(window, upTo: consumed)
        checkedCount -= consumed
        assert(checkedCount >= 0, "what is handed out was checked")
        assert(
            keptEnd <= consumed && consumed <= window.count,
            "the kept bytes are among the consumed bytes")
        return Outcome(keptCount: keptEnd, consumedCount: consumed)
    }

    /// Checks the new bytes of a window; false if there is a fault.
    private mutating func check(_ window: PrunerWindow, isLast: Bool) -> Bool {
        if fault != nil { return false }
        if checkedCount < window.count {
            checkedLine += window.check(&checker, from: checkedCount)
            checkedCount = window.count
        }
        if isLast { _ = checker.endOfText(at: window.count) }
        noteFault()
        return fault == nil
    }

    /// Ends the list. Returns the fault that prevented reading it to its end; nil if there was
    /// none.
    public mutating func finish() -> ListFault? {
        _ = checker.endOfText(at: 0)
        noteFault()
        return fault
    }

    private mutating func noteFault() {
        guard fault == nil, let found = checker.fault else { return }
        fault = ListFault(found.kind, line: checkedLine + found.line)
    }

    /// Appends the bytes in a range of the window to `removed`, if removed rows are collected.
    mutating func handOut(_ window: PrunerWindow, _ range: Range<Int>, to removed: inout [UInt8]) {
        guard collectsRemoved else { return }
        window.append(range, to: &removed)
        if notesRanges { removedRanges.handedOut.append(range) }
    }

    private func startsWithByteOrderMark(_ window: PrunerWindow) -> Bool {
        let mark = ListFormat.byteOrderMark
        return window.count >= mark.count
            && mark.indices.allSatisfy { window.byte(at: $0) == mark[$0] }
    }

    /// Starts to skip a row that exceeds the maximum length, and counts it as a row without a
    /// token.
    private mutating func beginLongRow(_ window: PrunerWindow, from start: Int) {
        var scanner = RowScanner(format: layout.format)
        var scan = start
        let found = window.nextEnd(&scanner, from: &scan)
        precondition(found == nil, "a whole row was not dealt with")
        longRow = scanner
        counts.rows += 1
        counts.withoutToken += 1
        counts.overwritten.take(
            window.bytes(start..<window.count), in: layout.format,
            line: layout.format == .lines ? nil : line)
    }

    /// Skips the window's part of a row that exceeds the maximum length; returns the end of that
    /// part.
    private mutating func passLongRow(_ window: PrunerWindow, from start: inout Int) -> Int {
        guard var scanner = longRow else { return start }
        longRow = nil
        if let found = window.nextEnd(&scanner, from: &start) {
            line += found.lineCount
        } else {
            longRow = scanner
        }
        return start
    }

    /// Moves the bytes in `runStart..<end`, so that they follow the bytes kept earlier. Returns the
    /// end of the kept bytes.
    func moved(_ window: PrunerWindow, upTo end: Int) -> Int {
        let count = end - runStart
        assert(count >= 0 && keptEnd <= runStart, "rows move towards the start only")
        if keptEnd != runStart, count > 0 { window.move(runStart..<end, to: keptEnd) }
        return keptEnd + count
    }

    mutating func moveRun(_ window: PrunerWindow, upTo end: Int) {
        keptEnd = moved(window, upTo: end)
        runStart = end
    }

    /// Removes a row.
    mutating func remove(
        _ window: PrunerWindow, _ start: Int, _ end: Int, reason: UInt8, removed: inout [UInt8]
    ) {
        counts.removed += 1
        assert(start >= runStart && end >= start, "rows are removed in their order")
        counts.removedByReason[Int(reason)] += 1
        handOut(window, start..<end, to: &removed)
        if notesRanges { removedRanges.cut.append(start..<end) }
        moveRun(window, upTo: start)
        runStart = end
    }

    /// Record of a dead token; nil if the text is not a dead token.
    @inline(__always)
    mutating func findDead(_ text: RawSpan) -> DeadTokens.Record? {
        guard digits.write({ TokenText.canonicalize(text, into: &$0) }) else {
            counts.withoutToken += 1
            // Without columns, no reader has found the row's zero bytes, and its line is unknown.
            counts.overwritten.take(text, in: layout.format, line: nil)
            return nil
        }
        let fingerprint = TokenText.fingerprint(digits.bytes)
        guard dead.mayContain(fingerprint) else { return nil }
        let record = dead.find(digits: digits.bytes, fingerprint: fingerprint)
        guard record != nil, let topicOfRow else { return record }
        guard let topic = topicOfRow(reader) else {
            counts.withoutTopic += 1
            return nil
        }
        return dead.find(
            digits: digits.bytes, fingerprint: fingerprint,
            in: TokenScope(topic: topic, environment: nil))
    }
}
