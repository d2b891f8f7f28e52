import BroadsideSupport

/// Removes whitespace from a payload that passed `PayloadCheck`.
///
/// Only blanks between tokens are removed, and every other byte is kept. So numbers, escapes and
/// the order of keys stay as written.
public enum PayloadMinifier {
    /// Returns the payload without blanks between its tokens.
    public static func minify(_ payload: RawSpan) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(payload.byteCount)
        var isString = false
        var isEscaped = false
        for offset in 0..<payload.byteCount {
            let byte = payload.byte(at: offset)
            if isString {
                result.append(byte)
                if isEscaped {
                    isEscaped = false
                } else if byte == UInt8(ascii: "\\") {
                    isEscaped = true
                } else if byte == UInt8(ascii: "\"") {
                    isString = false
                }
                continue
            }
            switch byte {
            case 0x20, 0x09, 0x0a, 0x0d: break
            default:
                isString = byte == UInt8(ascii: "\"")
                result.append(byte)
            }
        }
        assert(!isString, "the payload is JSON, whose strings end")
        return result
    }
}
