/// The escapes of JSON strings (RFC 8259 section 7).
public enum JSONEscapes {
    /// Appends the unescaped text of a string. This text is never longer than its escaped form.
    ///
    /// - Parameters:
    ///   - inside: Contents of a string that the tokenizer accepted, without its quotes.
    ///   - output: Memory for as many bytes as `inside` has.
    /// - Returns: Offset of the first unpaired surrogate, which is not valid text; nil if there is
    ///   none.
    public static func decode(_ inside: RawSpan, into output: inout OutputRawSpan) -> Int? {
        var offset = 0
        let start = output.byteCount
        while offset < inside.byteCount {
            let byte = inside.byte(at: offset)
            guard byte == UInt8(ascii: "\\") else {
                output.append(byte)
                offset += 1
                continue
            }
            // The tokenizer has checked that each escape is complete.
            let escape = offset
            let letter = inside.byte(at: offset + 1)
            offset += 2
            switch letter {
            case UInt8(ascii: "b"): output.append(0x08)
            case UInt8(ascii: "f"): output.append(0x0c)
            case UInt8(ascii: "n"): output.append(0x0a)
            case UInt8(ascii: "r"): output.append(0x0d)
            case UInt8(ascii: "t"): output.append(0x09)
            case UInt8(ascii: "u"):
                var value = unit(inside, at: offset)
                offset += 4
                if value >> 10 == 0x36, offset + 6 <= inside.byteCount,
                    inside.byte(at: offset) == UInt8(ascii: "\\"),
                    inside.byte(at: offset + 1) == UInt8(ascii: "u")
                {
                    let second = unit(inside, at: offset + 2)
                    guard second >> 10 == 0x37 else { return escape }
                    value = 0x10000 + ((value & 0x3ff) << 10) + (second & 0x3ff)
                    offset += 6
                }
                guard let scalar = Unicode.Scalar(value) else { return escape }
                for byte in String(scalar).utf8 { output.append(byte) }
            default: output.append(letter)
            }
        }
        assert(output.byteCount <= start + inside.byteCount, "an escape is longer than its text")
        return nil
    }

    /// Value of four hexadecimal digits, which the tokenizer found after `\u`.
    private static func unit(_ text: RawSpan, at start: Int) -> UInt32 {
        var unit: UInt32 = 0
        for offset in start..<start + 4 {
            let byte = text.byte(at: offset)
            let digit = byte <= UInt8(ascii: "9") ? byte - 0x30 : (byte | 0x20) - 0x57
            unit = unit << 4 | UInt32(digit)
        }
        return unit
    }
}
