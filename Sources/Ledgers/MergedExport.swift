import Campaign
import Lists
import Support

/// The rows of one ledger on their way into an export, a chunk at a time.
private final class ExportPart {
    var export: LedgerExport
    private var list: ListPartReader?
    private(set) var bytes: [UInt8] = []
    private var taken = 0
    private(set) var isAtEnd = false

    init(_ export: consuming LedgerExport, list: ListPartReader?) {
        self.export = export
        self.list = list
    }

    /// The next row, or a row before which none follows.
    var nextRow: UInt64 {
        taken < export.rows.count ? export.rows[taken].number : isAtEnd ? .max : export.nextRow
    }

    /// Appends the next row, or reads on where none is at hand.
    func step(into output: inout [UInt8]) throws(LedgerError) {
        guard taken == export.rows.count else {
            let start = taken == 0 ? 0 : export.rows[taken - 1].end
            output += bytes[start..<export.rows[taken].end]
            taken += 1
            return
        }
        taken = 0
        bytes.removeAll(keepingCapacity: true)
        export.forgetRows()
        if var list {
            isAtEnd = try !export.next(list: &list, into: &bytes)
            self.list = list
        } else {
            var none = NoLedgerList()
            isAtEnd = try !export.next(list: &none, into: &bytes)
        }
    }
}

/// Puts the exports of a merged ledger's shards together, in list order.
///
/// All of them go along the list side by side, a chunk each in memory, so that even a packed list is
/// read once.
struct MergedExport {
    private var parts: [ExportPart] = []

    mutating func append(_ export: consuming LedgerExport, list: ListPartReader?) {
        parts.append(ExportPart(export, list: list))
    }

    /// Writes all rows; a header has to come first.
    mutating func write(
        _ output: ([UInt8]) throws(BroadsideError) -> Void,
        unreadable: (LedgerError) -> BroadsideError
    ) throws(BroadsideError) {
        var bytes: [UInt8] = []
        while let part = parts.min(by: { $0.nextRow < $1.nextRow }), part.nextRow < .max {
            do {
                try part.step(into: &bytes)
            } catch {
                throw unreadable(error)
            }
            if bytes.count >= 1 << 18 {
                try output(bytes)
                bytes.removeAll(keepingCapacity: true)
            }
        }
        try output(bytes)
    }
}
