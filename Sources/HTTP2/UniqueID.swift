/// An `apns-unique-id`: a UUID, which APNs sends in the development environment.
struct UniqueID: Equatable {
    private var high: UInt64 = 0
    private var low: UInt64 = 0

    /// Length of a UUID as text, such as `1b4e28ba-2fa1-11d2-883f-0016d3cca427`, in bytes.
    static let textCount = 36

    /// Parses the text of a UUID, in any letter case; nil for other texts.
    init?(_ text: RawSpan) {
        guard text.byteCount == Self.textCount else { return nil }
        for offset in 0..<Self.textCount {
            let byte = text.byte(at: offset)
            if Self.isHyphen(offset) {
                guard byte == UInt8(ascii: "-") else { return nil }
                continue
            }
            let digit: UInt8
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = byte - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = byte - UInt8(ascii: "a") + 10
            case UInt8(ascii: "A")...UInt8(ascii: "F"): digit = byte - UInt8(ascii: "A") + 10
            default: return nil
            }
            high = high << 4 | low >> 60
            low = low << 4 | UInt64(digit)
        }
    }

    /// Writes the text, in lower case, at `output`, which has room for `textCount` bytes.
    func write(to output: UnsafeMutableRawPointer) {
        var (high, low) = (high, low)
        for offset in (0..<Self.textCount).reversed() {
            var byte = UInt8(ascii: "-")
            if !Self.isHyphen(offset) {
                let digit = UInt8(truncatingIfNeeded: low & 15)
                byte = digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10
                low = low >> 4 | high << 60
                high >>= 4
            }
            // SAFETY: the offset is below `textCount`, for which the caller has room.
            unsafe output.storeBytes(of: byte, toByteOffset: offset, as: UInt8.self)
        }
        assert(high == 0 && low == 0, "32 digits are the whole number")
    }

    private static func isHyphen(_ offset: Int) -> Bool {
        offset == 8 || offset == 13 || offset == 18 || offset == 23
    }
}
