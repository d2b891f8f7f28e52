import BroadsideLedgerFormat
import BroadsideLists
import BroadsideSupport

/// The export of one ledger as one source of a merge. Its buffer holds the text of part of a chunk.
private final class ExportPart {
    private var export: LedgerExport
    private var list: ListPartReader?
    private var taken = 0
    private(set) var isAtEnd = false

    init(_ export: consuming LedgerExport, list: ListPartReader?) {
        self.export = export
        self.list = list
    }

    /// Number of the next row, or a lower bound of that number.
    var nextRow: UInt64 {
        taken < export.rows.count ? export.rows[taken].number : isAtEnd ? .max : export.nextRow
    }

    /// Makes the export continue without the list.
    func dropList() { list = nil }

    /// Appends the buffered rows that precede the given row; reads more rows if none are buffered.
    func step(before limit: UInt64, into output: inout [UInt8]) throws(LedgerError) {
        guard taken < export.rows.count else {
            taken = 0
            export.forgetText()
            return try readOn()
        }
        let start = taken == 0 ? 0 : export.rows[taken - 1].end
        repeat { taken += 1 } while taken < export.rows.count && export.rows[taken].number < limit
        let end = export.rows[taken - 1].end
        assert(start <= end, "the text of rows is in order")
        Self.withBytes(of: export) { output.append($0.extracting(start..<end)) }
    }

    /// Passes the buffered text to `body`.
    private static func withBytes<Failure>(
        of export: borrowing LedgerExport, _ body: (RawSpan) throws(Failure) -> Void
    ) throws(Failure) {
        try body(export.bytes)
    }

    /// Writes all rows if this is the only source of the merge. Row numbers are not needed then.
    func writeAll(
        _ output: (RawSpan) throws(BroadsideError) -> Void,
        unreadable: (LedgerError) -> BroadsideError?
    ) throws(BroadsideError) {
        while !isAtEnd {
            do throws(LedgerError) {
                try readOn()
            } catch {
                if let error = unreadable(error) { throw error }
                assert(list != nil, "a list is dropped once")
                dropList()
            }
            guard isAtEnd || !export.hasRoom else { continue }
            try Self.withBytes(of: export, output)
            export.forgetText()
        }
    }

    private func readOn() throws(LedgerError) {
        if var list {
            isAtEnd = try !export.next(list: &list)
            self.list = list
        } else {
            var none = NoLedgerList()
            isAtEnd = try !export.next(list: &none)
        }
    }
}

/// The merge of the exports of a merged ledger's shards, in list order.
///
/// The exports advance through the list together, each with one chunk in memory. So even a
/// compressed list is read only once.
struct MergedExport {
    private var parts: [ExportPart] = []

    /// Number of bytes that are collected for each write to the output.
    private static let writeByteCount = 1 << 18

    mutating func append(_ export: consuming LedgerExport, list: ListPartReader?) {
        parts.append(ExportPart(export, list: list))
    }

    /// Writes all rows. The caller has to write the header first.
    ///
    /// - Parameter unreadable: Called if reading fails. If it returns an error, the export ends
    ///   with this error. If it returns nil, the fault is in the list, and the export continues
    ///   without the list. Rows that were read from the list before the fault are correct, because
    ///   each chunk had the hash that the ledger records.
    mutating func write(
        _ output: (RawSpan) throws(BroadsideError) -> Void,
        unreadable: (LedgerError) -> BroadsideError?
    ) throws(BroadsideError) {
        if parts.count == 1 {
            return try parts[0].writeAll(output, unreadable: unreadable)
        }
        var bytes: [UInt8] = []
        while let next = nextPart() {
            do throws(LedgerError) {
                try next.part.step(before: next.limit, into: &bytes)
            } catch {
                if let error = unreadable(error) { throw error }
                for part in parts { part.dropList() }
            }
            if bytes.count >= Self.writeByteCount {
                try output(bytes.rawSpan)
                bytes.removeAll(keepingCapacity: true)
            }
        }
        try output(bytes.rawSpan)
    }

    /// Returns the part with the lowest next row, and the lowest next row of all other parts; nil
    /// at the end.
    private func nextPart() -> (part: ExportPart, limit: UInt64)? {
        var first: (index: Int, row: UInt64)?
        var limit = UInt64.max
        assert(parts.count > 1, "one part is written as it is")
        for index in parts.indices {
            let row = parts[index].nextRow
            if row < first?.row ?? .max {
                limit = first?.row ?? .max
                first = (index, row)
            } else {
                limit = min(limit, row)
            }
        }
        guard let first else { return nil }
        assert(limit >= first.row, "the first row comes before the others")
        return (parts[first.index], limit)
    }
}
