/// Validation of UTF-8 (RFC 3629 section 4's table).
public enum UTF8Scalar {
    /// Returns the byte count of the scalar at `offset`, 1 to 4; nil if it is not well-formed.
    public static func count(in text: RawSpan, at offset: Int) -> Int? {
        let first = text.byte(at: offset)
        let (count, second): (Int, ClosedRange<UInt8>)
        switch first {
        case 0..<0x80: return 1
        case 0xc2...0xdf: (count, second) = (2, 0x80...0xbf)
        case 0xe0: (count, second) = (3, 0xa0...0xbf)
        case 0xe1...0xec, 0xee...0xef: (count, second) = (3, 0x80...0xbf)
        case 0xed: (count, second) = (3, 0x80...0x9f)
        case 0xf0: (count, second) = (4, 0x90...0xbf)
        case 0xf1...0xf3: (count, second) = (4, 0x80...0xbf)
        case 0xf4: (count, second) = (4, 0x80...0x8f)
        default: return nil
        }
        if text.byteCount - offset < count { return nil }
        for position in 1..<count {
            let byte = text.byte(at: offset + position)
            let allowed = position == 1 ? second : 0x80...0xbf
            if !allowed.contains(byte) { return nil }
        }
        return count
    }
}
