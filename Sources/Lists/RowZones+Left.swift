package import BroadsideLedgerFormat
import BroadsideRows
package import BroadsideSupport

extension RowZones {
    /// Number of rows whose zones are read at a time.
    private static var windowRows: UInt64 { 1 << 16 }

    /// Returns the number of rows of each zone that a run has yet to send, in the order of `zones`.
    ///
    /// - Parameter left: Work that earlier runs left.
    /// - Throws: Exit code 3 if a signal ended the reading.
    package func rowCounts(_ left: consuming ResumePlan) throws(BroadsideError) -> [UInt64] {
        var counts = [UInt64](repeating: 0, count: zones.count)
        while let work = try Self.next(&left) {
            try SignalWatch.stopIfRequested()
            switch work {
            case .gap(let gap):
                let end = min(gap.endRow ?? .max, endRow)
                var first = gap.firstRow
                while first < end {
                    let window = first..<min(end, first + Self.windowRows)
                    for number in try numbers(of: window) where number >= Self.firstZone {
                        counts[Int(number - Self.firstZone)] += 1
                    }
                    first = window.upperBound
                }
            case .chunk(let work):
                let numbers = try numbers(of: work.chunk.rows)
                for (number, disposition) in zip(numbers, work.dispositions)
                where number >= Self.firstZone && disposition.isSent {
                    counts[Int(number - Self.firstZone)] += 1
                }
            }
        }
        assert(zip(counts, zones).allSatisfy { $0 <= $1.rows }, "no more rows are left than exist")
        return counts
    }

    private static func next(
        _ plan: inout ResumePlan
    ) throws(BroadsideError) -> ResumePlan.Work? {
        do {
            return try plan.next()
        } catch {
            throw BroadsideError("the ledger can't be read: \(error)", exitCode: 5)
        }
    }
}
