import BroadsidePrimitives
public import BroadsideRows
import BroadsideSupport

extension LedgerWriter {
    /// Records a row that APNs accepted, in a run whose rows have one topic. This is the hot path:
    /// it consists of two stores.
    ///
    /// - Parameters:
    ///   - row: Number of the row, below `LedgerFormat.rowLimit`.
    ///   - fingerprint: Fingerprint of the row's token.
    ///   - attempts: Number of attempts, from 1.
    ///   - nowMilliseconds: Time of the response, since 1970.
    @inlinable
    public mutating func accepted(
        row: UInt64, fingerprint: UInt64, attempts: Int, nowMilliseconds: UInt64
    ) {
        precondition(row < LedgerFormat.rowLimit && attempts > 0)
        let delta = nowMilliseconds &- clockMilliseconds
        let end = cursor &+ 2
        guard
            end <= blockLimit && delta <= LedgerFormat.deltaMillisecondsMax
                && attempts <= LedgerFormat.shortAttemptsMax
        else {
            acceptedSlowly(
                row: row, fingerprint: fingerprint, attempts: attempts,
                nowMilliseconds: nowMilliseconds)
            return
        }
        let first = FirstWord(
            kind: .accepted, small: UInt64(truncatingIfNeeded: attempts), delta: delta, row: row)
        // SAFETY: `end` is at most `blockLimit`, which is within the buffer, see `words`. So both
        // words are within the buffer, too.
        unsafe words[cursor] = first.bits.littleEndian
        unsafe words[cursor &+ 1] = fingerprint.littleEndian
        cursor = end
    }

    /// Records an accepted row if the fast path does not apply: opens a block or sets the clock
    /// first, or uses the long form if the number of attempts needs it.
    @usableFromInline
    @inline(never)
    mutating func acceptedSlowly(
        row: UInt64, fingerprint: UInt64, attempts: Int, nowMilliseconds: UInt64
    ) {
        if attempts <= LedgerFormat.shortAttemptsMax {
            let delta = makeRoom(slots: 1, nowMilliseconds)
            let first = FirstWord(kind: .accepted, small: UInt64(attempts), delta: delta, row: row)
            append(first.bits)
            append(fingerprint)
            return
        }
        accepted(
            row: row, fingerprint: fingerprint, attempts: attempts, arm: 0,
            nowMilliseconds: nowMilliseconds)
    }

    /// Records an accepted row that names its topic.
    ///
    /// - Parameters:
    ///   - row: Number of the row.
    ///   - fingerprint: Fingerprint of the row's token.
    ///   - attempts: Number of attempts, from 1.
    ///   - topic: Number of the row's topic, which must have a name; 0 if the row names no topic.
    ///   - nowMilliseconds: Time of the response, since 1970.
    public mutating func accepted(
        row: UInt64, fingerprint: UInt64, attempts: Int, topic: UInt16, nowMilliseconds: UInt64
    ) {
        precondition(row < LedgerFormat.rowLimit && attempts > 0)
        guard attempts <= LedgerFormat.shortAttemptsMax else {
            return accepted(
                row: row, fingerprint: fingerprint, attempts: attempts, arm: 0, topic: topic,
                nowMilliseconds: nowMilliseconds)
        }
        let delta = makeRoom(slots: 1, topic: topic, nowMilliseconds)
        append(
            FirstWord(kind: .accepted, small: UInt64(attempts), delta: delta, row: row).bits)
        append(fingerprint)
    }

    /// Records an accepted row in the long form, which has room for the number of an arm and for an
    /// apns-unique-id.
    ///
    /// - Parameters:
    ///   - row: Number of the row.
    ///   - fingerprint: Fingerprint of the row's token.
    ///   - attempts: Number of attempts, from 1.
    ///   - arm: Number of the row's arm; 0 if there is none.
    ///   - uniqueID: Text of the apns-unique-id, cut off after 64 bytes; nil if there is none.
    ///   - topic: Number of the row's topic, which must have a name; 0 if the row names no topic.
    ///   - nowMilliseconds: Time of the response, since 1970.
    public mutating func accepted(
        row: UInt64, fingerprint: UInt64, attempts: Int, arm: UInt8, uniqueID: RawSpan? = nil,
        topic: UInt16 = 0, nowMilliseconds: UInt64
    ) {
        precondition(row < LedgerFormat.rowLimit && attempts > 0 && arm <= ArmSplit.armLimit)
        let textCount = min(uniqueID?.byteCount ?? 0, LedgerFormat.reasonTextByteCountMax)
        let second = SettledWord(
            status: 200, reason: 0,
            flags: SettledWord.tokenIsFingerprint | UInt64(arm) << SettledWord.armShift,
            attempts: UInt16(clamping: attempts), tokenCount: 8, reasonTextCount: textCount)
        let delta = makeRoom(slots: second.slotCount, topic: topic, nowMilliseconds)
        let state = UInt64(RowState.accepted.rawValue)
        append(FirstWord(kind: .settled, small: state, delta: delta, row: row).bits)
        append(second.bits)
        append(fingerprint)
        var packer = BytePacker()
        if let uniqueID { push(uniqueID, count: textCount, &packer) }
        for _ in second.trailingByteCount..<(second.slotCount - 1) * 16 { push(0, &packer) }
    }

    /// Records a row that is settled in any state, and with any status.
    ///
    /// - Parameters:
    ///   - row: Number of the row.
    ///   - state: A settled state. It may be `accepted`, for an accepted row with its token.
    ///   - status: HTTP status; 0 if there was no response.
    ///   - reason: Stable code of the reason.
    ///   - reasonText: Text of a reason without a code, cut off after 64 bytes.
    ///   - attempts: Number of attempts, limited to 65,535; 0 if never sent.
    ///   - timestamp: Timestamp from APNs, in milliseconds since 1970.
    ///   - token: The token's hexadecimal digits, or the text in the list if it is not a token (cut
    ///     off after 200 bytes); empty if there is neither.
    ///   - tokenIsText: Whether `token` is a text that is not a token. An odd number of digits is
    ///     always kept as text.
    ///   - arm: Number of the row's arm; 0 if there is none.
    ///   - topic: Number of the row's topic, which must have a name; 0 if there is no topic.
    ///   - nowMilliseconds: Time of the verdict, since 1970.
    public mutating func settled(
        row: UInt64, state: RowState, status: UInt16, reason: UInt8, reasonText: RawSpan? = nil,
        attempts: Int, timestamp: UInt64? = nil, token: RawSpan, tokenIsText: Bool,
        arm: UInt8 = 0, topic: UInt16 = 0, nowMilliseconds: UInt64
    ) {
        precondition(row < LedgerFormat.rowLimit && attempts >= 0)
        precondition(arm <= ArmSplit.armLimit)
        precondition(state.isSettled, "only a final state settles a row")
        if !keepsTokens, token.byteCount > 0 {
            return settled(
                row: row, state: state, status: status, reason: reason, reasonText: reasonText,
                attempts: attempts, timestamp: timestamp, token: token.extracting(0..<0),
                tokenIsText: false, arm: arm, topic: topic, nowMilliseconds: nowMilliseconds)
        }
        if timestamp == nil, reasonText == nil, !tokenIsText,
            settledQuickly(
                row: row, state: state, status: status, reason: reason, attempts: attempts,
                digits: token, arm: arm, topic: topic, nowMilliseconds: nowMilliseconds)
        {
            return
        }
        let isText = tokenIsText || !LedgerWriter.isPackable(token)
        let tokenCount =
            isText
            ? min(token.byteCount, LedgerFormat.tokenTextByteCountMax) : token.byteCount / 2
        let textCount = min(reasonText?.byteCount ?? 0, LedgerFormat.reasonTextByteCountMax)
        let flags =
            (timestamp == nil ? 0 : SettledWord.hasTimestamp)
            | (isText ? SettledWord.tokenIsText : 0)
            | UInt64(arm) << SettledWord.armShift
        let second = SettledWord(
            status: status, reason: reason, flags: flags, attempts: UInt16(clamping: attempts),
            tokenCount: tokenCount, reasonTextCount: textCount)
        let delta = makeRoom(slots: second.slotCount, topic: topic, nowMilliseconds)
        let small = UInt64(state.rawValue)
        append(FirstWord(kind: .settled, small: small, delta: delta, row: row).bits)
        append(second.bits)
        if let timestamp { append(timestamp) }

        var packer = BytePacker()
        if isText {
            push(token, count: tokenCount, &packer)
        } else {
            for index in 0..<tokenCount {
                let high = HexDigits.value(token.byte(at: 2 * index))
                let low = HexDigits.value(token.byte(at: 2 * index + 1))
                push(high << 4 | low, &packer)
            }
        }
        if let reasonText {
            for index in 0..<textCount {
                push(reasonText.byte(at: index), &packer)
            }
        }
        let written = (timestamp == nil ? 0 : 8) + tokenCount + textCount
        for _ in written..<(second.slotCount - 1) * 16 { push(0, &packer) }
    }

    /// Copies the record of a row whose device was erased. The record has a hash in place of the
    /// token.
    ///
    /// - Parameters:
    ///   - record: The record that a reader found.
    ///   - hash: Replacement for the token.
    ///   - reasonText: Text of a reason without a code; empty if there is none.
    ///   - topic: Number of the row's topic, which must have a name; 0 if there is no topic.
    ///   - nowMilliseconds: Time of the verdict, since 1970.
    mutating func settled(
        _ record: SettledRecord, erasedHash hash: RawSpan, reasonText: RawSpan, topic: UInt16,
        nowMilliseconds: UInt64
    ) {
        let second = SettledWord(
            status: record.status, reason: record.reason,
            flags: SettledWord.tokenIsErased | UInt64(record.arm) << SettledWord.armShift
                | (record.timestamp == nil ? 0 : SettledWord.hasTimestamp),
            attempts: record.attempts, tokenCount: hash.byteCount,
            reasonTextCount: reasonText.byteCount)
        let delta = makeRoom(slots: second.slotCount, topic: topic, nowMilliseconds)
        let small = UInt64(record.state.rawValue)
        append(FirstWord(kind: .settled, small: small, delta: delta, row: record.row).bits)
        append(second.bits)
        if let timestamp = record.timestamp { append(timestamp) }
        var packer = BytePacker()
        push(hash, count: hash.byteCount, &packer)
        for index in 0..<reasonText.byteCount { push(reasonText.byte(at: index), &packer) }
        for _ in second.trailingByteCount..<(second.slotCount - 1) * 16 { push(0, &packer) }
    }

    /// Reserves a chunk. Its rows may be sent once the reservation is synced.
    ///
    /// - Parameters:
    ///   - chunk: The rows, which no other reservation of this run covers.
    ///   - nowMilliseconds: Current time, since 1970.
    /// - Returns: The position that `writtenPosition` or `syncedPosition` must reach before the
    ///   rows are sent.
    @discardableResult
    public mutating func reserve(_ chunk: ChunkReservation, nowMilliseconds: UInt64) -> UInt64 {
        reserve(chunk, within: Self.reservationSlots, nowMilliseconds)
    }

    /// Reserves a chunk, and releases some of its rows, which this run does not send. Reservation
    /// and release are in the same block, so that a power cut keeps both or neither.
    ///
    /// - Parameters:
    ///   - chunk: The rows, which no other reservation of this run covers.
    ///   - released: Rows of the chunk that stay unsent; each keeps its number of attempts.
    ///   - nowMilliseconds: Current time, since 1970.
    /// - Returns: The position that `writtenPosition` or `syncedPosition` must reach before the
    ///   rows are sent.
    public mutating func reserve(
        _ chunk: ChunkReservation, releasing released: ReleasedRows, nowMilliseconds: UInt64
    ) -> UInt64 {
        precondition(released.count == chunk.rowCount)
        let slots = LedgerFormat.partialReleaseSlots(rows: released.count)
        reserve(chunk, within: Self.reservationSlots + slots + 1, nowMilliseconds)
        return release(released, from: chunk.firstRow, nowMilliseconds: nowMilliseconds)
    }

    /// Releases rows that stay unsent. Each keeps its number of attempts.
    ///
    /// - Parameters:
    ///   - released: The rows.
    ///   - row: First row of their chunk.
    ///   - nowMilliseconds: Current time, since 1970.
    /// - Returns: The position after the record.
    @discardableResult
    mutating func release(
        _ released: ReleasedRows, from row: UInt64, nowMilliseconds: UInt64
    ) -> UInt64 {
        precondition(row < LedgerFormat.rowLimit)
        let slots = LedgerFormat.partialReleaseSlots(rows: released.count)
        let delta = makeRoom(slots: slots, nowMilliseconds)
        append(FirstWord(kind: .releaseSome, small: 0, delta: delta, row: row).bits)
        append(UInt64(released.count))
        for word in released.words { append(word) }
        return appendedPosition
    }

    /// Number of slots that a reservation takes.
    private static var reservationSlots: Int { 3 }

    /// Reserves a chunk in a block that has room for this number of slots.
    @discardableResult
    private mutating func reserve(
        _ chunk: ChunkReservation, within slots: Int, _ nowMilliseconds: UInt64
    ) -> UInt64 {
        precondition(chunk.rowCount > 0 && chunk.rowCount <= LedgerFormat.rowsPerChunkMax)
        precondition(chunk.rows.upperBound <= LedgerFormat.rowLimit)
        precondition(chunk.reopens.rawValue <= 15)
        let delta = makeRoom(slots: slots, nowMilliseconds)
        let small = UInt64(chunk.reopens.rawValue)
        append(FirstWord(kind: .reserve, small: small, delta: delta, row: chunk.firstRow).bits)
        append(UInt64(chunk.rowCount) | UInt64(UInt32(chunk.lineCount)) << 32)
        append(chunk.byteOffset)
        append(chunk.byteCount)
        append(chunk.firstLine)
        // The hash of a chunk of one row would be a fingerprint of its token.
        let isHashed = keepsTokens || chunk.rowCount > 1
        append(isHashed ? chunk.hash : ChunkReservation.unknownHash)
        assert(appendedPosition > writtenPosition, "a reservation waits to be written")
        return appendedPosition
    }

    /// Releases rows of a reservation, which then count as `remaining`. Such rows were certainly
    /// not sent, or they were refused and a later run retries them. A release is final for the run:
    /// do not release a row that another reactor of the run will send.
    ///
    /// - Parameters:
    ///   - row: First of the rows.
    ///   - count: Number of rows, all in one reservation.
    ///   - attempts: Number of attempts of each row.
    ///   - nowMilliseconds: Current time, since 1970.
    public mutating func release(
        row: UInt64, count: Int, attempts: Int, nowMilliseconds: UInt64
    ) {
        precondition(row < LedgerFormat.rowLimit && attempts >= 0)
        precondition(count > 0 && count <= LedgerFormat.rowsPerChunkMax)
        let delta = makeRoom(slots: 1, nowMilliseconds)
        append(FirstWord(kind: .release, small: 0, delta: delta, row: row).bits)
        append(UInt64(count) | UInt64(UInt16(clamping: attempts)) << 32)
    }
}

extension LedgerWriter {
    /// Records a settled row whose token consists of digits. Converts sixteen digits at a time: if
    /// long stretches of a list need no request, a run spends most of its time here.
    ///
    /// - Returns: false if the token has any other form. In this case nothing was recorded.
    mutating func settledQuickly(
        row: UInt64, state: RowState, status: UInt16, reason: UInt8, attempts: Int,
        digits: RawSpan, arm: UInt8 = 0, topic: UInt16 = 0, nowMilliseconds: UInt64
    ) -> Bool {
        let count = digits.byteCount
        guard count > 0, count & 15 == 0, count <= LedgerFormat.tokenTextByteCountMax,
            LedgerWriter.areDigits(digits)
        else { return false }
        let second = SettledWord(
            status: status, reason: reason, flags: UInt64(arm) << SettledWord.armShift,
            attempts: UInt16(clamping: attempts), tokenCount: count / 2, reasonTextCount: 0)
        let delta = makeRoom(slots: second.slotCount, topic: topic, nowMilliseconds)
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

    /// Whether all bytes are hexadecimal digits in upper or lower case. Checks eight bytes at a
    /// time, with sums in which the top bit of a byte is set if the byte is not a digit, as in
    /// `TokenText`.
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

    /// Converts eight digits to four bytes. The first byte is the lowest one of the result.
    private static func packed(_ digits: UInt64) -> UInt64 {
        // Bit 6 marks a letter, whose lower bits count from 1 and whose value counts from 10.
        let letters = digits >> 6 & 0x0101_0101_0101_0101
        let values = digits & 0x0F0F_0F0F_0F0F_0F0F &+ letters &* 9
        var pairs = (values << 4 | values >> 8) & 0x00FF_00FF_00FF_00FF
        pairs = (pairs | pairs >> 8) & 0x0000_FFFF_0000_FFFF
        return (pairs | pairs >> 16) & 0xFFFF_FFFF
    }
}
