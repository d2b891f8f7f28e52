import BroadsideAPNs
public import BroadsideRows
import BroadsideSupport

/// Takes the rows of dead tokens out of a list that comes by in windows, in place: all other bytes
/// stay as they are.
///
///     the window before   | mark, header | row | dead row | row | blank | row | part of a row
///     and after           | mark, header | row | row | blank | row |
///                         └────────────── kept ────────────────────┘   consumed up to here ┘
///
/// What is not consumed comes again at the next window's start, with more behind it. A row that is
/// longer than rows may be has no token, and passes by in pieces. Each byte is looked at by a scanner
/// that checks before anything is made of it: behind a `fault` nothing is consumed.
public struct ListPruner: ~Copyable {
    /// What became of a window.
    public struct Outcome: Sendable {
        /// Bytes at the window's start that belong to the pruned list.
        public var keptCount: Int
        /// Bytes that are dealt with; the others come again in the next window.
        public var consumedCount: Int
    }

    /// What was done so far.
    public internal(set) var counts = PruneCounts()
    /// Why the list can't be read on: there is no pruned list then.
    public private(set) var fault: ListFault?
    /// In the window that was dealt with last, before it changed: what was handed out as removed, and what
    /// of that does not belong to the pruned list; empty where nobody asks.
    public internal(set) var removedRanges: (handedOut: [Range<Int>], cut: [Range<Int>]) = ([], [])

    let dead: DeadTokens
    let layout: RowLayout
    /// Whether field 1 is the time of a row's registration.
    let hasRegistration: Bool
    /// Reads that time.
    let registrationTime: RegistrationTime
    /// Whether rows that go are handed out.
    let collectsRemoved: Bool
    /// Whether `removedRanges` are wanted.
    let notesRanges: Bool
    var reader: RowReader
    var isAtStart = true
    var isHeaderDue: Bool
    /// Whether a first line that names the separator may come before the header.
    var isSeparatorDue: Bool
    /// The line on which the next window starts; kept for delimited formats only.
    var line: UInt64 = 1
    var digits = TokenDigits()
    /// What looks for the end of a row that is longer than rows may be; nil: there is none.
    private var longRow: RowScanner?
    /// What looks at each byte first, the bytes at the next window's start that it has seen, and the line
    /// that it is on.
    private var checker: RowScanner
    private var checkedCount = 0
    private var checkedLine: UInt64 = 1
    /// The run of bytes that stay and were not moved to their place yet: from where, to where.
    var runStart = 0
    var keptEnd = 0

    /// - Parameters:
    ///   - dead: the dead tokens, sealed.
    ///   - layout: field 0 is the token; field 1, if there is one, the time of registration.
    ///   - collectsRemoved: whether `process` hands out what goes.
    ///   - nowMilliseconds: the time, milliseconds since 1970.
    ///   - notesRanges: whether it also says where that was.
    public init(
        dead: consuming DeadTokens, layout: RowLayout, collectsRemoved: Bool,
        nowMilliseconds: UInt64, notesRanges: Bool = false
    ) {
        self.dead = dead
        self.layout = layout
        self.notesRanges = notesRanges
        checker = RowScanner(checking: layout.format, shape: layout.shape)
        hasRegistration = layout.format != .lines && layout.names.count > 1
        self.collectsRemoved = collectsRemoved
        registrationTime = RegistrationTime(nowMilliseconds: nowMilliseconds)
        reader = RowReader(layout: layout)
        isHeaderDue = layout.format.hasHeader
        isSeparatorDue = isHeaderDue
    }

    /// Deals with the rows that are whole in a window.
    ///
    /// - Parameters:
    ///   - window: the list from where the last window was consumed on; it changes.
    ///   - isLast: whether the list ends with it.
    ///   - removed: grows by the rows that go, and at first by the header.
    /// - Returns: where nothing is consumed, a row is longer than the window.
    public mutating func process(
        _ window: UnsafeMutableRawBufferPointer, isLast: Bool, removed: inout [UInt8]
    ) -> Outcome {
        // SAFETY: the memory is the caller's for this call, and nothing keeps the window longer.
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
            "what is kept is in what was gone through")
        return Outcome(keptCount: keptEnd, consumedCount: consumed)
    }

    /// Looks at what is new in a window; false where there is a fault.
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

    /// Ends the list; why it could not be read to its end.
    public mutating func finish() -> ListFault? {
        _ = checker.endOfText(at: 0)
        noteFault()
        return fault
    }

    private mutating func noteFault() {
        guard fault == nil, let found = checker.fault else { return }
        fault = ListFault(found.kind, line: checkedLine + found.line)
    }

    /// Appends to what goes, if it is wanted.
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

    /// Takes a row that is longer than rows may be for what it is: none with a token.
    private mutating func beginLongRow(_ window: PrunerWindow, from start: Int) {
        var scanner = RowScanner(format: layout.format)
        var scan = start
        let found = window.nextEnd(&scanner, from: &scan)
        precondition(found == nil, "a whole row was not dealt with")
        longRow = scanner
        counts.rows += 1
        counts.withoutToken += 1
    }

    /// Passes by what a window has of such a row; how much that is.
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

    /// Moves the bytes that stay and come before `end` behind those that stayed before.
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

    /// Takes a row out.
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

    /// Whether the text is a dead token's; nil too where it is not a token.
    @inline(__always)
    mutating func findDead(_ text: RawSpan) -> DeadTokens.Record? {
        guard digits.write({ TokenText.canonicalize(text, into: &$0) }) else {
            counts.withoutToken += 1
            return nil
        }
        let fingerprint = TokenText.fingerprint(digits.bytes)
        guard dead.mayContain(fingerprint) else { return nil }
        return dead.find(digits: digits.bytes, fingerprint: fingerprint)
    }
}
