public import BroadsideRows
import BroadsideSupport

/// Decoded record of a segment. Clock, sync and topic records stay internal to the reader.
public enum LedgerRecord {
    case accepted(row: UInt64, fingerprint: UInt64, attempts: UInt16, milliseconds: UInt64)
    case settled(SettledRecord)
    case reserve(ChunkReservation)
    case release(row: UInt64, count: Int, attempts: UInt16)
    /// The release of some rows of a reservation. The rows whose bits are set in the mask are
    /// released. `mask` is a range of bytes, relative to the start of the block.
    case releaseSome(row: UInt64, count: Int, mask: Range<Int>)
}

/// Row settled by a plain 200, like nearly all rows.
public struct AcceptedRecord {
    var row: UInt64
    var fingerprint: UInt64
    var attempts: UInt16
    var milliseconds: UInt64
}

/// Row settled by anything but a plain 200.
public struct SettledRecord {
    /// Recorded token of the row.
    public enum Token {
        /// No token.
        case none
        /// Bytes of a token.
        case bytes(Range<Int>)
        /// A text that is not a token.
        case text(Range<Int>)
        /// Fingerprint of an accepted row's token.
        case fingerprint(UInt64)
        /// The hash that replaces the token of an erased device.
        case erased(Range<Int>)
    }

    var row: UInt64
    /// State of the row.
    public var state: RowState
    var status: UInt16
    /// Code of the response's reason; 0 if there is none.
    public var reason: UInt8
    var attempts: UInt16
    /// Time of the verdict: milliseconds since 1970.
    public var milliseconds: UInt64
    /// Timestamp from APNs, in milliseconds since 1970.
    public var timestamp: UInt64?
    /// The token; ranges are relative to the start of the block.
    public var token: Token
    /// Range of the text of a reason without a code, or of the apns-unique-id of an accepted row;
    /// empty if there is neither.
    var reasonText: Range<Int>
    /// Number of the row's arm, from 1; 0 if there is none.
    public var arm: UInt8
}

extension BlockReader {
    /// Returns the block's next record if it is a well-formed record of an accepted row; otherwise
    /// returns nil and does not advance.
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

    /// Skips the next well-formed records of accepted rows in the block.
    mutating func skipAccepted() {
        while recordOffset < blockByteCount, FirstWord(bits: word(at: recordOffset)).isAccepted {
            recordOffset += 16
        }
    }

    /// Returns the block's next record; nil at its end.
    ///
    /// - Throws: `malformedRecord` if the record is invalid. The block's checksum is right, so the
    ///   writer wrote this invalid record.
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
            case .releaseSome:
                return try partialRelease(first, second)
            case .topic:
                try takeTopic(TopicWord(bits: second))
            }
        }
        return nil
    }

    /// Sets the topic of the records that follow in the block, from a topic record.
    private mutating func takeTopic(_ word: TopicWord) throws(LedgerError) {
        let byteCount = word.slotCount * 16
        guard byteCount <= blockByteCount - recordOffset else { throw malformed("its length") }
        if word.textCount > 0 {
            guard Int(word.number) == blockTopics.count + 1 else { throw malformed("its number") }
            let range = (recordOffset + 16)..<(recordOffset + 16 + word.textCount)
            var text: [UInt8] = []
            copy(range, to: &text)
            guard let number = topics.number(of: text) else {
                throw malformed("more than \(TopicNames.limit) topics")
            }
            blockTopics.append((number, range))
        }
        guard word.number <= blockTopics.count else { throw malformed("a topic without a name") }
        topic = word.number == 0 ? 0 : blockTopics[Int(word.number) - 1].number
        recordOffset += byteCount
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
        let isErased = second.flags & SettledWord.tokenIsErased != 0
        guard second.reasonTextCount <= LedgerFormat.reasonTextByteCountMax,
            second.tokenCount <= LedgerFormat.tokenTextByteCountMax / (isText ? 1 : 2)
        else { throw malformed("its texts") }
        let token: SettledRecord.Token
        if second.flags & SettledWord.tokenIsFingerprint != 0 {
            guard second.tokenCount == 8, state == .accepted, second.attempts > 0 else {
                throw malformed("fingerprint")
            }
            token = .fingerprint(word(at: offset))
        } else if isErased {
            token = .erased(tokenRange)
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
            token: token, reasonText: offset..<(offset + second.reasonTextCount), arm: second.arm)
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
        // Each value is at most half of the maximum, so that sums do not overflow.
        let limit = LedgerFormat.positionMax / 2
        guard chunk.byteOffset <= limit, chunk.byteCount <= limit, chunk.firstLine <= limit else {
            throw malformed("its place in the list")
        }
        return chunk
    }

    private mutating func partialRelease(
        _ first: FirstWord, _ second: UInt64
    ) throws(LedgerError) -> LedgerRecord {
        let count = Int(second & 0xFFFF_FFFF)
        guard count > 0, count <= LedgerFormat.rowsPerChunkMax,
            first.row + UInt64(count) <= LedgerFormat.rowLimit
        else { throw malformed("row count") }
        let byteCount = 16 * LedgerFormat.partialReleaseSlots(rows: count)
        guard byteCount <= blockByteCount - recordOffset else { throw malformed("its length") }
        let mask = (recordOffset + 16)..<(recordOffset + byteCount)
        recordOffset += byteCount
        return .releaseSome(row: first.row, count: count, mask: mask)
    }

    /// Whether the mask of a record releases the row with this index in the chunk.
    func isReleased(_ index: Int, by mask: Range<Int>) -> Bool {
        assert(index >= 0 && index / 8 < mask.count, "the mask has a bit for each row")
        return word(at: mask.lowerBound + index / 64 * 8) >> UInt64(index % 64) & 1 == 1
    }

    private func malformed(_ detail: String) -> LedgerError {
        fault(.malformedRecord, at: blockOffset + UInt64(recordOffset), detail)
    }
}
