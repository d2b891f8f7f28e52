/// Conversion between hexadecimal digits and numbers.
public enum HexDigits {
    /// The result for a byte that is not a digit.
    @inlinable public static var none: UInt8 { 255 }

    /// Returns the value of a digit of either case; `none` for any other byte.
    @inlinable @inline(__always)
    public static func value(_ digit: UInt8) -> UInt8 {
        switch digit {
        case 0x30...0x39: digit - 0x30
        case 0x61...0x66: digit - 0x61 + 10
        case 0x41...0x46: digit - 0x41 + 10
        default: none
        }
    }

    /// Appends the lower-case digits of bytes.
    @inlinable
    public static func append(_ bytes: ArraySlice<UInt8>, to output: inout [UInt8]) {
        for byte in bytes {
            output.append(digit(byte >> 4))
            output.append(digit(byte & 15))
        }
    }

    /// Returns the lower-case digit of a number below 16.
    @inlinable @inline(__always)
    public static func digit(_ value: UInt8) -> UInt8 {
        assert(value < 16, "a digit is half of a byte")
        return value < 10 ? 0x30 + value : 0x61 + value - 10
    }
}
