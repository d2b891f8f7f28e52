import BroadsidePrimitives
import BroadsideRows
import BroadsideSupport

/// Part of a list that a `ListPruner` processes. The memory belongs to the caller of the pruner.
/// Every access is bounds-checked.
@safe struct PrunerWindow {
    // SAFETY: `count` bytes of the caller, who keeps them alive and exclusive as long as the window
    // exists.
    private let start: UnsafeMutableRawPointer
    /// Number of bytes.
    let count: Int

    /// Creates a window; nil if there are no bytes. The memory must outlive the window, and be used
    /// by the window only.
    @unsafe init?(_ memory: UnsafeMutableRawBufferPointer) {
        // SAFETY: the caller vouches for the memory; its address and count are kept together.
        guard let start = memory.baseAddress, memory.count > 0 else { return nil }
        unsafe self.start = start
        count = memory.count
    }

    /// All bytes; valid until the window is changed.
    private var all: RawSpan {
        @inline(__always) @_lifetime(borrow self) get {
            // SAFETY: see `start`.
            let span = unsafe RawSpan(_unsafeStart: start, byteCount: count)
            return unsafe _overrideLifetime(span, borrowing: self)
        }
    }

    /// Bytes of a range; valid until the window is changed.
    @inline(__always) @_lifetime(borrow self)
    func bytes(_ range: Range<Int>) -> RawSpan { all.extracting(range) }

    /// The byte at an offset.
    @inline(__always)
    func byte(at offset: Int) -> UInt8 {
        all.byte(at: offset)
    }

    /// Offset of the first occurrence of a byte in a range; nil if there is none.
    func find(_ byte: UInt8, in range: Range<Int>) -> Int? {
        BroadsidePrimitives.find(byte, in: all, range.lowerBound, range.upperBound)
    }

    /// Whether a line of a list without columns is blank.
    func isBlankLine(_ range: Range<Int>) -> Bool {
        isBlank(all, range.lowerBound, range.upperBound, .lines)
    }

    /// Checks all bytes from an offset on with a checking scanner; returns the number of lines.
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

    /// Returns the next row end from `scan` on; nil if there is none.
    func nextEnd(_ scanner: inout RowScanner, from scan: inout Int) -> RowScanner.RowEnd? {
        scanner.nextEnd(in: all, from: &scan)
    }

    /// Opens the window in a reader, from an offset on, for as long as the window exists.
    @unsafe func open(_ reader: inout RowReader, from offset: Int, line: UInt64) {
        check(offset..<count)
        // SAFETY: the range was checked; the caller drops the reader's access with the window.
        unsafe reader.open(UnsafeRawPointer(start), from: offset, count: count, line: line)
    }

    /// Moves the bytes of a range towards the start.
    func move(_ range: Range<Int>, to offset: Int) {
        check(range)
        precondition(offset >= 0 && offset <= range.lowerBound, "towards the start only")
        // SAFETY: both ranges are inside the window.
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
