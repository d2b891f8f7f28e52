import BroadsidePrimitives
import BroadsideSupport

/// Hash of a whole decoded list, computed in order from pieces of any size. The computation is part
/// of the ledger's format:
///
///     h = 0
///     for each block b of 65,536 bytes (the last block may be shorter):
///         h = MixingHash(h || MixingHash(b))
///
/// `||` joins two numbers of 8 bytes, both little-endian.
public struct ListHash: Sendable {
    private static let blockByteCount = 65_536

    private var value: UInt64 = 0
    /// Bytes of the incomplete block.
    private var pending: [UInt8] = []
    /// Number of bytes hashed so far: the offset of the next piece.
    public private(set) var byteCount: UInt64 = 0

    /// Creates the hash of no bytes.
    public init() {}

    /// Appends the next bytes.
    public mutating func append(_ bytes: RawSpan) {
        byteCount += UInt64(bytes.byteCount)
        var offset = 0
        while offset < bytes.byteCount {
            let left = bytes.byteCount - offset
            if pending.isEmpty, left >= Self.blockByteCount {
                mix(MixingHash.hash(bytes.extracting(offset..<(offset + Self.blockByteCount))))
                offset += Self.blockByteCount
                continue
            }
            let count = min(left, Self.blockByteCount - pending.count)
            // SAFETY: `extracting` checks the range, and the appended bytes are copied.
            unsafe bytes.extracting(offset..<(offset + count)).withUnsafeBytes { piece in
                unsafe pending.append(contentsOf: piece)
            }
            offset += count
            if pending.count == Self.blockByteCount { endBlock() }
        }
    }

    private mutating func endBlock() {
        assert(!pending.isEmpty && pending.count <= Self.blockByteCount)
        mix(MixingHash.hash(pending.rawSpan))
        pending.removeAll(keepingCapacity: true)
    }

    private mutating func mix(_ block: UInt64) {
        let words = [value.littleEndian, block.littleEndian]
        value = MixingHash.hash(words.rawSpan)
    }

    /// Hash of all bytes so far: 16 hexadecimal digits.
    public func text() -> String {
        var copy = self
        if !copy.pending.isEmpty { copy.endBlock() }
        let digits = String(copy.value, radix: 16)
        return String(repeating: "0", count: 16 - digits.utf8.count) + digits
    }
}
