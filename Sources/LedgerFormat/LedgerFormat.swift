import BroadsideRows
import BroadsideSupport
internal import CBroadsideDeflate

/// The numbers of the ledger's format on disk; `docs/ledger-format.md` has the layouts.
///
/// All of a segment is made of 64-bit little-endian words: four words of header, then blocks of one
/// word of header and whole records, whose slots are two words each.
public enum LedgerFormat {
    /// The version in each segment's header.
    public static let version: UInt16 = 1
    /// "BSLEDGER", read as a little-endian word.
    public static let magic: UInt64 = 0x5245_4744_454C_5342
    /// Bytes of a segment's header.
    public static let segmentHeaderByteCount = 32
    /// Bytes of a block's header.
    public static let blockHeaderByteCount = 8
    /// Bytes of a slot, the unit of which records are made.
    public static let slotByteCount = 16
    /// Most slots in a block: it stays below 64 KiB with its header.
    static let slotsPerBlockMax = 4095
    /// Bytes of the longest block.
    static let blockByteCountMax = blockHeaderByteCount + slotsPerBlockMax * slotByteCount
    /// Rows are numbered below this.
    public static let rowLimit: UInt64 = 1 << 40
    /// Most rows in one chunk.
    static let rowsPerChunkMax = ChunkReservation.rowCountMax
    /// Most bytes of a token kept as text: the longest a token may be.
    static let tokenTextByteCountMax = 200
    /// Most bytes of a reason kept as text.
    static let reasonTextByteCountMax = 64

    /// No list and no segment has more bytes, and no list more lines.
    static let positionMax = UInt64(Int64.max)
    /// The last millisecond of the year 9999, since 1970.
    static let millisecondsMax: UInt64 = 253_402_300_799_999

    /// Upper half of a block header's word: tells a block from other bytes when looking for one.
    static let blockMarker: UInt64 = 0xB10C
    /// Most milliseconds a slot's time may lie after the clock.
    @usableFromInline static let deltaMillisecondsMax: UInt64 = 0xFFFF
    /// Most attempts that fit into a slot's first word.
    @usableFromInline static let shortAttemptsMax = 15

    /// The file name of a segment: `segment-EEEE-RR`, both numbers decimal.
    ///
    /// - Parameters:
    ///   - epoch: the run, from 1.
    ///   - reactor: the reactor within the run, from 0.
    public static func segmentName(epoch: UInt32, reactor: UInt16) -> String {
        func padded(_ number: some BinaryInteger, _ digits: Int) -> String {
            let text = String(number)
            return String(repeating: "0", count: max(0, digits - text.utf8.count)) + text
        }
        return "segment-\(padded(epoch, 4))-\(padded(reactor, 2))"
    }

    /// Takes a segment's file name apart; nil if it is not one.
    public static func parseSegmentName(_ name: String) -> (epoch: UInt32, reactor: UInt16)? {
        let parts = name.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 3, let epoch = UInt32(parts[1]), let reactor = UInt16(parts[2]),
            segmentName(epoch: epoch, reactor: reactor) == name
        else { return nil }
        return (epoch, reactor)
    }
}

/// What a record is; the upper four bits of its first word.
@usableFromInline
enum RecordKind: UInt64 {
    /// 0 is not a kind, so that zeros are never a record.
    case accepted = 1
    case settled = 2
    case reserve = 3
    case release = 4
    /// All before the given offset of this segment had been synced.
    case synced = 5
    /// The time from which the records after this one count.
    case clock = 6
}

/// A record's first word: row (40 bits), milliseconds after the clock (16), a small number (4),
/// kind (4).
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
    /// Whether it begins a well-formed record of an accepted row: one with attempts.
    var isAccepted: Bool { bits >> 60 == RecordKind.accepted.rawValue && small > 0 }
    var small: UInt64 { bits >> 56 & 0xF }
    var delta: UInt64 { bits >> 40 & 0xFFFF }
    var row: UInt64 { bits & (LedgerFormat.rowLimit - 1) }
}

/// Second word of a settled record: status (16 bits), reason (8), flags (8), attempts (16), bytes
/// of the token (8) and of the reason's text (8).
struct SettledWord {
    var bits: UInt64

    static let hasTimestamp: UInt64 = 1
    static let tokenIsText: UInt64 = 2
    static let tokenIsFingerprint: UInt64 = 4

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
    var tokenCount: Int { Int(bits >> 48 & 0xFF) }
    var reasonTextCount: Int { Int(bits >> 56) }

    /// Bytes after the second word, without the padding to whole slots.
    var trailingByteCount: Int {
        (flags & SettledWord.hasTimestamp != 0 ? 8 : 0) + tokenCount + reasonTextCount
    }

    /// Slots of the whole record.
    var slotCount: Int { 1 + (trailingByteCount + 15) / 16 }
}

extension LedgerFormat {
    /// The four words of a segment's header, the last with the CRC in its upper half.
    static func segmentHeader(
        version: UInt16 = LedgerFormat.version, campaign: UInt64, epoch: UInt32, reactor: UInt16
    ) -> (UInt64, UInt64, UInt64, UInt64) {
        let second = UInt64(version) | UInt64(reactor) << 16 | UInt64(epoch) << 32
        // Four zero bytes stand before the checksum and are part of what it covers.
        let words: InlineArray<4, UInt64> = [
            magic.littleEndian, second.littleEndian, campaign.littleEndian, 0,
        ]
        // SAFETY: four words are 32 bytes without padding, of which 28 are read.
        let crc = unsafe words.span.bytes.withUnsafeBytes { bytes in
            unsafe libdeflate_crc32(0, bytes.baseAddress!, 28)
        }
        return (magic, second, campaign, UInt64(crc) << 32)
    }

    /// The checksum of a block: of its place, its header without the checksum, and its records.
    ///
    /// It starts from the segment header's CRC and takes in the block's offset in the file, so that
    /// a block is good only where it was written: a block lost, doubled or swapped leaves none good
    /// after it.
    ///
    /// - Parameters:
    ///   - seed: the CRC of the segment's header.
    ///   - offset: the block's offset in the segment.
    ///   - block: the block, header and all; its first four bytes are left out.
    @unsafe
    static func checksum(seed: UInt32, offset: UInt64, block: UnsafeRawBufferPointer) -> UInt32 {
        // SAFETY: an offset has eight bytes; the caller vouches for the block, which begins with a
        // header of eight.
        let position = unsafe withUnsafeBytes(of: offset.littleEndian) { bytes in
            unsafe libdeflate_crc32(seed, bytes.baseAddress!, 8)
        }
        return unsafe libdeflate_crc32(position, block.baseAddress! + 4, block.count - 4)
    }
}
