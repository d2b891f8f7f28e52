import APNs

/// Takes the rows of dead tokens out of a list that comes by in windows, in place: all other bytes
/// stay as they are.
///
///     the window before   | mark, header | row | dead row | row | blank | row | part of a row
///     and after           | mark, header | row | row | blank | row |
///                         └────────────── kept ────────────────────┘   consumed up to here ┘
///
/// What is not consumed comes again at the next window's start, with more behind it. A row that is
/// longer than rows may be has no token, and passes by in pieces.
@safe public struct ListPruner: ~Copyable {
    /// What became of a window.
    public struct Outcome: Sendable {
        /// Bytes at the window's start that belong to the pruned list.
        public var keptCount: Int
        /// Bytes that are dealt with; the others come again in the next window.
        public var consumedCount: Int
    }

    /// What was done so far.
    public internal(set) var counts = PruneCounts()

    let dead: DeadTokens
    let layout: RowLayout
    /// Whether field 1 is the time of a row's registration.
    let hasRegistration: Bool
    /// Whether rows that go are handed out.
    let collectsRemoved: Bool
    var reader: RowReader
    var isAtStart = true
    var isHeaderDue: Bool
    /// The line on which the next window starts; kept for delimited formats only.
    var line: UInt64 = 1
    /// Room for a token's digits.
    let scratch: UnsafeMutableRawBufferPointer
    /// What looks for the end of a row that is longer than rows may be; nil: there is none.
    private var longRow: RowScanner?
    /// The run of bytes that stay and were not moved to their place yet: from where, to where.
    var runStart = 0
    var keptEnd = 0

    /// - Parameters:
    ///   - dead: the dead tokens, sealed.
    ///   - layout: field 0 is the token; field 1, if there is one, the time of registration.
    ///   - collectsRemoved: whether `process` hands out what goes.
    public init(dead: consuming DeadTokens, layout: RowLayout, collectsRemoved: Bool) {
        self.dead = dead
        self.layout = layout
        hasRegistration = layout.format != .lines && layout.names.count > 1
        self.collectsRemoved = collectsRemoved
        reader = RowReader(layout: layout)
        isHeaderDue = layout.format.hasHeader
        unsafe scratch = .allocate(byteCount: TokenText.maximumDigitCount, alignment: 16)
    }

    deinit {
        unsafe scratch.deallocate()
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
        guard let base = window.baseAddress, window.count > 0 else {
            return Outcome(keptCount: 0, consumedCount: 0)
        }
        runStart = 0
        keptEnd = 0
        var start = 0
        if isAtStart {
            if window.count < 3, !isLast { return Outcome(keptCount: 0, consumedCount: 0) }
            isAtStart = false
            if unsafe window.prefix(3).elementsEqual(ListFormat.byteOrderMark) { start = 3 }
            if start > 0, collectsRemoved, isHeaderDue { removed += ListFormat.byteOrderMark }
        }
        var consumed = unsafe passLongRow(base, from: &start, to: window.count)
        if start == window.count {
        } else if layout.format == .lines {
            consumed = unsafe goThroughLines(
                base, from: start, to: window.count, isLast: isLast, removed: &removed)
        } else {
            consumed = unsafe goThroughRecords(
                base, from: start, to: window.count, isLast: isLast, removed: &removed)
        }
        if !isLast, window.count - consumed > RowChunk.storedCountMax {
            unsafe beginLongRow(base, from: consumed, to: window.count)
            consumed = window.count
        }
        unsafe moveRun(base, upTo: consumed)
        return Outcome(keptCount: keptEnd, consumedCount: consumed)
    }

    /// Takes a row that is longer than rows may be for what it is: none with a token.
    private mutating func beginLongRow(
        _ base: UnsafeMutableRawPointer, from start: Int, to end: Int
    ) {
        var scanner = RowScanner(format: layout.format)
        var scan = start
        let found = unsafe scanner.nextEnd(in: UnsafeRawPointer(base), from: &scan, to: end)
        precondition(found == nil, "a whole row was not dealt with")
        longRow = scanner
        counts.rows += 1
        counts.withoutToken += 1
    }

    /// Passes by what a window has of such a row; how much that is.
    private mutating func passLongRow(
        _ base: UnsafeMutableRawPointer, from start: inout Int, to end: Int
    ) -> Int {
        if let found = unsafe longRow?.nextEnd(
            in: UnsafeRawPointer(base), from: &start, to: end)
        {
            longRow = nil
            line += found.lineCount
        }
        return start
    }

    /// Moves the bytes that stay and come before `end` behind those that stayed before.
    func moved(_ base: UnsafeMutableRawPointer, upTo end: Int) -> Int {
        let count = end - runStart
        if keptEnd != runStart, count > 0 {
            // SAFETY: both ranges lie inside the window, and memory only moves towards its start.
            unsafe (base + keptEnd).copyMemory(from: base + runStart, byteCount: count)
        }
        return keptEnd + count
    }

    mutating func moveRun(_ base: UnsafeMutableRawPointer, upTo end: Int) {
        keptEnd = unsafe moved(base, upTo: end)
        runStart = end
    }

    /// Takes a row out.
    mutating func remove(
        _ base: UnsafeMutableRawPointer, _ start: Int, _ end: Int, reason: UInt8,
        removed: inout [UInt8]
    ) {
        counts.removed += 1
        counts.removedByReason[Int(reason)] += 1
        if collectsRemoved {
            // SAFETY: the row lies inside the window.
            unsafe removed.append(
                contentsOf: UnsafeRawBufferPointer(start: base + start, count: end - start))
        }
        unsafe moveRun(base, upTo: start)
        runStart = end
    }

    /// Whether the text is a dead token's; nil too where it is not a token.
    @inline(__always)
    mutating func findDead(_ text: RawSpan) -> DeadTokens.Record? {
        var digits = unsafe OutputRawSpan(buffer: scratch, initializedCount: 0)
        let isToken = TokenText.canonicalize(text, into: &digits)
        let count = unsafe digits.finalize(for: scratch)
        guard isToken else {
            counts.withoutToken += 1
            return nil
        }
        let token = unsafe RawSpan(
            _unsafeBytes: UnsafeRawBufferPointer(rebasing: scratch[..<count]))
        let fingerprint = TokenText.fingerprint(token)
        guard dead.mayContain(fingerprint) else { return nil }
        return dead.find(digits: token, fingerprint: fingerprint)
    }
}
