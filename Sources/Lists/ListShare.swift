package import BroadsideLedgerFormat
package import BroadsideRows
package import BroadsideSupport

/// Shard of a list (`--shard K/N`).
public struct ListShard: Sendable, Equatable {
    /// Number of the shard, from 1.
    public var index: UInt32
    /// Number of shards.
    public var count: UInt32

    /// Limit on the number of shards.
    public static let countMax: UInt32 = 65_536

    /// Parses `K/N`; nil for anything else.
    public init?(_ text: String) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, parts.allSatisfy({ $0.utf8.allSatisfy { (48...57) ~= $0 } }),
            let index = UInt32(parts[0]), let count = UInt32(parts[1]), index >= 1, index <= count,
            count <= Self.countMax
        else { return nil }
        (self.index, self.count) = (index, count)
    }

    /// Returns the shard as part of a campaign's identity.
    package func identity(of list: TokenList) -> CampaignIdentity.Shard {
        CampaignIdentity.Shard(index: index, count: count, isByRow: !list.isCutByBytes)
    }

    /// Returns the number of the row at which reading ends, if the run sends only the first `limit`
    /// rows of the shard.
    package func rowsLimit(_ limit: UInt64, part: ListExtent, of list: TokenList) -> UInt64 {
        assert(limit > 0, "a campaign has a row")
        if list.isCutByBytes { return part.firstRow + limit }
        let (rows, overflow) = (limit - 1).multipliedReportingOverflow(by: UInt64(count))
        return overflow ? .max : rows + UInt64(index)
    }
}

extension TokenList {
    /// Human-readable description of the list's format, in one line.
    package func description(_ shard: ListShard?) -> String {
        let name = path.map { "\(printable($0)): " } ?? (isSpooled ? "standard input: " : "")
        var text = "list         \(name)\(format.name)"
        if let compression = bytes.compression { text += " in \(compression.rawValue)" }
        if format == .semicolonCSV { text += " with ';' between columns" }
        if format != .lines { text += ", token in column '\(printable(layout.names[0]))'" }
        if let shard {
            text += ", part \(shard.index) of \(shard.count) by \(isCutByBytes ? "bytes" : "rows")"
        }
        return text
    }

    /// Whether the list's shards are ranges of bytes. Otherwise each row is assigned by its number.
    package var isCutByBytes: Bool { bytes.isPlainFile && !isSpooled }

    /// Returns the rows of shard K of N: those that start in the Kth of N equal ranges of bytes. If
    /// the list is not divided by bytes, returns all rows.
    ///
    /// All bytes before the range are read, because row numbers, line numbers and open quotes
    /// depend on these bytes.
    package func part(of shard: ListShard?) throws(BroadsideError) -> ListExtent {
        guard let shard, isCutByBytes, let byteCount else { return .wholeList }
        let first = byteCount * UInt64(shard.index - 1) / UInt64(shard.count)
        let last = byteCount * UInt64(shard.index) / UInt64(shard.count)
        assert(first <= last && last <= byteCount, "a shard is in its list")
        let cursor = ListCursor(self)
        var reader = RowReader(layout: layout)
        var start = shard.index == 1 ? ListPosition() : nil
        var end: ListPosition?
        let isLast = shard.index == shard.count
        while start == nil || !isLast && end == nil, let chunk = try cursor.cutRows(atMost: .max) {
            try SignalWatch.stopIfRequested()
            try checkUnchanged()
            if start == nil { start = rowStart(in: chunk, from: first, &reader) }
            if !isLast, end == nil { end = rowStart(in: chunk, from: last, &reader) }
            cursor.giveBack(chunk)
        }
        let from = start ?? cursor.position
        let to = isLast ? nil : end ?? cursor.position
        assert(to.map { $0.byteOffset >= from.byteOffset } ?? true, "a part ends after its start")
        return ListExtent(from: from, to: to)
    }

    /// Returns the position of the first row that starts at or after an offset.
    private func rowStart(
        in chunk: RowChunk, from offset: UInt64, _ reader: inout RowReader
    ) -> ListPosition? {
        guard chunk.end.byteOffset > offset else { return nil }
        reader.open(chunk)
        defer { _ = reader.close() }
        while let row = reader.next() {
            let byteOffset = chunk.start.byteOffset + UInt64(row.start)
            if byteOffset >= offset {
                return ListPosition(byteOffset: byteOffset, row: row.number, line: row.line)
            }
        }
        return nil
    }
}
