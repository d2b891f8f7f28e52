/// Number of bytes of a segment that were durable before the run sent the rows reserved in them.
/// The claim of the attempt that wrote the segment stores this number after the claim's text, in an
/// entry of 16 bytes per reactor:
///
///     position u64 | epoch u32 | reactor u16 | 0 u16, little-endian; zeros: none
///
/// If the segment is shorter in a copy of the ledger, that copy is older than the claim.
package struct DurablePosition: Equatable {
    package let epoch: UInt32
    package let reactor: UInt16
    /// Number of durable bytes, from the start of the segment.
    package let position: UInt64

    /// Bytes of an entry.
    package static let byteCount = 16
    /// Offset of the first entry in a claim.
    package static let start = 8192
    /// Maximum number of reactors of a run.
    package static let countMax = 256
    /// Maximum size of a claim in bytes: its text and all positions.
    package static var claimByteCount: Int { start + byteCount * countMax }

    package init(epoch: UInt32, reactor: UInt16, position: UInt64) {
        self.epoch = epoch
        self.reactor = reactor
        self.position = position
    }

    /// Offset of the entry in the claim.
    package var offset: UInt64 { UInt64(Self.start + Self.byteCount * Int(reactor)) }

    /// The two words of the entry, in the byte order of the file.
    package var words: (UInt64, UInt64) {
        (position.littleEndian, (UInt64(epoch) | UInt64(reactor) << 32).littleEndian)
    }

    /// Returns all positions in the bytes of a claim.
    package static func all(in claim: ArraySlice<UInt8>) -> [Self] {
        let table = claim.dropFirst(start).prefix(byteCount * countMax)
        return stride(from: table.startIndex, to: table.endIndex - byteCount + 1, by: byteCount)
            .compactMap { place in
                let position = word(table[place..<place + 8])
                let owner = word(table[(place + 8)..<place + byteCount])
                guard position > 0 else { return nil }
                return Self(
                    epoch: UInt32(truncatingIfNeeded: owner),
                    reactor: UInt16(truncatingIfNeeded: owner >> 32), position: position)
            }
    }

    private static func word(_ bytes: ArraySlice<UInt8>) -> UInt64 {
        bytes.reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }
}
