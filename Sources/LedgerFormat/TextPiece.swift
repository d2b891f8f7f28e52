internal import BroadsideAPNs
internal import BroadsidePrimitives
internal import BroadsideSupport

/// Short text that is written often. The text is prepared once, so that each copy takes only a few
/// stores of eight bytes.
struct TextPiece {
    /// Maximum length of a piece in bytes.
    static let byteCountMax = 96
    static let none = TextPiece([])!

    /// Bytes in memory order, followed by zeros.
    fileprivate var words: InlineArray<12, UInt64> = .init(repeating: 0)
    /// Number of bytes.
    private(set) var count: Int

    /// Creates a piece; nil if the text is longer than `byteCountMax`.
    init?(_ text: [UInt8]) {
        guard text.count <= TextPiece.byteCountMax else { return nil }
        count = text.count
        for (offset, byte) in text.enumerated() {
            words[offset / 8] |= UInt64(byte) << UInt64(offset % 8 * 8)
        }
    }
}

/// Position for the next bytes of a text, and the end of its memory. A cursor is used within one
/// function, which updates the count of set bytes afterwards.
@safe struct TextCursor {
    // SAFETY: the memory from `position` to `end` belongs to the code that made this value, and is
    // valid while this value is used. Each function checks what it sets against the remaining room.
    private(set) var position: UnsafeMutableRawPointer
    private let end: UnsafeMutableRawPointer

    /// - Parameters:
    ///   - position: Start of the free memory.
    ///   - end: End of the free memory. The memory must outlive this value.
    // SAFETY: the caller guarantees what is stated above.
    @unsafe init(_ position: UnsafeMutableRawPointer, end: UnsafeMutableRawPointer) {
        unsafe self.position = position
        unsafe self.end = end
    }

    /// Number of free bytes.
    // SAFETY: both are addresses of one memory.
    private var room: Int { unsafe end - position }

    /// Appends a piece. Requires enough free bytes for the longest piece.
    @inline(__always)
    mutating func put(_ piece: borrowing TextPiece) {
        precondition(room >= TextPiece.byteCountMax)
        // SAFETY: twelve words fit; those behind the piece's count are overwritten later.
        unsafe position.storeBytes(of: piece.words[0].littleEndian, as: UInt64.self)
        unsafe position.storeBytes(
            of: piece.words[1].littleEndian, toByteOffset: 8, as: UInt64.self)
        if piece.count > 16 {
            for index in 2..<12 {
                unsafe position.storeBytes(
                    of: piece.words[index].littleEndian, toByteOffset: 8 * index, as: UInt64.self)
            }
        }
        unsafe position += piece.count
    }

    /// Appends a byte.
    @inline(__always)
    private mutating func put(_ byte: UInt8) {
        precondition(room >= 1)
        // SAFETY: there is room for it.
        unsafe position.storeBytes(of: byte, as: UInt8.self)
        unsafe position += 1
    }

    /// Appends bytes.
    @inline(__always)
    mutating func put(_ bytes: RawSpan) {
        let count = bytes.byteCount
        precondition(room >= count)
        // SAFETY: there is room for the bytes. They do not overlap the free memory, because another
        // value owns them.
        unsafe bytes.withUnsafeBytes { source in
            guard let start = source.baseAddress else { return }
            if count == 64 {
                // The length of nearly all tokens.
                unsafe position.copyMemory(from: start, byteCount: 64)
            } else {
                unsafe position.copyMemory(from: start, byteCount: count)
            }
        }
        unsafe position += count
    }

    /// Appends two lower-case digits per byte.
    mutating func putHexadecimal(_ bytes: RawSpan) {
        for offset in 0..<bytes.byteCount {
            let byte = bytes.byte(at: offset)
            put(HexDigits.digit(byte >> 4))
            put(HexDigits.digit(byte & 15))
        }
    }

    /// Appends the last twelve digits of an apns-id.
    @inline(__always)
    mutating func putRowDigits(_ row: UInt64) {
        precondition(room >= 12)
        // SAFETY: there is room for them.
        unsafe NotificationID.writeRowDigits(row, into: position)
        unsafe position += 12
    }

    /// Appends a number in decimal digits.
    mutating func put(decimal number: UInt64) {
        guard number >= 10 else { return put(0x30 + UInt8(truncatingIfNeeded: number)) }
        var count = 2
        var limit: UInt64 = 100
        while count < TextCursor.decimalCountMax, number >= limit {
            count += 1
            limit &*= 10
        }
        precondition(room >= count)
        var rest = number
        for place in stride(from: count - 1, through: 0, by: -1) {
            // SAFETY: there is room for `count` digits.
            unsafe position.storeBytes(
                of: 0x30 + UInt8(truncatingIfNeeded: rest % 10), toByteOffset: place,
                as: UInt8.self)
            rest /= 10
        }
        unsafe position += count
    }

    /// Number of digits of the largest number.
    private static let decimalCountMax = 20

    /// Appends a number in decimal digits. If the number and the previous one differ only in the
    /// last three digits, copies the other digits from `last`.
    @inline(__always)
    mutating func put(_ number: UInt64, after last: inout DecimalThousands) {
        let thousands = number / 1_000
        if thousands != last.value { last = DecimalThousands(thousands) }
        guard thousands > 0 else { return put(decimal: number) }
        put(last.text)
        let rest = UInt32(truncatingIfNeeded: number &- thousands &* 1_000)
        let hundreds = rest / 100
        let tens = (rest &- hundreds &* 100) / 10
        let ones = rest &- hundreds &* 100 &- tens &* 10
        let digits = 0x30_3030 | hundreds | tens << 8 | ones << 16
        precondition(room >= 4)
        // SAFETY: four bytes fit; the last one is overwritten later.
        unsafe position.storeBytes(of: digits.littleEndian, as: UInt32.self)
        unsafe position += 3
    }
}

/// The decimal digits of a number, without its last three digits.
struct DecimalThousands {
    fileprivate let value: UInt64
    fileprivate let text: TextPiece

    /// Creates the value for numbers below 1,000, which have no digits before the last three.
    init() { self.init(0) }

    fileprivate init(_ value: UInt64) {
        self.value = value
        text = value == 0 ? .none : TextPiece(Array(String(value).utf8)) ?? .none
    }
}
