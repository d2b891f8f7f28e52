public import BroadsideRows
import BroadsideSupport

/// A record of a segment, taken apart. The clock and sync records are the reader's own affair.
public enum LedgerRecord {
    case accepted(row: UInt64, fingerprint: UInt64, attempts: UInt16, milliseconds: UInt64)
    case settled(SettledRecord)
    case reserve(ChunkReservation)
    case release(row: UInt64, count: Int, attempts: UInt16)
}

/// A row settled by a plain 200: nearly all records.
public struct AcceptedRecord {
    var row: UInt64
    var fingerprint: UInt64
    var attempts: UInt16
    var milliseconds: UInt64
}

/// A row settled otherwise than by a plain 200.
public struct SettledRecord {
    /// What stands in the token's place.
    public enum Token {
        /// Nothing was there.
        case none
        /// The bytes of a token.
        case bytes(Range<Int>)
        /// Text that is not a token.
        case text(Range<Int>)
        /// The fingerprint of an accepted row's token.
        case fingerprint(UInt64)
    }

    var row: UInt64
    /// What became of it.
    public var state: RowState
    var status: UInt16
    /// The code of the response's reason; 0 if there is none.
    public var reason: UInt8
    var attempts: UInt16
    /// When it was settled: milliseconds since 1970.
    public var milliseconds: UInt64
    /// APNs' own time, in milliseconds since 1970.
    public var timestamp: UInt64?
    /// Ranges count from the start of the block.
    public var token: Token
    /// The text of a reason without a code; empty if there is none.
    var reasonText: Range<Int>
}

extension BlockReader {
    /// The next record of the block, if it is a well-formed one of an accepted row; else nil, and
    /// `nextRecord` is at the same place.
    @inline(__always)
    mutating func nextAccepted() -> AcceptedRecord? {
        guard recordOffset < blockByteCount else { return nil }
        let first = FirstWord(bits: word(at: recordOffset))
        guard first.isAccepted else { return nil }
        let fingerprint = word(at: recordOffset + 8)
        currentRecordOffset = recordOffset
        recordOffset += 16
        return AcceptedRecord(
            row: first.row, fingerprint: fingerprint, attempts: UInt16(first.small),
            milliseconds: clock &+ first.delta)
    }

    /// Goes behind all well-formed records of accepted rows that come next in the block.
    mutating func skipAccepted() {
        while recordOffset < blockByteCount, FirstWord(bits: word(at: recordOffset)).isAccepted {
            recordOffset += 16
        }
    }

    /// The next record of the block; nil at its end.
    ///
    /// - Throws: `malformedRecord`: the checksum holds, so whoever wrote this was wrong.
    public mutating func nextRecord() throws(LedgerError) -> LedgerRecord? {
        while recordOffset < blockByteCount {
            currentRecordOffset = recordOffset
            let first = FirstWord(bits: word(at: recordOffset))
            let second = word(at: recordOffset + 8)
            guard let kind = first.kind else { throw malformed("unknown kind") }
            switch kind {
            case .clock:
                recordOffset += 16
                guard second <= LedgerFormat.millisecondsMax else { throw malformed("its time") }
                clock = second
            case .synced:
                recordOffset += 16
                guard second <= blockOffset else { throw malformed("synced before it was written") }
                latestSyncedPosition = max(latestSyncedPosition, second)
            case .accepted:
                recordOffset += 16
                guard first.small > 0 else { throw malformed("accepted without an attempt") }
                return .accepted(
                    row: first.row, fingerprint: second, attempts: UInt16(first.small),
                    milliseconds: clock &+ first.delta)
            case .settled:
                return .settled(try settledRecord(first, SettledWord(bits: second)))
            case .reserve:
                return .reserve(try reservation(first, second))
            case .release:
                recordOffset += 16
                let count = Int(second & 0xFFFF_FFFF)
                guard count > 0, count <= LedgerFormat.rowsPerChunkMax,
                    first.row + UInt64(count) <= LedgerFormat.rowLimit
                else { throw malformed("row count") }
                let attempts = UInt16(truncatingIfNeeded: second >> 32)
                return .release(row: first.row, count: count, attempts: attempts)
            }
        }
        return nil
    }

    private mutating func settledRecord(
        _ first: FirstWord, _ second: SettledWord
    ) throws(LedgerError) -> SettledRecord {
        let byteCount = second.slotCount * 16
        guard byteCount <= blockByteCount - recordOffset else { throw malformed("its length") }
        guard let state = RowState(rawValue: UInt8(first.small)), state.isSettled else {
            throw malformed("state")
        }
        var offset = recordOffset + 16
        var timestamp: UInt64?
        if second.flags & SettledWord.hasTimestamp != 0 {
            timestamp = word(at: offset)
            offset += 8
        }
        let tokenRange = offset..<(offset + second.tokenCount)
        let isText = second.flags & SettledWord.tokenIsText != 0
        guard second.reasonTextCount <= LedgerFormat.reasonTextByteCountMax,
            second.tokenCount <= LedgerFormat.tokenTextByteCountMax / (isText ? 1 : 2)
        else { throw malformed("its texts") }
        let token: SettledRecord.Token
        if second.flags & SettledWord.tokenIsFingerprint != 0 {
            guard second.tokenCount == 8, state == .accepted, second.attempts > 0 else {
                throw malformed("fingerprint")
            }
            token = .fingerprint(word(at: offset))
        } else if isText {
            token = .text(tokenRange)
        } else {
            token = second.tokenCount == 0 ? .none : .bytes(tokenRange)
        }
        offset += second.tokenCount
        recordOffset += byteCount
        return SettledRecord(
            row: first.row, state: state, status: second.status, reason: second.reason,
            attempts: second.attempts, milliseconds: clock &+ first.delta, timestamp: timestamp,
            token: token, reasonText: offset..<(offset + second.reasonTextCount))
    }

    private mutating func reservation(
        _ first: FirstWord, _ second: UInt64
    ) throws(LedgerError) -> ChunkReservation {
        guard blockByteCount - recordOffset >= 48 else { throw malformed("its length") }
        let start = recordOffset
        recordOffset += 48
        let chunk = ChunkReservation(
            firstRow: first.row, rowCount: Int(second & 0xFFFF_FFFF),
            byteOffset: word(at: start + 16), byteCount: word(at: start + 24),
            firstLine: word(at: start + 32), lineCount: second >> 32, hash: word(at: start + 40),
            reopens: ReopenedStates(rawValue: UInt8(first.small)))
        guard chunk.rowCount > 0, chunk.rowCount <= LedgerFormat.rowsPerChunkMax,
            chunk.rows.upperBound <= LedgerFormat.rowLimit
        else { throw malformed("row count") }
        // Each is below a half of what overflows.
        let limit = LedgerFormat.positionMax / 2
        guard chunk.byteOffset <= limit, chunk.byteCount <= limit, chunk.firstLine <= limit else {
            throw malformed("its place in the list")
        }
        return chunk
    }

    private func malformed(_ detail: String) -> LedgerError {
        fault(.malformedRecord, at: blockOffset + UInt64(recordOffset), detail)
    }
}
