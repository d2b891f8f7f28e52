import BroadsideAPNs

/// The generator of splitmix64: seeded, so that a failing case can be had again.
struct SeededGenerator: RandomNumberGenerator {
    var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var z = state
        z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
        z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
        return z ^ (z >> 31)
    }
}

/// Runs `body` with room for `capacity` bytes and returns what it wrote.
func written(_ capacity: Int, _ body: (inout OutputRawSpan) -> Void) -> [UInt8] {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: capacity, alignment: 16)
    defer { buffer.deallocate() }
    var output = OutputRawSpan(buffer: buffer, initializedCount: 0)
    body(&output)
    let count = output.finalize(for: buffer)
    return Array(buffer[..<count])
}

func canonical(_ text: String) -> String? {
    let bytes = Array(text.utf8)
    var isToken = false
    let digits = written(TokenText.maximumDigitCount) { output in
        isToken = TokenText.canonicalize(bytes.span.bytes, into: &output)
    }
    if !isToken {
        precondition(digits.isEmpty)
        return nil
    }
    return String(decoding: digits, as: UTF8.self)
}

func hash(_ text: String) -> UInt64 {
    let bytes = Array(text.utf8)
    return TokenText.fingerprint(bytes.span.bytes)
}

func hexadecimal(_ bytes: [UInt8]) -> String {
    bytes.map { byte in
        let digits = String(byte, radix: 16)
        return digits.count == 1 ? "0" + digits : digits
    }.joined()
}

func hexBytes(_ hexadecimal: String) -> [UInt8] {
    let digits = Array(hexadecimal.utf8)
    return stride(from: 0, to: digits.count, by: 2).map { offset in
        UInt8(String(decoding: digits[offset..<offset + 2], as: UTF8.self), radix: 16)!
    }
}
