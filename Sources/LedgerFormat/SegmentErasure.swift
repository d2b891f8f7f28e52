internal import BroadsideAPNs
internal import BroadsidePrimitives
internal import BroadsideRows
internal import BroadsideSupport

/// Erasure of devices from one segment. `init` reads the segment. Later, `write` writes the segment
/// again. The length of the segment and the offset of each record stay the same.
///
///     init (reads) ──▶ isAffected, hasOneRowChunk ──▶ write ──▶ a segment without the devices
///
/// So other files stay correct, such as the manifest, which records the segment's length.
public struct SegmentErasure {
    /// Rows of the devices in this segment, by state.
    public private(set) var rows = RowCounts()
    /// Whether a token was found in other text, such as a reason.
    private var hasText = false
    /// Whether chunks of the list changed.
    private var hasChangedChunk = false
    /// Whether bytes after the last sound block, which a kill left there, may contain a token.
    private var hasTail = false
    /// Whether the segment has a chunk of one row. The hash of such a chunk is the hash of a row.
    public private(set) var hasOneRowChunk = false

    private let sound: ValidatedSegment
    private let changedPages: PageSet

    /// Maximum number of bytes to search after the last good block. If there are more bytes, the
    /// segment counts as affected.
    private static let searchedTailMax: UInt64 = 1 << 22

    /// Whether the segment has to be written again, whatever the other segments contain.
    public var isAffected: Bool { hasVerdicts || hasChangedChunk }

    /// Whether the segment contains data of a device, apart from hashes of chunks.
    public var hasVerdicts: Bool { rows.settled > 0 || hasText || hasTail }

    /// File name of the segment.
    public var name: String { sound.segment.name }
    /// Number of the run that wrote the segment.
    public var epoch: UInt32 { sound.segment.epoch }
    /// Number of the reactor that wrote the segment.
    public var reactor: UInt16 { sound.segment.reactor }

    /// Reads a segment and checks it.
    ///
    /// - Parameters:
    ///   - segment: The segment.
    ///   - manifest: The ledger's manifest.
    ///   - devices: The devices. The set counts those that are found.
    ///   - changedPages: Parts of the list that will change with this erasure.
    /// - Throws: The segment's first fault. A damaged ledger must be repaired before it is changed.
    public init(
        of segment: LedgerSegment, manifest: Manifest, devices: inout DeviceSet,
        changedPages: PageSet
    ) throws(LedgerError) {
        let recorded = manifest.recordedLengths[segment.epoch].map { lengths in
            lengths.first { $0.reactor == segment.reactor }?.byteCount ?? 0
        }
        let isHeaded = manifest.epochs.contains {
            $0.number == segment.epoch && $0.mustHaveSegments
        }
        var reader = BlockReader()
        var eraser = RecordEraser(key: nil, changedPages: changedPages, clearsOneRowChunks: false)
        var found = Findings()
        sound = try ValidatedSegment(
            checking: segment, campaign: manifest.segmentNumber, recordedByteCount: recorded,
            hasHeader: isHeaded, with: &reader
        ) { (reader, record) throws(LedgerError) in
            var block: [UInt8] = []
            found.take(eraser.erase(record, of: reader, in: &block, &devices))
        }
        self.changedPages = changedPages
        rows = found.rows
        hasText = found.hasText
        hasChangedChunk = found.hasChangedChunk
        hasOneRowChunk = found.hasOneRowChunk
        hasTail = try Self.tailMayHold(&devices, sound)
        for number in 0..<reader.topics.count {
            var topic = reader.topics[UInt16(number + 1)]
            if devices.maskTokens(in: &topic) { hasText = true }
        }
    }

    private struct Findings {
        var rows = RowCounts()
        var hasText = false
        var hasChangedChunk = false
        var hasOneRowChunk = false

        mutating func take(_ finding: RecordEraser.Finding) {
            switch finding {
            case .nothing: break
            case .verdict(let state): rows[state] += 1
            case .text: hasText = true
            case .changedChunk: hasChangedChunk = true
            case .oneRowChunk: hasOneRowChunk = true
            }
        }
    }

    // MARK: The end that a kill left

    /// Whether the bytes after the last sound block contain a token or a fingerprint. Among these
    /// bytes, records and the data in records begin at multiples of eight bytes.
    private static func tailMayHold(
        _ devices: inout DeviceSet, _ sound: ValidatedSegment
    ) throws(LedgerError) -> Bool {
        let byteCount = sound.segment.bytes.byteCount
        guard byteCount > sound.soundByteCount else { return false }
        guard byteCount - sound.soundByteCount <= searchedTailMax else { return true }
        let tail = try sound.segment.bytes.read(sound.soundByteCount..<byteCount)
        guard tail.contains(where: { $0 != 0 }) else { return false }
        for offset in stride(from: 0, to: tail.count, by: 8) {
            if offset + 8 <= tail.count, devices.find(word(tail, at: offset)) { return true }
            for byteCount in devices.byteCounts where offset + byteCount <= tail.count {
                if devices.find(bytes: tail[offset..<(offset + byteCount)]) { return true }
            }
        }
        var text = tail
        return devices.maskTokens(in: &text)
    }

    private static func word(_ bytes: [UInt8], at offset: Int) -> UInt64 {
        (0..<8).reduce(0) { $0 | UInt64(bytes[offset + $1]) << (8 * UInt64($1)) }
    }

    // MARK: Writing

    /// Writes the segment without the devices. Zeros replace all bytes after the last sound block,
    /// because no reader uses those bytes.
    ///
    /// - Parameters:
    ///   - key: Key of the hashes, 128 random bits, the same for all segments of the ledger.
    ///   - devices: The devices.
    ///   - output: Receives successive pieces of the segment.
    public func write(
        key: (UInt64, UInt64), devices: inout DeviceSet,
        output: (RawSpan) throws(LedgerError) -> Void
    ) throws(LedgerError) {
        let byteCount = sound.segment.bytes.byteCount
        var written = min(UInt64(LedgerFormat.segmentHeaderByteCount), sound.soundByteCount)
        let header = try sound.segment.bytes.read(0..<written)
        if !header.isEmpty { try output(header.rawSpan) }
        var reader = BlockReader()
        var eraser = RecordEraser(
            key: KeyedHash(key: key), changedPages: changedPages, clearsOneRowChunks: true)
        reader.open(sound.segment, seed: sound.seed, range: sound.blocks, clock: 0)
        while let block = try Self.nextBlock(&reader, sound.seed, &eraser, &devices) {
            try output(block.rawSpan)
            written += UInt64(block.count)
        }
        precondition(written == sound.soundByteCount, "each block keeps its length")
        try Self.writeZeros(byteCount - written, output)
    }

    /// Returns the next block without the devices; nil at the end.
    private static func nextBlock(
        _ reader: inout BlockReader, _ seed: UInt32, _ eraser: inout RecordEraser,
        _ devices: inout DeviceSet
    ) throws(LedgerError) -> [UInt8]? {
        switch try reader.nextBlock() {
        case .end: return nil
        case .bad: throw reader.changedFault
        case .block: break
        }
        var block: [UInt8] = []
        reader.copy(0..<reader.blockByteCount, to: &block)
        while let record = try reader.nextRecord() {
            _ = eraser.erase(record, of: reader, in: &block, &devices)
        }
        for topic in reader.blockTopics {
            eraser.maskTopic(topic.text, of: reader, in: &block, &devices)
        }
        seal(&block, seed: seed, offset: reader.blockOffset)
        return block
    }

    private static func writeZeros(
        _ byteCount: UInt64, _ output: (RawSpan) throws(LedgerError) -> Void
    ) throws(LedgerError) {
        let zeros = [UInt8](repeating: 0, count: Int(min(byteCount, 1 << 16)))
        var left = byteCount
        while left > 0 {
            let count = Int(min(left, UInt64(zeros.count)))
            try output(zeros.rawSpan.extracting(0..<count))
            left -= UInt64(count)
        }
    }

    /// Sets the checksum of a block.
    private static func seal(_ block: inout [UInt8], seed: UInt32, offset: UInt64) {
        // SAFETY: the block has its header, and the pointer ends with the call.
        let checksum = unsafe block.withUnsafeBytes { bytes in
            unsafe LedgerFormat.checksum(seed: seed, offset: offset, block: bytes)
        }
        for index in 0..<4 {
            block[index] = UInt8(truncatingIfNeeded: checksum >> (8 * UInt32(index)))
        }
    }
}

/// Erasure of devices from single records.
private struct RecordEraser {
    /// Data of the devices in a record.
    enum Finding {
        case nothing
        /// The token or the fingerprint of a device, in a row of this state.
        case verdict(RowState)
        /// A token within other text, such as a reason.
        case text
        /// A chunk of the list that changes.
        case changedChunk
        /// A chunk of one row.
        case oneRowChunk
    }

    /// Key of the hashes; nil to look for records without changing them.
    let key: KeyedHash?
    let changedPages: PageSet
    let clearsOneRowChunks: Bool
    private var text: [UInt8] = []

    init(key: KeyedHash?, changedPages: PageSet, clearsOneRowChunks: Bool) {
        self.key = key
        self.changedPages = changedPages
        self.clearsOneRowChunks = clearsOneRowChunks
    }

    /// Erases the devices from a reader's latest record.
    ///
    /// - Parameter block: Copy of the reader's block. The devices are erased in this copy if `key`
    ///   is not nil; otherwise, they are only searched for.
    mutating func erase(
        _ record: LedgerRecord, of reader: borrowing BlockReader, in block: inout [UInt8],
        _ devices: inout DeviceSet
    ) -> Finding {
        let start = reader.currentRecordOffset
        switch record {
        case .release, .releaseSome: return .nothing
        case .reserve(let chunk): return erase(chunk, at: start, in: &block)
        case .accepted(_, let fingerprint, _, _):
            guard devices.find(fingerprint) else { return .nothing }
            replace(fingerprint, at: start + 8, in: &block)
            return .verdict(.accepted)
        case .settled(let record):
            // The reason's text comes from the server. A token in it does not count as a verdict.
            let hasText = mask(record.reasonText, of: reader, in: &block, &devices)
            switch record.token {
            case .none, .erased: break
            case .text(let range):
                if mask(range, of: reader, in: &block, &devices) { return .text }
            case .fingerprint(let fingerprint):
                guard devices.find(fingerprint) else { break }
                replace(
                    fingerprint, at: start + 16 + (record.timestamp == nil ? 0 : 8), in: &block)
                return .verdict(record.state)
            case .bytes(let range):
                text.removeAll(keepingCapacity: true)
                reader.copy(range, to: &text)
                guard devices.find(bytes: text[...]) else { break }
                replace(range, at: start, in: &block)
                return .verdict(record.state)
            }
            return hasText ? .text : .nothing
        }
    }

    private func erase(
        _ chunk: ChunkReservation, at start: Int, in block: inout [UInt8]
    ) -> Finding {
        guard chunk.hash != ChunkReservation.unknownHash else { return .nothing }
        let end = chunk.byteOffset + chunk.byteCount
        let isChanged = changedPages.intersects(chunk.byteOffset..<end)
        let hasOneRow = chunk.rowCount == 1
        guard isChanged || hasOneRow else { return .nothing }
        if key != nil, isChanged || clearsOneRowChunks {
            Self.store(ChunkReservation.unknownHash, at: start + 40, in: &block)
        }
        return isChanged ? .changedChunk : .oneRowChunk
    }

    private func replace(_ fingerprint: UInt64, at offset: Int, in block: inout [UInt8]) {
        guard let key else { return }
        Self.store(key.hash(fingerprint), at: offset, in: &block)
    }

    /// Replaces a token, whose bytes are in `text`, with a keyed hash.
    private func replace(_ range: Range<Int>, at start: Int, in block: inout [UInt8]) {
        guard let key else { return }
        var digits: [UInt8] = []
        HexDigits.append(text[...], to: &digits)
        let hash = key.hash(TokenText.fingerprint(digits.rawSpan))
        for (index, offset) in range.enumerated() {
            block[offset] =
                index < ErasedToken.hashByteCount
                ? UInt8(truncatingIfNeeded: hash >> (8 * UInt64(index))) : 0
        }
        // The flags are bits 24 to 31 of the second word.
        block[start + 11] |= UInt8(SettledWord.tokenIsErased)
    }

    private static func store(_ word: UInt64, at offset: Int, in block: inout [UInt8]) {
        for index in 0..<8 {
            block[offset + index] = UInt8(truncatingIfNeeded: word >> (8 * UInt64(index)))
        }
    }

    /// Replaces tokens in the text of a topic.
    mutating func maskTopic(
        _ range: Range<Int>, of reader: borrowing BlockReader, in block: inout [UInt8],
        _ devices: inout DeviceSet
    ) {
        _ = mask(range, of: reader, in: &block, &devices)
    }

    /// Replaces tokens in a text of the record.
    private mutating func mask(
        _ range: Range<Int>, of reader: borrowing BlockReader, in block: inout [UInt8],
        _ devices: inout DeviceSet
    ) -> Bool {
        guard range.count >= DeviceSet.textByteCountMin else { return false }
        text.removeAll(keepingCapacity: true)
        reader.copy(range, to: &text)
        guard devices.maskTokens(in: &text) else { return false }
        if key != nil { block.replaceSubrange(range, with: text) }
        return true
    }
}

extension LedgerBytes {
    /// Reads all bytes of a range, which must be small.
    fileprivate func read(_ range: Range<UInt64>) throws(LedgerError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: range.count)
        var done = 0
        while done < bytes.count {
            // SAFETY: the array is alive during the call, and `read` sets no more than the rest of it.
            let result = unsafe bytes.withUnsafeMutableBytes { room in
                Result { () throws(LedgerError) in
                    unsafe try read(
                        at: range.lowerBound + UInt64(done),
                        into: UnsafeMutableRawBufferPointer(rebasing: room[done...]))
                }
            }
            let count = try result.get()
            guard count > 0 else {
                throw LedgerError(
                    .inputOutput, detail: "a segment became shorter while it was read")
            }
            done += count
        }
        return bytes
    }
}
