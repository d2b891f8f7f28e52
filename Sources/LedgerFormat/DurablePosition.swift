/// How much of a segment was durable before rows that it reserves were sent: 16 bytes in the claim of the
/// attempt that wrote it, behind the claim's text, one place for each reactor.
///
///     position u64 | epoch u32 | reactor u16 | 0 u16, little-endian; zeros: none
///
/// A copy of the ledger that has less of the segment is from before.
package struct DurablePosition: Equatable {
    package let epoch: UInt32
    package let reactor: UInt16
    /// Bytes from the segment's start.
    package let position: UInt64

    /// The bytes of one.
    package static let byteCount = 16
    /// Where those of a claim begin.
    package static let start = 8192
    /// A run has no more reactors.
    package static let countMax = 256
    /// The most bytes of a claim, its text and all positions.
    package static var claimByteCount: Int { start + byteCount * countMax }

    package init(epoch: UInt32, reactor: UInt16, position: UInt64) {
        self.epoch = epoch
        self.reactor = reactor
        self.position = position
    }

    /// Where it is in the claim, bytes from the start.
    package var offset: UInt64 { UInt64(Self.start + Self.byteCount * Int(reactor)) }

    /// Its two words, as they are in memory and in the file.
    package var words: (UInt64, UInt64) {
        (position.littleEndian, (UInt64(epoch) | UInt64(reactor) << 32).littleEndian)
    }

    /// All that are in a claim's bytes.
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
