internal import BroadsideAPNs
public import BroadsidePrimitives
internal import BroadsideSupport

/// The rows of one part of the list, as an export has them: the line on which each starts, and its
/// token's lower-case digits, or the text in its place.
///
/// Made once, and filled with one part after the other.
@safe public struct ListRows: ~Copyable {
    /// The most rows of a part.
    static let countMax = ChunkReservation.rowCountMax
    /// The most bytes of all texts of a part: a chunk has no more, and no text is longer than its row.
    static let textByteCountMax = 1 << 16
    /// While a row is read, its token may need more.
    private static let byteCountMax = textByteCountMax + TokenText.maximumDigitCount

    /// A row: the line, counted from the part's first one (32 bits), whether the text is a token's
    /// digits (1), where the text ends (31).
    @usableFromInline var entries: FixedBuffer<UInt64>
    @inlinable static var isTokenBit: UInt64 { 1 << 31 }
    // SAFETY: `byteCountMax` bytes of this value's own, freed in `deinit`; the first `textEnd` are
    // set.
    @usableFromInline let texts: UnsafeMutableRawBufferPointer
    @usableFromInline var textEnd = 0
    @usableFromInline var firstLine: UInt64 = 0
    /// How many rows there are.
    public internal(set) var count = 0

    /// No rows.
    public init() {
        // SAFETY: zeros are a number, and `textEnd` says that no byte of the texts is set.
        unsafe entries = FixedBuffer(zeroed: ListRows.countMax)
        unsafe texts = .allocate(byteCount: ListRows.byteCountMax, alignment: 16)
    }

    // SAFETY: allocated in `init`, and reached only through this value.
    deinit { unsafe texts.deallocate() }

    /// Begins another part.
    ///
    /// - Parameter line: the line on which it starts, from 1.
    public mutating func begin(line: UInt64) {
        firstLine = line
        textEnd = 0
        count = 0
    }

    /// Appends a row.
    ///
    /// - Parameters:
    ///   - line: the line on which it starts, at or behind the part's first one.
    ///   - text: a token's lower-case digits, or what the list has in its place.
    ///   - isToken: whether it is a token.
    public mutating func append(line: UInt64, text: RawSpan, isToken: Bool) {
        let byteCount = text.byteCount
        precondition(
            byteCount <= ListRows.byteCountMax - textEnd, "texts are no longer than their rows")
        // SAFETY: the text has so many bytes, and there is room for them.
        unsafe text.withUnsafeBytes { bytes in
            guard let source = bytes.baseAddress else { return }
            unsafe (texts.baseAddress! + textEnd).copyMemory(from: source, byteCount: byteCount)
        }
        note(line: line, byteCount: byteCount, isToken: isToken)
    }

    @inline(__always)
    private mutating func note(line: UInt64, byteCount: Int, isToken: Bool) {
        textEnd += byteCount
        assert(line >= firstLine, "lines are in order")
        assert(count < ListRows.countMax, "a chunk has no more rows")
        entries[count] =
            (line &- firstLine) << 32 | (isToken ? ListRows.isTokenBit : 0) | UInt64(textEnd)
        count += 1
    }

    /// Appends a row, if it has a token.
    ///
    /// - Parameters:
    ///   - line: the line on which it starts, at or behind the part's first one.
    ///   - writeToken: appends the token's lower-case digits, and says whether there is one; if not,
    ///     nothing was appended.
    /// - Returns: whether there is one.
    @inline(__always)
    mutating func append(line: UInt64, _ writeToken: (inout OutputRawSpan) -> Bool) -> Bool {
        precondition(textEnd <= ListRows.textByteCountMax, "texts are no longer than their rows")
        // SAFETY: there is room for a token; what is appended is counted by the output, which ends
        // before anything else reaches the memory.
        let room = unsafe UnsafeMutableRawBufferPointer(
            start: texts.baseAddress! + textEnd, count: TokenText.maximumDigitCount)
        var digits = unsafe OutputRawSpan(buffer: room, initializedCount: 0)
        let isToken = writeToken(&digits)
        let byteCount = unsafe digits.finalize(for: room)
        if isToken { note(line: line, byteCount: byteCount, isToken: true) }
        return isToken
    }

    /// The 1-based line on which a row starts.
    ///
    /// - Parameter index: the row's place in the part.
    @inlinable
    public func line(of index: Int) -> UInt64 {
        precondition(index < count)
        return firstLine + entries[index] >> 32
    }

    /// Whether a row's text is a token's digits.
    ///
    /// - Parameter index: the row's place in the part.
    @inlinable
    public func isToken(_ index: Int) -> Bool {
        precondition(index < count)
        return entries[index] & ListRows.isTokenBit != 0
    }

    /// A row's token: its lower-case digits, or what the list has in its place.
    ///
    /// - Parameter index: the row's place in the part.
    @inlinable
    @_lifetime(borrow self)
    public func text(of index: Int) -> RawSpan {
        precondition(index < count)
        let start = index == 0 ? 0 : Int(entries[index - 1] & (ListRows.isTokenBit - 1))
        let end = Int(entries[index] & (ListRows.isTokenBit - 1))
        precondition(start <= end && end <= textEnd)
        // SAFETY: checked to lie in what is set; it changes only with this value.
        let span = unsafe RawSpan(
            _unsafeStart: texts.baseAddress! + start, byteCount: end - start)
        return unsafe _overrideLifetime(span, borrowing: self)
    }
}
