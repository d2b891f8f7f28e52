package import BroadsideSupport
internal import Glibc

/// Sorter of any number of records within bounded memory: sorted runs are spilled to a temporary
/// file without a name, and merged at the end.
///
///     append … append ──▶ (full: sort, spill) ──▶ append … ──▶ merge: smallest first
///
/// Short lists never use the disk.
package struct RecordSorter: ~Copyable {
    /// A record of four words, compared in this order.
    package struct Record: Comparable, BitwiseCopyable {
        package var first: UInt64
        package var second: UInt64
        package var third: UInt64
        package var fourth: UInt64

        @inlinable package init(first: UInt64, second: UInt64, third: UInt64, fourth: UInt64) {
            self.first = first
            self.second = second
            self.third = third
            self.fourth = fourth
        }

        @inlinable @inline(__always)
        package static func < (left: Record, right: Record) -> Bool {
            if left.first != right.first { return left.first < right.first }
            if left.second != right.second { return left.second < right.second }
            if left.third != right.third { return left.third < right.third }
            return left.fourth < right.fourth
        }
    }

    /// Default number of records in memory before a spill. They take 32 MiB.
    static let defaultLimit = 1 << 20
    /// Number of records that are read from a spilled run at a time.
    private static let readCount = 1 << 10

    private let limit: Int
    private let directory: String
    private var records: [Record] = []
    private var descriptor: Int32 = -1
    /// End of each spilled run in the file, in records.
    private var runEnds: [Int] = []

    /// - Parameters:
    ///   - directory: Directory for the temporary file, accessed only if records are spilled.
    ///   - limit: Maximum number of records in memory.
    package init(directory: String, limit: Int = RecordSorter.defaultLimit) {
        self.directory = directory
        self.limit = limit
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    /// Adds a record.
    package mutating func append(_ record: Record) throws(BroadsideError) {
        if records.count == limit { try spill() }
        records.append(record)
        assert(records.count <= limit, "what is in memory stays within the limit")
    }

    private mutating func spill() throws(BroadsideError) {
        if descriptor < 0 { try open() }
        assert(!records.isEmpty, "a run has records")
        records.sort()
        let count = records.count
        do throws(BroadsideError) {
            // SAFETY: a record is words without padding.
            try writeAll(
                unsafe records.span.bytes, to: descriptor, name: "a temporary file in \(directory)")
        } catch {
            throw BroadsideError(
                error.message + ": set TMPDIR to a directory with more space", exitCode: 5)
        }
        runEnds.append((runEnds.last ?? 0) + count)
        records.removeAll(keepingCapacity: true)
    }

    private mutating func open() throws(BroadsideError) {
        descriptor = try openNameless(in: directory)
    }

    /// Passes all records to `visit`, the smallest first, and removes them.
    package mutating func merge(
        _ visit: (Record) throws(BroadsideError) -> Void
    ) throws(BroadsideError) {
        guard descriptor >= 0 else {
            records.sort()
            for record in records { try visit(record) }
            records = []
            return
        }
        try spill()
        records = []
        var runs: [Run] = []
        var heap: [(record: Record, run: Int)] = []
        for (number, end) in runEnds.enumerated() {
            runs.append(Run(position: number == 0 ? 0 : runEnds[number - 1], end: end))
            if let record = try next(&runs[number]) { heap.append((record, number)) }
        }
        for offset in stride(from: heap.count / 2 - 1, through: 0, by: -1) { sink(&heap, offset) }
        while let top = heap.first {
            try visit(top.record)
            if let record = try next(&runs[top.run]) {
                heap[0].record = record
            } else {
                let last = heap.removeLast()
                if heap.isEmpty { return }
                heap[0] = last
            }
            sink(&heap, 0)
        }
    }

    /// Spilled run that is being read.
    private struct Run {
        var position: Int
        let end: Int
        var records: [Record] = []
        var taken = 0
    }

    private func next(_ run: inout Run) throws(BroadsideError) -> Record? {
        assert(
            run.position <= run.end && run.taken <= run.records.count,
            "no spilled run is read beyond its end")
        if run.taken == run.records.count {
            let count = min(Self.readCount, run.end - run.position)
            if count == 0 { return nil }
            let empty = Record(first: 0, second: 0, third: 0, fourth: 0)
            if run.records.count != count { run.records = Array(repeating: empty, count: count) }
            let size = count * MemoryLayout<Record>.stride
            let offset = UInt64(run.position * MemoryLayout<Record>.stride)
            guard SystemCall.read(descriptor, at: offset, &run.records) == size else {
                throw BroadsideError(
                    "a temporary file in \(directory) can't be read back", exitCode: 5)
            }
            run.position += count
            run.taken = 0
        }
        run.taken += 1
        return run.records[run.taken - 1]
    }

    private func sink(_ heap: inout [(record: Record, run: Int)], _ start: Int) {
        var offset = start
        while true {
            var smallest = offset
            for child in [2 * offset + 1, 2 * offset + 2]
            where child < heap.count && heap[child].record < heap[smallest].record {
                smallest = child
            }
            if smallest == offset { return }
            heap.swapAt(offset, smallest)
            offset = smallest
        }
    }
}
