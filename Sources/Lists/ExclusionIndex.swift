internal import BroadsidePrimitives
internal import BroadsideRows
package import BroadsideSupport
internal import Glibc

/// File with the row numbers of all rows in the list that are settled as `skipped`. It is written
/// once, before the first row is sent, and read along with the list. Memory does not grow with the
/// list.
///
///     | mark | code of the scan | count | hash | row << 4 + reason | … in list order
///
/// Used by one thread at a time.
@safe package final class ExclusionIndex: @unchecked Sendable {
    /// "BSSKIPS2", read as a little-endian word.
    private static let mark: UInt64 = 0x3253_5049_4b53_5342
    /// Bits of the reason in an entry.
    private static let reasonBits: UInt64 = 4
    private static let headerByteCount = 32
    /// Number of entries that are read from the file at a time.
    private static let windowCount = 4_096

    private let descriptor: Int32
    private let name: String
    private var count: UInt64 = 0
    private var window: [UInt64] = []
    /// Index of the first entry in the window.
    private var windowStart: UInt64 = 0
    /// Index of the first entry for `nextRow` or a later row.
    private var next: UInt64 = 0
    /// Number of the row after the chunk that was marked last. If the next chunk to mark starts at
    /// another row, a search determines `next` again.
    private var nextRow: UInt64 = 0

    deinit { close(descriptor) }

    /// Opens an existing file.
    ///
    /// - Parameters:
    ///   - descriptor: Descriptor of the file, owned by this value.
    ///   - search: The scan from which the file must come.
    /// - Returns: nil if the file is invalid, damaged, or from another scan.
    package init?(descriptor: Int32, name: String, search: ExclusionScan) throws(BroadsideError) {
        self.descriptor = descriptor
        self.name = name
        guard let information = SystemCall.status(of: descriptor) else {
            throw BroadsideError("\(name): \(describe(errno: errno))", exitCode: 5)
        }
        var header: [UInt64] = [0, 0, 0, 0]
        guard Self.read(descriptor, 0, &header), header[0] == Self.mark, header[1] == search.code,
            UInt64(information.st_size) == UInt64(Self.headerByteCount) + header[2] * 8
        else { return nil }
        count = header[2]
        var hash: UInt64 = 0
        var entry: UInt64 = 0
        while entry < count {
            try load(entry)
            hash = Self.extend(hash, window)
            entry += UInt64(window.count)
        }
        guard hash == header[3] else { return nil }
    }

    /// Marks the rows of a chunk that are skipped. Settled rows are not changed. A row in doubt is
    /// marked: the earlier run also skipped this row, so that run did not send it.
    func mark(_ chunk: RowChunk) throws(BroadsideError) {
        let first = chunk.start.row
        let end = first + UInt64(chunk.rowCount)
        if first != nextRow { next = try lowerBound(first) }
        nextRow = end
        guard next < count, try entry(next) >> Self.reasonBits < end else { return }
        var dispositions =
            chunk.dispositions ?? Array(repeating: .send, count: chunk.rowCount)
        assert(dispositions.count == chunk.rowCount, "each row has one disposition")
        // With no other reference to the array, it is changed in place instead of copied.
        chunk.dispositions = nil
        defer { chunk.dispositions = dispositions }
        while next < count {
            let entry = try entry(next)
            guard entry >> Self.reasonBits < end else { return }
            next += 1
            let rowIndex = Int(entry >> Self.reasonBits - first)
            switch dispositions[rowIndex] {
            case .settled, .beyondLimit, .notDue: break
            case .erased: dispositions[rowIndex] = .erased(mayHaveBeenSent: false)
            case .send, .sendAgain, .becomesUnknown, .skipped, .invalid:
                dispositions[rowIndex] = .skipped(try reason(of: entry))
            }
        }
    }

    /// Returns the index of the first entry whose row is `row` or later.
    private func lowerBound(_ row: UInt64) throws(BroadsideError) -> UInt64 {
        var (low, high) = (UInt64(0), count)
        while low < high {
            let middle = (low + high) / 2
            if try entry(middle) >> Self.reasonBits < row {
                low = middle + 1
            } else {
                high = middle
            }
        }
        assert(low == high && low <= count, "the search ends at one entry")
        return low
    }

    private func entry(_ index: UInt64) throws(BroadsideError) -> UInt64 {
        if index < windowStart || index >= windowStart + UInt64(window.count) { try load(index) }
        assert(
            index >= windowStart && index - windowStart < UInt64(window.count),
            "the entry is in the window")
        return window[Int(index - windowStart)]
    }

    private func reason(of entry: UInt64) throws(BroadsideError) -> SkipReason {
        let code = entry & (1 << Self.reasonBits - 1)
        guard let reason = SkipReason(rawValue: UInt8(code)) else {
            throw BroadsideError("\(name) has an unknown reason, \(code)", exitCode: 5)
        }
        return reason
    }

    private func load(_ index: UInt64) throws(BroadsideError) {
        assert(index < count, "only entries of the index are loaded")
        window = Array(repeating: 0, count: Int(min(UInt64(Self.windowCount), count - index)))
        windowStart = index
        guard Self.read(descriptor, UInt64(Self.headerByteCount) + index * 8, &window) else {
            throw BroadsideError("\(name) can't be read", exitCode: 5)
        }
    }

    private static func read(_ descriptor: Int32, _ offset: UInt64, _ words: inout [UInt64]) -> Bool
    {
        let size = words.count * 8
        return SystemCall.read(descriptor, at: offset, &words) == size
    }

    private static func extend(_ hash: UInt64, _ words: [UInt64]) -> UInt64 {
        MixingHash.extend(hash, by: words.rawSpan)
    }

    /// Writer of the file, in row order.
    struct Writer: ~Copyable {
        private let descriptor: Int32
        private let name: String
        private var pending: [UInt64] = []
        private var count: UInt64 = 0
        private var hash: UInt64 = 0

        init(descriptor: Int32, name: String) throws(BroadsideError) {
            self.descriptor = descriptor
            self.name = name
            try writeAll([UInt8](repeating: 0, count: headerByteCount), to: descriptor, name: name)
        }

        mutating func append(row: UInt64, _ reason: SkipReason) throws(BroadsideError) {
            assert(
                pending.last.map { $0 >> reasonBits < row } ?? true, "rows come in order, each once"
            )
            assert(row < 1 << (64 - reasonBits), "a row's number leaves room for the reason")
            pending.append(row << reasonBits | UInt64(reason.rawValue))
            if pending.count == windowCount { try flush() }
        }

        private mutating func flush() throws(BroadsideError) {
            count += UInt64(pending.count)
            hash = ExclusionIndex.extend(hash, pending)
            try writeAll(pending.rawSpan, to: descriptor, name: name)
            pending.removeAll(keepingCapacity: true)
        }

        /// Writes the remaining entries and the header.
        mutating func finish(_ search: ExclusionScan) throws(BroadsideError) {
            try flush()
            let header: [UInt64] = [mark, search.code, count, hash]
            // SAFETY: the kernel reads the array's words, as many bytes as they have, during the
            // call only.
            let written = unsafe header.withUnsafeBytes { bytes in
                unsafe pwrite(descriptor, bytes.baseAddress, bytes.count, 0)
            }
            guard written == headerByteCount else {
                throw BroadsideError("\(name): \(describe(errno: errno))", exitCode: 5)
            }
        }
    }
}
