import Support

extension LedgerWriter {
    /// Notes a settled row whose token is digits, sixteen of them at a time: where long stretches of a
    /// list need no request, this is most of the work.
    ///
    /// - Returns: False where the token has another form; then nothing was noted.
    mutating func settledQuickly(
        row: UInt64, state: RowState, status: UInt16, reason: UInt8, attempts: Int,
        digits: RawSpan, nowMilliseconds: UInt64
    ) -> Bool {
        let count = digits.byteCount
        guard count > 0, count & 15 == 0, count <= LedgerFormat.tokenTextByteCountMax,
            LedgerWriter.areDigits(digits)
        else { return false }
        let second = SettledWord(
            status: status, reason: reason, flags: 0, attempts: UInt16(clamping: attempts),
            tokenCount: count / 2, reasonTextCount: 0)
        let delta = makeRoom(slots: second.slotCount, nowMilliseconds)
        let small = UInt64(state.rawValue)
        append(FirstWord(kind: .settled, small: small, delta: delta, row: row).bits)
        append(second.bits)
        for offset in stride(from: 0, to: count, by: 16) {
            let low = LedgerWriter.packed(LedgerWriter.word(of: digits, at: offset))
            let high = LedgerWriter.packed(LedgerWriter.word(of: digits, at: offset + 8))
            append(low | high << 32)
        }
        // A slot is two words.
        if count / 16 & 1 == 1 { append(0) }
        return true
    }

    /// Whether bytes, eight at a time, are hexadecimal digits of either case. Each byte is judged by
    /// whether a sum reaches its top bit, as in `TokenText`.
    private static func areDigits(_ digits: RawSpan) -> Bool {
        let ones: UInt64 = 0x0101_0101_0101_0101
        var wrong: UInt64 = 0
        for offset in stride(from: 0, to: digits.byteCount, by: 8) {
            let bytes = word(of: digits, at: offset)
            let digit = bytes ^ ones &* 0x30
            let letter = (bytes | ones &* 0x20) ^ ones &* 0x60
            let isNoDigit = digit &+ ones &* (0x80 - 10)
            let isAboveF = letter &+ ones &* (0x80 - 7)
            let isBelowA = ones &* 0x80 &- letter
            wrong |= bytes | (isNoDigit & (isAboveF | isBelowA))
        }
        return wrong & (ones &* 0x80) == 0
    }

    private static func word(of digits: RawSpan, at offset: Int) -> UInt64 {
        // SAFETY: any 64 bits are a word, and the load checks its bounds.
        unsafe UInt64(
            littleEndian: digits.unsafeLoadUnaligned(
                fromByteOffset: offset, as: UInt64.self))
    }

    /// Eight digits as four bytes, the first in the lowest.
    private static func packed(_ digits: UInt64) -> UInt64 {
        // Bit 6 tells a letter, whose lower bits count from 1 where its value counts from 10.
        let letters = digits >> 6 & 0x0101_0101_0101_0101
        let values = digits & 0x0F0F_0F0F_0F0F_0F0F &+ letters &* 9
        var pairs = (values << 4 | values >> 8) & 0x00FF_00FF_00FF_00FF
        pairs = (pairs | pairs >> 8) & 0x0000_FFFF_0000_FFFF
        return (pairs | pairs >> 16) & 0xFFFF_FFFF
    }
}
