import BroadsideLedgerFormat
import BroadsideRows

/// A segment on a disk that keeps all synced bytes. After a power cut, other bytes may be missing.
struct SimulatedSegment {
    let epoch: UInt32
    let reactor: UInt16
    /// Content that a reader of the file sees while the machine is running.
    private(set) var content: [UInt8] = []
    /// Number of bytes at the start that survive a power cut.
    private(set) var syncedCount = 0

    init(epoch: UInt32, reactor: UInt16) {
        self.epoch = epoch
        self.reactor = reactor
    }

    mutating func write(_ bytes: ArraySlice<UInt8>, at offset: Int) {
        precondition(offset <= content.count, "a hole in the segment")
        let overlap = min(bytes.count, content.count - offset)
        content.replaceSubrange(offset..<(offset + overlap), with: bytes)
    }

    mutating func synced(upTo count: Int) {
        syncedCount = max(syncedCount, count)
    }

    /// The power fails, so any sectors that were not synced may be missing.
    mutating func loseUnsynced(random: inout SimulationRandom) {
        let tail = content.count - syncedCount
        guard tail > 0 else { return }
        switch random.below(3) {
        case 0:
            // The file ends at any byte.
            content.removeLast(random.between(0...tail))
        case 1:
            // The file has its full length, but some sectors are missing.
            var start = syncedCount
            while start < content.count {
                let end = min(content.count, (start / 512 + 1) * 512)
                if random.chance(0.4) { for index in start..<end { content[index] = 0 } }
                start = end
            }
        default:
            break
        }
        syncedCount = content.count
    }

    /// Current content, for the ledger's reader.
    var ledgerSegment: LedgerSegment {
        LedgerSegment(epoch: epoch, reactor: reactor, bytes: LedgerMemory(content))
    }
}
