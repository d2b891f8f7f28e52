import BroadsideLedgerFormat
import BroadsideSupport
import BroadsideTestSupport
import Testing

@testable import BroadsideLists

@Suite struct AcceptanceCountsTests {
    /// Fingerprints of sixteen buckets that occur once to `most` times, in any order, among them the smallest and
    /// the largest one.
    private func fingerprints(_ count: Int, most: Int, seed: UInt64) -> [UInt64] {
        var random = SeededRandom(seed: seed)
        var all: [UInt64] = []
        for number in 0..<count {
            let mixed = UInt64.random(in: 0 ... .max, using: &random)
            let fingerprint = number == 0 ? 0 : number == 1 ? UInt64.max >> 6 : mixed >> 6
            all += Array(repeating: fingerprint, count: Int.random(in: 1...most, using: &random))
        }
        return all.shuffled(using: &random)
    }

    private func found(_ counts: borrowing AcceptanceCounts, atLeast least: Int) throws -> [UInt64]
    {
        var found: [UInt64] = []
        try counts.forEach(atLeast: least) { found.append($0) }
        return found
    }

    // All in memory, some on the disk, all on the disk.
    @Test(arguments: [nil, 1 << 16, 0])
    func `Each token is counted as often as it was accepted, in memory or on the disk`(
        growth: Int?
    ) throws {
        let all = fingerprints(30_000, most: 5, seed: 3)
        var counts = AcceptanceCounts(
            directory: temporaryDirectory(),
            memoryLimit: growth.map { AcceptanceCounts.firstByteCount + $0 }
                ?? AcceptanceCounts.memoryLimit)
        for fingerprint in all { counts.add(fingerprint) }
        try counts.finish()
        let usesDisk = counts.usesDisk
        #expect(usesDisk == (growth != nil))
        let expected = Dictionary(all.map { ($0, 1) }, uniquingKeysWith: +)
        for least in 1...6 {
            // Asked twice: the counts are not used up.
            for _ in 0..<2 {
                let wanted = expected.filter { $0.value >= least }.map(\.key).sorted()
                #expect(try found(counts, atLeast: least).sorted() == wanted, "\(least)")
            }
        }
    }

    @Test func `Tokens that differ in any one bit are counted apart`() throws {
        let first: UInt64 = 0x0123_4567_89ab_cdef
        var counts = AcceptanceCounts(directory: temporaryDirectory())
        counts.add(first)
        for bit in 0..<64 {
            counts.add(first ^ 1 << UInt64(bit))
            counts.add(first)
        }
        try counts.finish()
        #expect(try found(counts, atLeast: 2) == [first])
        #expect(try found(counts, atLeast: 1).count == 65)
    }

    @Test func `More than the largest count are as many as the largest count`() throws {
        var counts = AcceptanceCounts(
            directory: temporaryDirectory(), memoryLimit: AcceptanceCounts.firstByteCount)
        for _ in 0..<5_000 { counts.add(7) }
        // Its bucket goes to the disk with a full count, and more follows there.
        for number in 0..<UInt64(10_000) { counts.add(1 << 40 + number * 64) }
        for _ in 0..<5_000 { counts.add(7) }
        try counts.finish()
        let usesDisk = counts.usesDisk
        #expect(usesDisk)
        #expect(try found(counts, atLeast: AcceptanceCounts.countLimit) == [7])
    }

    @Test func `Only rows that were accepted within the time count`() throws {
        var batch = AcceptedBatch()
        for (fingerprint, time) in [(1, 9), (2, 10), (3, 19), (4, 20), (5, 21)] {
            batch.append(UInt64(fingerprint), UInt64(time))
        }
        var counts = AcceptanceCounts(directory: temporaryDirectory())
        counts.add(batch, within: 10..<20)
        try counts.finish()
        #expect(try found(counts, atLeast: 1).sorted() == [2, 3])
    }

    @Test func `A disk that takes nothing is told, not passed over`() throws {
        var counts = AcceptanceCounts(
            directory: "/proc", memoryLimit: AcceptanceCounts.firstByteCount)
        for fingerprint in fingerprints(100_000, most: 1, seed: 5) { counts.add(fingerprint) }
        let hasFailed = counts.failure != nil
        #expect(hasFailed)
        var code: Int32?
        do throws(BroadsideError) { try counts.finish() } catch { code = error.exitCode }
        #expect(code == 5)
    }
}
