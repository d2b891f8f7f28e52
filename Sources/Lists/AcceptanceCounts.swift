internal import BroadsideLedgerFormat
internal import BroadsidePrimitives
internal import BroadsideSupport
internal import Glibc

/// How often tokens were accepted, counted by fingerprint: all 64 bits of it, within bounded memory.
///
///     accepted rows ──▶ a buffer for each bucket of fingerprints ──▶ the bucket's table
///                                                            └──▶ a file, where tables have no more room
///
/// A bucket has the fingerprints with the same upper 10 bits. Its table is small enough for a processor's
/// cache, and is looked into for many fingerprints at once. If the tables of all buckets would be larger
/// than `memoryLimit`, the bucket whose table has to grow goes to the disk, and is counted at the end.
struct AcceptanceCounts: ~Copyable {
    /// The most bytes of all tables together: enough for 25 million tokens. At the end the table of one bucket
    /// that was on the disk comes on top, a 1024th of the tokens.
    static let memoryLimit = 1 << 28
    /// The most acceptances of a token that are counted.
    static let countLimit = 255

    private static let bucketBits: UInt64 = 10
    private static let bucketCount = 1 << Int(bucketBits)
    /// Fingerprints that wait for a bucket's table: 8 MiB of them, for all buckets.
    private static let bufferCount = 1 << 10
    /// Entries that are read back from the disk at once.
    private static let readCount = 1 << 14

    /// A bucket's table, or where its entries are in the file.
    private final class Bucket {
        var table = CountTable()
        var isOnDisk = false
        /// Where its entries are in the file, in words, and how many.
        var extents: [(start: UInt64, count: Int)] = []
    }

    private let memoryLimit: Int
    private let directory: String
    private var buckets: [Bucket] = (0..<AcceptanceCounts.bucketCount).map { _ in Bucket() }
    private var buffers = WordTable(
        count: AcceptanceCounts.bucketCount * AcceptanceCounts.bufferCount)
    /// How many fingerprints are in each buffer.
    private var fills = WordTable(count: AcceptanceCounts.bucketCount)
    private var descriptor: Int32 = -1
    private var fileCount: UInt64 = 0
    /// Bytes of all tables.
    private var byteCount: Int
    /// Why not all could be counted: the disk took no more.
    private(set) var failure: BroadsideError?

    /// - Parameters:
    ///   - directory: Where the file is made, only if it is needed.
    ///   - memoryLimit: The most bytes of all tables.
    init(directory: String, memoryLimit: Int = AcceptanceCounts.memoryLimit) {
        self.directory = directory
        self.memoryLimit = memoryLimit
        byteCount = Self.firstByteCount
    }

    /// Bytes of all tables in the beginning.
    static var firstByteCount: Int { bucketCount * CountTable.firstByteCount }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    /// Whether the memory was not enough.
    var usesDisk: Bool { descriptor >= 0 }

    /// Counts the rows of a batch that were accepted within a time.
    mutating func add(_ batch: borrowing AcceptedBatch, within time: Range<UInt64>) {
        for index in 0..<batch.count where time.contains(batch.milliseconds(index)) {
            add(batch.fingerprint(index))
        }
    }

    /// Counts one acceptance.
    @inline(__always)
    mutating func add(_ fingerprint: UInt64) {
        let bucket = Int(fingerprint >> (64 - Self.bucketBits))
        let filled = Int(fills[bucket])
        buffers[bucket * Self.bufferCount + filled] = CountTable.entry(fingerprint)
        fills[bucket] = UInt64(filled + 1)
        if filled + 1 == Self.bufferCount { drain(bucket) }
    }

    /// Brings what waits for a bucket where it belongs.
    private mutating func drain(_ number: Int) {
        let bucket = buckets[number]
        let filled = Int(fills[number])
        let start = number * Self.bufferCount
        fills[number] = 0
        guard failure == nil, filled > 0 else { return }
        do throws(BroadsideError) {
            if !bucket.isOnDisk, !makeRoom(for: filled, in: bucket) { try moveToDisk(bucket) }
            if bucket.isOnDisk {
                let entries = (0..<filled).map { buffers[start + $0] }
                try write(entries, of: bucket)
            } else {
                bucket.table.add(buffers, start..<start + filled)
            }
        } catch {
            failure = error
        }
    }

    /// Lets a table grow until so many more have room; false if the memory does not allow it.
    private mutating func makeRoom(for count: Int, in bucket: Bucket) -> Bool {
        while !bucket.table.hasRoom(for: count) {
            let growth = bucket.table.byteCount
            guard byteCount + growth <= memoryLimit else { return false }
            bucket.table.grow()
            byteCount += growth
        }
        return true
    }

    private mutating func moveToDisk(_ bucket: Bucket) throws(BroadsideError) {
        if descriptor < 0 { descriptor = try openNameless(in: directory) }
        var entries: [UInt64] = []
        entries.reserveCapacity(bucket.table.used)
        bucket.table.forEach { entries.append($0) }
        byteCount -= bucket.table.byteCount - CountTable.firstByteCount
        bucket.table = CountTable()
        bucket.isOnDisk = true
        try write(entries, of: bucket)
    }

    private mutating func write(
        _ entries: [UInt64], of bucket: Bucket
    ) throws(BroadsideError) {
        do throws(BroadsideError) {
            // SAFETY: entries are words without padding.
            try writeAll(
                unsafe entries.span.bytes, to: descriptor, name: "a temporary file in \(directory)")
        } catch {
            throw BroadsideError(
                error.message + ": set TMPDIR to a directory with more room", exitCode: 5)
        }
        bucket.extents.append((fileCount, entries.count))
        fileCount += UInt64(entries.count)
    }

    /// Brings everything that waits where it belongs: no more is added.
    mutating func finish() throws(BroadsideError) {
        for bucket in 0..<Self.bucketCount { drain(bucket) }
        if let failure { throw failure }
    }

    /// Hands out the fingerprint of each token that was accepted so many times or more, each once, in any
    /// order.
    func forEach(
        atLeast least: Int, _ visit: (UInt64) throws(BroadsideError) -> Void
    ) throws(BroadsideError) {
        precondition((1...Self.countLimit).contains(least), "a count that is kept")
        for (number, bucket) in buckets.enumerated() {
            assert(fills[number] == 0, "nothing waits any more")
            // The entries have the lower 56 bits.
            let upper = (UInt64(number) >> (Self.bucketBits - 8)) << 56
            if bucket.isOnDisk {
                let table = try readBack(bucket)
                try table.forEach(atLeast: least, upper: upper, visit)
            } else {
                try bucket.table.forEach(atLeast: least, upper: upper, visit)
            }
        }
    }

    private func readBack(_ bucket: Bucket) throws(BroadsideError) -> CountTable {
        var table = CountTable()
        for extent in bucket.extents {
            var done = 0
            while done < extent.count {
                var entries = [UInt64](
                    repeating: 0, count: min(Self.readCount, extent.count - done))
                let offset = (extent.start + UInt64(done)) * 8
                guard
                    SystemCall.read(descriptor, at: offset, &entries) == entries.count * 8
                else {
                    throw BroadsideError(
                        "a temporary file in \(directory) can't be read back", exitCode: 5)
                }
                while !table.hasRoom(for: entries.count) { table.grow() }
                for entry in entries { table.add(entry) }
                done += entries.count
            }
        }
        return table
    }
}

/// Counts by fingerprint within a bucket; open addressing, at most three quarters full.
///
/// An entry is the lower 56 bits of a fingerprint above 8 bits of count, and never 0.
private struct CountTable: ~Copyable {
    private static let firstCount = 1 << 11
    static let firstByteCount = firstCount * 8
    private static let countMask: UInt64 = 0xFF

    private var slots = WordTable(count: CountTable.firstCount)
    private(set) var used = 0
    /// What was read ahead: without it, nothing would be read.
    private var touched: UInt64 = 0

    /// Entries whose slots are read ahead at once.
    private static let aheadCount = 64

    /// The entry of a token that was accepted once.
    @inline(__always)
    static func entry(_ fingerprint: UInt64) -> UInt64 { fingerprint << 8 | 1 }

    var byteCount: Int { slots.count * 8 }

    func hasRoom(for count: Int) -> Bool { (used + count) * 4 <= slots.count * 3 }

    mutating func grow() {
        let old = exchange(&slots, with: WordTable(count: slots.count * 2))
        let before = used
        used = 0
        for index in 0..<old.count where old[index] != 0 { add(old[index]) }
        assert(used == before, "each entry has its place again")
    }

    mutating func add(_ entries: borrowing WordTable, _ range: Range<Int>) {
        assert(hasRoom(for: range.count), "there is room for each")
        for start in stride(from: range.lowerBound, to: range.upperBound, by: Self.aheadCount) {
            let group = start..<min(start + Self.aheadCount, range.upperBound)
            // No read depends on another one here: the processor waits for many at the same time.
            var read: UInt64 = 0
            for index in group {
                read |= slots[Int(truncatingIfNeeded: entries[index] >> 8)]
            }
            touched = read
            for index in group { add(entries[index]) }
        }
    }

    @inline(__always)
    mutating func add(_ entry: UInt64) {
        let key = entry & ~Self.countMask
        var index = Int(truncatingIfNeeded: entry >> 8)
        while true {
            let word = slots[index]
            if word == 0 {
                slots[index] = entry
                used += 1
                return
            }
            if word & ~Self.countMask == key {
                slots[index] =
                    key
                    | min(
                        Self.countMask, (word & Self.countMask) + (entry & Self.countMask))
                return
            }
            index &+= 1
        }
    }

    func forEach(_ visit: (UInt64) -> Void) {
        for index in 0..<slots.count where slots[index] != 0 { visit(slots[index]) }
    }

    func forEach(
        atLeast least: Int, upper: UInt64, _ visit: (UInt64) throws(BroadsideError) -> Void
    ) throws(BroadsideError) {
        for index in 0..<slots.count where slots[index] & Self.countMask >= UInt64(least) {
            try visit(upper | slots[index] >> 8)
        }
    }
}
