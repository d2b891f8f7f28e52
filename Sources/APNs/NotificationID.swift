/// The `apns-id` of a row: campaign, part and row number, laid out as a version 8 UUID.
///
/// It is equal on retry and resume, and an id found in Apple's delivery log leads back to the row.
/// RFC 9562 section 5.8 leaves a version 8 UUID's bits to its maker but for version and variant:
///
///     48 bits campaign | 4 bits version 8 | 12 bits campaign |
///     2 bits variant 10 | 4 bits campaign | 10 bits part | 48 bits row
///
/// So the text's last group of twelve digits is the row number and nothing else, and a request
/// template needs only that group patched. A campaign of one list has part 0; the lists of a campaign of
/// several have parts from 1, so that no two rows of a campaign share an id.
public struct NotificationID: Sendable, Hashable {
    /// The campaign: random bits made with the ledger.
    public let campaign: UInt64
    /// Which of the campaign's lists (`--part`), from 1; 0 for a campaign of one list.
    public let part: UInt16
    /// The row's number, from 0; below 2^48.
    public let row: UInt64

    /// The bytes of the text form.
    public static let textCount = 36
    /// Where in the text the row's digits start.
    public static let rowDigitsOffset = 24
    /// The highest part: it has 10 bits.
    public static let partMax: UInt16 = 1023
    /// The first row number that has no id.
    static let rowLimit: UInt64 = 1 << 48

    /// - Parameters:
    ///   - campaign: The campaign's random bits.
    ///   - part: At most `partMax`; 0 for a campaign of one list.
    ///   - row: must be below 2^48.
    public init(campaign: UInt64, part: UInt16 = 0, row: UInt64) {
        precondition(row < NotificationID.rowLimit, "a row number has at most 48 bits")
        precondition(part <= NotificationID.partMax, "a part has at most 10 bits")
        self.campaign = campaign
        self.part = part
        self.row = row
    }

    /// The UUID's upper 64 bits.
    var high: UInt64 { (campaign & ~0xffff) | 0x8000 | (campaign >> 4 & 0xfff) }

    /// The UUID's lower 64 bits.
    var low: UInt64 { 1 << 63 | (campaign & 0xf) << 58 | UInt64(part) << 48 | row }

    /// Appends the 36 lower-case bytes of the text form; `bytes` must have the room.
    public func write(into bytes: inout OutputRawSpan) {
        for (position, word) in [(0, high), (1, low)] {
            for digit in 0..<16 {
                if position == 0 ? digit == 8 || digit == 12 : digit == 0 || digit == 4 {
                    bytes.append(UInt8(ascii: "-"))
                }
                let nibble = UInt8(truncatingIfNeeded: word >> UInt64(60 - 4 * digit)) & 0xf
                bytes.append(nibble + (nibble < 10 ? 48 : 87))
            }
        }
    }

    /// Writes a row's twelve lower-case digits, the only part of the text that differs in a campaign.
    ///
    /// - Parameters:
    ///   - row: below 2^48; higher bits are ignored.
    ///   - bytes: room for twelve bytes; alignment does not matter.
    @inlinable @inline(__always)
    public static func writeRowDigits(_ row: UInt64, into bytes: UnsafeMutableRawPointer) {
        let top = digitText(UInt32(truncatingIfNeeded: row >> 32) << 16)
        let bottom = digitText(UInt32(truncatingIfNeeded: row))
        // SAFETY: the caller vouches for twelve bytes.
        unsafe bytes.storeBytes(of: UInt32(truncatingIfNeeded: top), as: UInt32.self)
        unsafe bytes.storeBytes(of: bottom, toByteOffset: 4, as: UInt64.self)
    }

    /// Eight digits in memory order, the highest nibble in the lowest byte, without a table.
    @inlinable @inline(__always)
    static func digitText(_ value: UInt32) -> UInt64 {
        var nibbles = UInt64(value.byteSwapped)
        nibbles = (nibbles | nibbles << 16) & 0x0000_ffff_0000_ffff
        nibbles = (nibbles | nibbles << 8) & 0x00ff_00ff_00ff_00ff
        // Each 16-bit lane holds one byte: its upper nibble comes first in the text.
        nibbles = (nibbles >> 4 | nibbles << 8) & 0x0f0f_0f0f_0f0f_0f0f
        // A byte above 9 carries into bit 4 when 6 is added; those become letters.
        let letters = (nibbles &+ 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101
        return (nibbles &+ 0x3030_3030_3030_3030 &+ letters &* 39).littleEndian
    }

    /// The id whose text this is, in either case: server-made ids come back in upper case.
    ///
    /// - Returns: nil where it is not a UUID, or none of this layout.
    public init?(parsing text: RawSpan) {
        guard text.byteCount == NotificationID.textCount else { return nil }
        var words: (UInt64, UInt64) = (0, 0)
        for offset in 0..<NotificationID.textCount {
            let byte = TokenText.byte(text, offset)
            if offset == 8 || offset == 13 || offset == 18 || offset == 23 {
                if byte != UInt8(ascii: "-") { return nil }
                continue
            }
            let digit = hexDigits[Int(byte)]
            if digit == 0 { return nil }
            let nibble = UInt64(digit < 58 ? digit - 48 : digit - 87)
            if offset < 18 {
                words.0 = words.0 << 4 | nibble
            } else {
                words.1 = words.1 << 4 | nibble
            }
        }
        guard words.0 >> 12 & 0xf == 8, words.1 >> 62 == 2 else { return nil }
        campaign = (words.0 & ~0xffff) | (words.0 & 0xfff) << 4 | (words.1 >> 58 & 0xf)
        part = UInt16(words.1 >> 48 & 0x3ff)
        row = words.1 & (NotificationID.rowLimit - 1)
    }
}
