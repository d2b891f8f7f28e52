import BroadsidePrimitives
import BroadsideRows
import BroadsideSupport

/// The part of a list that a `ListPruner` has at hand, in memory of its caller; every access is held
/// against the count.
@safe struct PrunerWindow {
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

    /// All bytes; they last until the window is changed.
    private var all: RawSpan {
        @inline(__always) @_lifetime(borrow self) get {
            // SAFETY: see `start`.
            let span = unsafe RawSpan(_unsafeStart: start, byteCount: count)
            return unsafe _overrideLifetime(span, borrowing: self)
        }
    }

    /// The bytes of a range; they last until the window is changed.
    @inline(__always) @_lifetime(borrow self)
    func bytes(_ range: Range<Int>) -> RawSpan { all.extracting(range) }

    /// The byte at an offset.
    @inline(__always)
    func byte(at offset: Int) -> UInt8 {
        all.byte(at: offset)
    }

    /// The first place of a byte in a range.
    func find(_ byte: UInt8, in range: Range<Int>) -> Int? {
        BroadsidePrimitives.find(byte, in: all, range.lowerBound, range.upperBound)
    }

    /// Whether a line of lists without columns is blank.
    func isBlankLine(_ range: Range<Int>) -> Bool {
        isBlank(all, range.lowerBound, range.upperBound, .lines)
    }

    /// Has a scanner that checks look at all bytes from an offset on; how many lines it went over.
    func check(_ scanner: inout RowScanner, from offset: Int) -> UInt64 {
        guard scanner.begin(all, from: offset) else { return 0 }
        guard scanner.mustCheck(at: all) else {
            return UInt64(ByteScan.count(UInt8(ascii: "\n"), in: all, from: offset, to: count))
        }
        var scan = offset
        var lines: UInt64 = 0
        while let end = nextEnd(&scanner, from: &scan) { lines += end.lineCount }
        return lines
    }

    /// Where the next row ends, from `scan` on.
    func nextEnd(_ scanner: inout RowScanner, from scan: inout Int) -> RowScanner.RowEnd? {
        scanner.nextEnd(in: all, from: &scan)
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
        output.append(bytes(range))
    }

    @inline(__always)
    private func check(_ range: Range<Int>) {
        precondition(range.lowerBound >= 0 && range.upperBound <= count, "outside of the window")
    }
}
