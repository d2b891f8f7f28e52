internal import BroadsideLedgerFormat
internal import BroadsidePrimitives
internal import BroadsideSupport
internal import Glibc

/// Counter of acceptances per token, within bounded memory. A token is identified by all 64 bits of
/// its fingerprint.
///
///     accepted rows ──▶ a buffer for each bucket of fingerprints ──▶ the bucket's table
///                                                            └──▶ a file, beyond `memoryLimit`
///
/// A bucket has all fingerprints with the same upper 10 bits. Its table fits a processor's cache
/// while a whole buffer of fingerprints is added. If the tables of all buckets would exceed
/// `memoryLimit`, a bucket whose table has to grow is moved to disk and counted at the end.
struct AcceptanceCounts: ~Copyable {
    /// Maximum total size of all tables, in bytes: enough for 25 million tokens. At the end, one
    /// bucket at a time is read from disk. Its table takes additional memory, for about 1/1024 of
    /// the tokens.
    static let memoryLimit = 1 << 28
    /// Maximum number of acceptances that are counted per token.
    static let countLimit = 255

    private static let bucketBits: UInt64 = 10
    private static let bucketCount = 1 << Int(bucketBits)
    /// Number of fingerprints buffered for a bucket's table. The buffers of all buckets take 8 MiB.
    private static let bufferCount = 1 << 10
    /// Number of entries that are read from disk at a time.
    private static let readCount = 1 << 14

    /// Table of a bucket, or the location of the bucket's entries in the temporary file.
    private final class Bucket {
        var table = CountTable()
        var isOnDisk = false
        /// The parts of the temporary file that have entries of the bucket. Each part has an offset
        /// in words and a number of entries.
        var extents: [(start: UInt64, count: Int)] = []
    }

    private let memoryLimit: Int
    private let directory: String
    private var buckets: [Bucket] = (0..<AcceptanceCounts.bucketCount).map { _ in Bucket() }
    private var buffers = WordTable(
        count: AcceptanceCounts.bucketCount * AcceptanceCounts.bufferCount)
    /// Number of fingerprints in each buffer.
    private var fills = WordTable(count: AcceptanceCounts.bucketCount)
    private var descriptor: Int32 = -1
    private var fileCount: UInt64 = 0
    /// Total size of all tables, in bytes.
    private var byteCount: Int
    /// Error of writing to disk, which makes the counts incomplete; nil if there was none.
    private(set) var failure: BroadsideError?

    /// - Parameters:
    ///   - directory: Directory for the temporary file. The file is created only if it is needed.
    ///   - memoryLimit: Maximum total size of all tables, in bytes.
    init(directory: String, memoryLimit: Int = AcceptanceCounts.memoryLimit) {
        self.directory = directory
        self.memoryLimit = memoryLimit
        byteCount = Self.firstByteCount
    }

    /// Initial total size of all tables, in bytes.
    static var firstByteCount: Int { bucketCount * CountTable.firstByteCount }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    /// Whether some buckets were moved to disk.
    var usesDisk: Bool { descriptor >= 0 }

    /// Counts the rows of a batch that were accepted in the period `time`.
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

    /// Moves a bucket's buffered fingerprints to its table or to the file.
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

    /// Grows a table until `count` more entries fit; false if the memory limit does not allow it.
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
        assert(byteCount >= Self.firstByteCount, "each bucket keeps its first memory")
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
                error.message + ": set TMPDIR to a directory with more space", exitCode: 5)
        }
        assert(bucket.isOnDisk, "a bucket in memory is not in the file")
        bucket.extents.append((fileCount, entries.count))
        fileCount += UInt64(entries.count)
    }

    /// Moves all buffered fingerprints to tables or the file. Called once, after the last `add`.
    mutating func finish() throws(BroadsideError) {
        for bucket in 0..<Self.bucketCount { drain(bucket) }
        if let failure { throw failure }
    }

    /// Calls `visit` with the fingerprint of each token that has at least `least` acceptances. Each
    /// fingerprint is passed once, in any order.
    func forEach(
        atLeast least: Int, _ visit: (UInt64) throws(BroadsideError) -> Void
    ) throws(BroadsideError) {
        precondition((1...Self.countLimit).contains(least), "a count that is kept")
        for (number, bucket) in buckets.enumerated() {
            assert(fills[number] == 0, "nothing waits any more")
            // An entry has only the lower 56 bits of a fingerprint.
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
            assert(extent.start + UInt64(extent.count) <= fileCount, "an extent is in the file")
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

/// Table of counts by fingerprint within a bucket; open addressing, at most three quarters full.
///
/// An entry has the lower 56 bits of a fingerprint above an 8-bit count, and is never 0.
private struct CountTable: ~Copyable {
    private static let firstCount = 1 << 11
    static let firstByteCount = firstCount * 8
    private static let countMask: UInt64 = 0xFF

    private var slots = WordTable(count: CountTable.firstCount)
    private(set) var used = 0
    /// Bits of the slots that `add` reads ahead. They are stored only so that the compiler does not
    /// remove these reads.
    private var touched: UInt64 = 0

    /// Number of entries whose slots are read ahead together.
    private static let aheadCount = 64

    /// Returns a new entry for a token, with a count of 1.
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
            // These reads are independent of each other, so the processor waits for many of them at
            // once.
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
