internal import BroadsideAPNs
internal import BroadsideSupport

/// The outcome of each device token. It is a pure function of the token, so that a test can compute
/// which rows of a list must be refused.
///
///     h = splitmix64(first 8 bytes of the token, big-endian, padded with zeros at the end,
///                    XOR seed)
///     u = h / 2^64
///     u < badToken                 BadDeviceToken
///     u < badToken + unregistered  Unregistered, timestamp 1700000000000 + h mod 86400000,
///                                  or another `GoneTime`
///     else                         200
struct TokenOutcome: Sendable {
    private let badToken: Double
    private let bound: Double
    private let seed: UInt64
    private let goneTime: GoneTime

    /// - Parameters:
    ///   - badToken: Share of all tokens that are bad, 0 to 1.
    ///   - unregistered: Share of all tokens that are unregistered, 0 to 1.
    ///   - seed: Value XORed with the token's first bytes.
    ///   - goneTime: The timestamps of unregistered tokens.
    init(
        badToken: Double, unregistered: Double, seed: UInt64, goneTime: GoneTime = .computed
    ) {
        assert(badToken >= 0 && unregistered >= 0, "shares of the tokens")
        self.badToken = badToken
        bound = badToken + unregistered
        self.seed = seed
        self.goneTime = goneTime
    }

    /// Returns the response for a token, given as its first 8 bytes.
    func response(head: UInt64) -> Response {
        let h = splitmix64(head ^ seed)
        // Scaling by a power of two is exact, so the result is h / 2^64 with a single rounding.
        let u = Double(h) * 0x1p-64
        if u < badToken { return .refused(.badDeviceToken) }
        if u < bound {
            return Response(
                status: 410, reason: .unregistered,
                timestampMilliseconds: goneTime.milliseconds(hash: h))
        }
        return .accepted
    }

    /// Returns the first 8 bytes of the token with these digits; nil if they are invalid. A valid
    /// token has an even number of hexadecimal digits, from 2 to 200, in upper or lower case.
    static func head(ofDigits digits: RawSpan) -> UInt64? {
        guard digits.byteCount >= TokenText.minimumDigitCount,
            digits.byteCount <= TokenText.maximumDigitCount, digits.byteCount.isMultiple(of: 2)
        else { return nil }
        var head: UInt64 = 0
        for position in 0..<digits.byteCount {
            guard let value = hexValue(digits[position]) else { return nil }
            if position < 16 { head = head << 4 | UInt64(value) }
        }
        if digits.byteCount < 16 { head <<= UInt64((16 - digits.byteCount) * 4) }
        return head
    }

    @inline(__always)
    static func hexValue(_ byte: UInt8) -> UInt8? {
        let digit = byte &- 0x30
        if digit < 10 { return digit }
        let letter = (byte | 0x20) &- 0x61
        return letter < 6 ? letter + 10 : nil
    }
}
