/// The part of a list that a `ListPruner` has at hand, in memory of its caller; every access is held
/// against the count.
@safe struct ListWindow {
    // SAFETY: the caller's, `count` bytes, who keeps them alive and to itself as long as the window
    // lasts.
    private let start: UnsafeMutableRawPointer
    /// How many bytes there are.
    let count: Int

    /// Nil where there are none. The memory must outlive the window, and be only the window's.
    @unsafe init?(_ memory: UnsafeMutableRawBufferPointer) {
        // SAFETY: the caller vouches for the memory; its address and count are kept together.
        guard let start = memory.baseAddress, memory.count > 0 else { return nil }
        unsafe self.start = start
        count = memory.count
    }

    /// The bytes of a range; they last until the window is changed.
    @inline(__always) @_lifetime(borrow self)
    func bytes(_ range: Range<Int>) -> RawSpan {
        check(range)
        // SAFETY: inside the window.
        let span = unsafe RawSpan(_unsafeStart: start + range.lowerBound, byteCount: range.count)
        return unsafe _overrideLifetime(span, borrowing: self)
    }

    /// The byte at an offset.
    @inline(__always)
    func byte(at offset: Int) -> UInt8 {
        bytes(offset..<offset + 1).byte(at: 0)
    }

    /// The first place of a byte in a range.
    func find(_ byte: UInt8, in range: Range<Int>) -> Int? {
        check(range)
        // SAFETY: inside the window.
        return unsafe Campaign.find(byte, start, range.lowerBound, range.upperBound)
    }

    /// Whether a line of lists without columns is blank.
    func isBlankLine(_ range: Range<Int>) -> Bool {
        check(range)
        // SAFETY: inside the window.
        return unsafe isBlank(start, range.lowerBound, range.upperBound, .lines)
    }

    /// Where the next row ends, from `scan` on.
    func nextEnd(_ scanner: inout RowScanner, from scan: inout Int) -> RowScanner.RowEnd? {
        check(scan..<count)
        // SAFETY: inside the window.
        return unsafe scanner.nextEnd(in: UnsafeRawPointer(start), from: &scan, to: count)
    }

    /// Has rows read from an offset on, for as long as the window lasts.
    @unsafe func open(_ reader: inout RowReader, from offset: Int, line: UInt64) {
        check(offset..<count)
        // SAFETY: the range was checked; the caller lets the reader go with the window.
        unsafe reader.open(UnsafeRawPointer(start), from: offset, count: count, line: line)
    }

    /// Moves the bytes of a range towards the start.
    func move(_ range: Range<Int>, to offset: Int) {
        check(range)
        precondition(offset >= 0 && offset <= range.lowerBound, "towards the start only")
        // SAFETY: both ranges lie inside the window.
        unsafe (start + offset).copyMemory(from: start + range.lowerBound, byteCount: range.count)
    }

    /// Appends the bytes of a range.
    func append(_ range: Range<Int>, to output: inout [UInt8]) {
        // SAFETY: `bytes` checks the range, and what is appended is copied.
        unsafe bytes(range).withUnsafeBytes { source in unsafe output.append(contentsOf: source) }
    }

    @inline(__always)
    private func check(_ range: Range<Int>) {
        precondition(range.lowerBound >= 0 && range.upperBound <= count, "outside of the window")
    }
}
