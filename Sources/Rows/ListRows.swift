internal import BroadsideAPNs
public import BroadsidePrimitives
internal import BroadsideSupport

/// The rows of one part of a list, for an export: the line of each row, and the token's lower-case
/// digits or the text in place of a token. A part is no larger than a chunk.
///
/// One value is created and reused for all parts.
@safe public struct ListRows: ~Copyable {
    /// Maximum number of rows of a part.
    static let countMax = ChunkReservation.rowCountMax
    /// Maximum number of bytes of all texts of a part. A chunk has no more bytes, and no text is
    /// longer than its row.
    static let textByteCountMax = 1 << 16
    /// Number of bytes allocated. It includes space for a whole token, which reading the last row
    /// may need.
    private static let byteCountMax = textByteCountMax + TokenText.maximumDigitCount

    /// One entry per row: the line relative to the part's first one (32 bits), whether the text is
    /// a token's digits (1 bit), and the end of the text (31 bits).
    @usableFromInline var entries: FixedBuffer<UInt64>
    @inlinable static var isTokenBit: UInt64 { 1 << 31 }
    // SAFETY: `byteCountMax` bytes owned by this value, freed in `deinit`; the first `textEnd` are
    // set.
    @usableFromInline let texts: UnsafeMutableRawBufferPointer
    @usableFromInline var textEnd = 0
    @usableFromInline var firstLine: UInt64 = 0
    /// Number of rows.
    public internal(set) var count = 0

    /// Creates an empty part.
    public init() {
        // SAFETY: zeros are valid numbers, and `textEnd` is 0, so that no byte of the texts counts
        // as set.
        unsafe entries = FixedBuffer(zeroed: ListRows.countMax)
        unsafe texts = .allocate(byteCount: ListRows.byteCountMax, alignment: 16)
    }

    // SAFETY: allocated in `init`, and accessed only through this value.
    deinit { unsafe texts.deallocate() }

    /// Removes all rows and begins another part.
    ///
    /// - Parameter line: First line of the part, from 1.
    public mutating func begin(line: UInt64) {
        firstLine = line
        textEnd = 0
        count = 0
    }

    /// Appends a row.
    ///
    /// - Parameters:
    ///   - line: Line on which the row starts. It is not before the part's first line.
    ///   - text: A token's lower-case digits, or the list's text in its place.
    ///   - isToken: Whether the text is a token.
    public mutating func append(line: UInt64, text: RawSpan, isToken: Bool) {
        let byteCount = text.byteCount
        precondition(
            byteCount <= ListRows.byteCountMax - textEnd, "texts are no longer than their rows")
        // SAFETY: the text has `byteCount` bytes, and there is enough memory for them.
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

    /// Appends a row if it has a token.
    ///
    /// - Parameters:
    ///   - line: Line on which the row starts. It is not before the part's first line.
    ///   - writeToken: Appends the token's lower-case digits, and returns true. If there is no
    ///     token, appends nothing and returns false.
    /// - Returns: Whether there is a token.
    @inline(__always)
    mutating func append(line: UInt64, _ writeToken: (inout OutputRawSpan) -> Bool) -> Bool {
        precondition(textEnd <= ListRows.textByteCountMax, "texts are no longer than their rows")
        // SAFETY: there is enough memory for a token; the output counts the appended bytes, and
        // ends before anything else accesses the memory.
        let room = unsafe UnsafeMutableRawBufferPointer(
            start: texts.baseAddress! + textEnd, count: TokenText.maximumDigitCount)
        var digits = unsafe OutputRawSpan(buffer: room, initializedCount: 0)
        let isToken = writeToken(&digits)
        let byteCount = unsafe digits.finalize(for: room)
        if isToken { note(line: line, byteCount: byteCount, isToken: true) }
        return isToken
    }

    /// Line on which a row starts, from 1.
    ///
    /// - Parameter index: Index of the row in the part.
    @inlinable
    public func line(of index: Int) -> UInt64 {
        precondition(index < count)
        return firstLine + entries[index] >> 32
    }

    /// Whether a row's text is a token's digits.
    ///
    /// - Parameter index: Index of the row in the part.
    @inlinable
    public func isToken(_ index: Int) -> Bool {
        precondition(index < count)
        return entries[index] & ListRows.isTokenBit != 0
    }

    /// Returns the lower-case digits of a row's token, or the list's text in place of a token.
    ///
    /// - Parameter index: Index of the row in the part.
    @inlinable
    @_lifetime(borrow self)
    public func text(of index: Int) -> RawSpan {
        precondition(index < count)
        let start = index == 0 ? 0 : Int(entries[index - 1] & (ListRows.isTokenBit - 1))
        let end = Int(entries[index] & (ListRows.isTokenBit - 1))
        precondition(start <= end && end <= textEnd)
        // SAFETY: checked to be within the set bytes; they change only with this value.
        let span = unsafe RawSpan(
            _unsafeStart: texts.baseAddress! + start, byteCount: end - start)
        return unsafe _overrideLifetime(span, borrowing: self)
    }
}
