import BroadsideRows
import BroadsideSupport
internal import CBroadsideDeflate

/// Constants of the ledger's format on disk; `docs/ledger-format.md` describes the layouts.
///
/// A segment consists of 64-bit little-endian words: a header of four words, then blocks. A block
/// has a header of one word, then whole records. A record consists of slots of two words.
public enum LedgerFormat {
    /// Version in each segment's header.
    public static let version: UInt16 = 1
    /// "BSLEDGER", read as a little-endian word.
    public static let magic: UInt64 = 0x5245_4744_454C_5342
    /// Bytes of a segment's header.
    public static let segmentHeaderByteCount = 32
    /// Bytes of a block's header.
    public static let blockHeaderByteCount = 8
    /// Bytes of a slot, the unit of records.
    public static let slotByteCount = 16
    /// Maximum number of slots in a block. It keeps a block with its header below 64 KiB.
    static let slotsPerBlockMax = 4095
    /// Bytes of the longest block.
    static let blockByteCountMax = blockHeaderByteCount + slotsPerBlockMax * slotByteCount
    /// Limit on row numbers, exclusive.
    public static let rowLimit: UInt64 = 1 << 40
    /// Maximum number of rows in a chunk.
    static let rowsPerChunkMax = ChunkReservation.rowCountMax
    /// Maximum length in bytes of a token that is stored as text. No valid token is longer.
    static let tokenTextByteCountMax = 200
    /// Maximum length in bytes of a reason that is stored as text.
    static let reasonTextByteCountMax = 64
    /// Maximum length of a topic in bytes.
    static let topicByteCountMax = 255

    /// Maximum size of a list or segment in bytes, and maximum number of lines in a list.
    static let positionMax = UInt64(Int64.max)
    /// The last millisecond of the year 9999, as milliseconds since 1970.
    static let millisecondsMax: UInt64 = 253_402_300_799_999

    /// Upper half of a block header's word, for recognizing a block among other bytes.
    static let blockMarker: UInt64 = 0xB10C
    /// Maximum number of milliseconds from the segment's clock to a record's time.
    @usableFromInline static let deltaMillisecondsMax: UInt64 = 0xFFFF
    /// Maximum number of attempts that a slot's first word can store.
    @usableFromInline static let shortAttemptsMax = 15

    /// Returns the file name of a segment: `segment-EEEE-RR`, both numbers decimal.
    ///
    /// - Parameters:
    ///   - epoch: Number of the run, from 1.
    ///   - reactor: Number of the reactor within the run, from 0.
    public static func segmentName(epoch: UInt32, reactor: UInt16) -> String {
        func padded(_ number: some BinaryInteger, _ digits: Int) -> String {
            let text = String(number)
            return String(repeating: "0", count: max(0, digits - text.utf8.count)) + text
        }
        return "segment-\(padded(epoch, 4))-\(padded(reactor, 2))"
    }

    /// Parses the file name of a segment; nil for any other name.
    public static func parseSegmentName(_ name: String) -> (epoch: UInt32, reactor: UInt16)? {
        let parts = name.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 3, let epoch = UInt32(parts[1]), let reactor = UInt16(parts[2]),
            segmentName(epoch: epoch, reactor: reactor) == name
        else { return nil }
        return (epoch, reactor)
    }
}

/// Kind of a record; the upper four bits of its first word.
@usableFromInline
enum RecordKind: UInt64 {
    /// Row accepted with 200. No kind has the value 0, so that zeros are never a record.
    case accepted = 1
    case settled = 2
    case reserve = 3
    case release = 4
    /// Statement that all bytes of this segment before a recorded offset were synced.
    case synced = 5
    /// Reference time of the records that follow.
    case clock = 6
    /// Release of some rows of a reservation. A mask selects the rows, which stay unsent.
    case releaseSome = 7
    /// Topic of the verdicts that follow in the block.
    case topic = 8
}

/// First word of a record: row (40 bits), milliseconds since the latest clock record (16 bits), a
/// small number (4 bits), kind (4 bits).
@usableFromInline
struct FirstWord {
    @usableFromInline let bits: UInt64

    @inlinable
    init(bits: UInt64) { self.bits = bits }

    @inlinable
    init(kind: RecordKind, small: UInt64, delta: UInt64, row: UInt64) {
        bits = kind.rawValue &<< 60 | small &<< 56 | delta &<< 40 | row
    }

    var kind: RecordKind? { RecordKind(rawValue: bits >> 60) }
    /// Whether this word starts a well-formed record of an accepted row, which has at least one
    /// attempt.
    var isAccepted: Bool { bits >> 60 == RecordKind.accepted.rawValue && small > 0 }
    var small: UInt64 { bits >> 56 & 0xF }
    var delta: UInt64 { bits >> 40 & 0xFFFF }
    var row: UInt64 { bits & (LedgerFormat.rowLimit - 1) }
}

/// Second word of a topic record: the topic's number in its block (16 bits), and the length of the
/// topic's text in bytes (8 bits). Topics are numbered from 1 in the order of their first use; 0 is
/// no topic. Only the first use in a block has the text.
struct TopicWord {
    var bits: UInt64

    init(bits: UInt64) { self.bits = bits }

    init(number: UInt16, textCount: Int) { bits = UInt64(number) | UInt64(textCount) << 16 }

    var number: UInt16 { UInt16(truncatingIfNeeded: bits) }
    var textCount: Int { Int(bits >> 16 & 0xFF) }

    /// The slots of the whole record.
    var slotCount: Int { 1 + (textCount + 15) / 16 }

    /// Number of slots of the longest topic record.
    static let slotCountMax = 1 + (LedgerFormat.topicByteCountMax + 15) / 16
}

/// Second word of a settled record: status (16 bits), reason (8 bits), flags (8 bits), attempts (16
/// bits), length of the token in bytes (8 bits), and length of the reason's text in bytes (8 bits).
struct SettledWord {
    var bits: UInt64

    static let hasTimestamp: UInt64 = 1
    static let tokenIsText: UInt64 = 2
    static let tokenIsFingerprint: UInt64 = 4
    static let tokenIsErased: UInt64 = 8
    /// Position of the arm's number in the flags: the upper four bits.
    static let armShift: UInt64 = 4

    init(bits: UInt64) { self.bits = bits }

    init(
        status: UInt16, reason: UInt8, flags: UInt64, attempts: UInt16, tokenCount: Int,
        reasonTextCount: Int
    ) {
        bits =
            UInt64(status) | UInt64(reason) << 16 | flags << 24 | UInt64(attempts) << 32
            | UInt64(tokenCount) << 48 | UInt64(reasonTextCount) << 56
    }

    var status: UInt16 { UInt16(truncatingIfNeeded: bits) }
    var reason: UInt8 { UInt8(truncatingIfNeeded: bits >> 16) }
    var flags: UInt64 { bits >> 24 & 0xFF }
    var attempts: UInt16 { UInt16(truncatingIfNeeded: bits >> 32) }
    var arm: UInt8 { UInt8(flags >> SettledWord.armShift) }
    var tokenCount: Int { Int(bits >> 48 & 0xFF) }
    var reasonTextCount: Int { Int(bits >> 56) }

    /// Bytes after the second word, without padding.
    var trailingByteCount: Int {
        (flags & SettledWord.hasTimestamp != 0 ? 8 : 0) + tokenCount + reasonTextCount
    }

    /// The slots of the whole record.
    var slotCount: Int { 1 + (trailingByteCount + 15) / 16 }
}

extension LedgerFormat {
    /// Number of slots of a record that releases some rows of a reservation: one slot, and the
    /// slots for a mask with one bit per row of the reservation.
    static func partialReleaseSlots(rows count: Int) -> Int { 1 + (count + 127) / 128 }

    /// Returns the four words of a segment's header, the last with the CRC in its upper half.
    static func segmentHeader(
        version: UInt16 = LedgerFormat.version, campaign: UInt64, epoch: UInt32, reactor: UInt16
    ) -> (UInt64, UInt64, UInt64, UInt64) {
        let second = UInt64(version) | UInt64(reactor) << 16 | UInt64(epoch) << 32
        // Four zero bytes precede the checksum and are covered by it.
        let words: InlineArray<4, UInt64> = [
            magic.littleEndian, second.littleEndian, campaign.littleEndian, 0,
        ]
        // SAFETY: four words are 32 bytes without padding, of which 28 are read.
        let crc = unsafe words.span.bytes.withUnsafeBytes { bytes in
            unsafe libdeflate_crc32(0, bytes.baseAddress!, 28)
        }
        return (magic, second, campaign, UInt64(crc) << 32)
    }

    /// Returns the checksum of a block, over its offset, its header without the checksum, and its
    /// records.
    ///
    /// It starts from the segment header's CRC and includes the block's offset. A block is
    /// therefore valid only where it was written: no block after a lost, duplicated or swapped one
    /// is valid.
    ///
    /// - Parameters:
    ///   - seed: CRC of the segment's header.
    ///   - offset: Offset of the block in the segment.
    ///   - block: The block with its header; the first four bytes, its checksum, are skipped.
    @unsafe
    static func checksum(seed: UInt32, offset: UInt64, block: UnsafeRawBufferPointer) -> UInt32 {
        // SAFETY: an offset has eight bytes; the caller guarantees that the block begins with a
        // header of eight.
        let position = unsafe withUnsafeBytes(of: offset.littleEndian) { bytes in
            unsafe libdeflate_crc32(seed, bytes.baseAddress!, 8)
        }
        return unsafe libdeflate_crc32(position, block.baseAddress! + 4, block.count - 4)
    }
}
