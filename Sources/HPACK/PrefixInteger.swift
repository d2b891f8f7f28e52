/// Integers that share their first byte with a pattern (RFC 7541 section 5.1).
public enum PrefixInteger {
    /// Largest value that is decoded. RFC 7541 section 5.1 requires implementations to set a limit;
    /// this one is above any sensible string or table size.
    static let limit = 1 << 24

    /// Appends `value` with a prefix of `prefixBits` bits. The higher bits of the first byte are
    /// taken from `pattern`.
    public static func encode(
        _ value: Int, prefixBits: Int, pattern: UInt8, into bytes: inout [UInt8]
    ) {
        precondition(value >= 0 && value <= limit, "a header block has no such integer")
        precondition(prefixBits >= 1 && prefixBits <= 8, "a prefix has 1 to 8 bits")
        let mask = (1 << prefixBits) - 1
        guard value >= mask else {
            bytes.append(pattern | UInt8(value))
            return
        }
        bytes.append(pattern | UInt8(mask))
        var rest = value - mask
        while rest >= 0x80 {
            bytes.append(UInt8(rest & 0x7f) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }

    /// Decodes the integer at `offset`, which has `prefixBits` bits in the first byte, and advances
    /// `offset` past it. Throws `truncated` or `integerTooLarge`.
    @inlinable @inline(__always)
    public static func decode(
        _ block: RawSpan, at offset: inout Int, prefixBits: Int
    ) throws(HPACKError) -> Int {
        guard offset < block.byteCount else {
            throw HPACKError(code: .truncated, offset: offset)
        }
        let mask = (1 << prefixBits) - 1
        let first = Int(block.byte(at: offset)) & mask
        offset += 1
        guard first == mask else { return first }
        return try decodeContinuation(block, at: &offset, first: first)
    }

    /// Decodes the bytes after a prefix of all ones. A separate function, so that the short form
    /// stays small when inlined.
    @usableFromInline
    static func decodeContinuation(
        _ block: RawSpan, at offset: inout Int, first: Int
    ) throws(HPACKError) -> Int {
        var value = first
        var shift = 0
        while true {
            guard offset < block.byteCount else {
                throw HPACKError(code: .truncated, offset: offset)
            }
            let byte = block.byte(at: offset)
            // Four bytes hold 28 bits. A fifth would be zero padding or too large, and no encoder
            // has a reason to write it for integers this small.
            guard shift <= 21 else {
                throw HPACKError(code: .integerTooLarge, offset: offset)
            }
            value += Int(byte & 0x7f) << shift
            guard value <= limit else {
                throw HPACKError(code: .integerTooLarge, offset: offset)
            }
            offset += 1
            shift += 7
            assert(value >= first, "what follows is added")
            if byte & 0x80 == 0 { return value }
        }
    }
}
