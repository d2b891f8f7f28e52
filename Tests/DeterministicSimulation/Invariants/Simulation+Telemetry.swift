import Broadside
import BroadsideEngine
import FoundationEssentials

/// Compares the latency counts for summary, report and telemetry with the latencies themselves.
extension Simulation {
    /// Checks properties that any counts must have.
    func checkForms(of counts: LatencyCounts) {
        if counts.since(LatencyCounts()) != counts { fail("latencies differ since nothing") }
        let rest = counts.since(counts)
        let isEmpty = rest.columns(8).allSatisfy { $0.count == 0 }
        if rest.count != 0 || rest.sumNanoseconds != 0 || !isEmpty {
            fail("\(rest.count) latencies are left of nothing")
        }
        do {
            let text = try JSONEncoder().encode(counts)
            let read = try JSONDecoder().decode(LatencyCounts.self, from: text)
            if read.count != counts.count || read.sumNanoseconds != counts.sumNanoseconds
                || read.maximumNanoseconds != counts.maximumNanoseconds
                || (counts.count > 0 && read != counts)
            {
                fail("telemetry has \(read.count) latencies of \(counts.count)")
            }
        } catch {
            fail("latencies can't be stored: \(error)")
        }
        checkColumns(of: counts)
    }

    /// Counts of one part can be subtracted from the total.
    func checkDifference(_ total: LatencyCounts, _ part: LatencyCounts, _ rest: LatencyCounts) {
        let found = total.since(part)
        if found.count != rest.count || found.sumNanoseconds != rest.sumNanoseconds {
            fail("\(found.count) latencies are left, not \(rest.count)")
        }
        for share in [0.1, 0.5, 1] where rest.count > 0 {
            // The maximum is that of the total.
            let (one, other) = (found.quantile(share) ?? 0, rest.quantile(share) ?? 0)
            if one < other || one > other + other / 32 + 1 {
                fail("\(share) of the latencies that are left are \(one) ns, not \(other)")
            }
        }
    }

    /// The columns together contain all latencies. Up to the end of each column, they contain the
    /// latencies below that end, except for the width of a bucket.
    private func checkColumns(of counts: LatencyCounts) {
        let columns = counts.columns(12)
        guard counts.count > 0 else {
            if !columns.isEmpty { fail("there are columns of no latencies") }
            return
        }
        var sum = 0.0
        var end: UInt64 = 0
        for column in columns {
            if column.upper < end || column.count < 0 {
                fail("a column of \(column.count) ends at \(column.upper) ns, behind \(end)")
            }
            end = column.upper
            sum += column.count
            let least = Double(counts.count(upTo: end - end / 16 - min(end, 2)))
            let most = Double(counts.count(upTo: end + end / 16 + 2))
            if sum < least - 1e-3 || sum > most + 1e-3 {
                fail("\(sum) latencies are shown up to \(end) ns, \(least) to \(most) are there")
            }
        }
        let all = Double(counts.count)
        if columns.count != 12 || sum < all - 1e-3 || sum > all + 1e-3 {
            fail("\(columns.count) columns show \(sum) latencies of \(counts.count)")
        }
    }

    /// Compares counts up to a time with the exact durations of responses, which are in order.
    func checkCounts(of counts: LatencyCounts, _ exact: [UInt64]) {
        for limit in exact.prefix(20) {
            // At the end of one of the 32 parts of a power of two, the count is exact.
            let shift = UInt64(max(0, 58 - limit.leadingZeroBitCount))
            let end = ((limit >> shift) + 1) << shift - 1
            let found = counts.count(upTo: end)
            let expected = UInt64(exact.count { $0 <= end })
            if found != expected {
                fail("\(found) responses took up to \(end) ns, and it was \(expected)")
            }
        }
        for limit in exact.prefix(100) + exact.suffix(1) {
            let most = UInt64(exact.count { $0 <= limit })
            let least = UInt64(exact.count { $0 + $0 / 32 + 1 <= limit })
            let found = counts.count(upTo: limit)
            if found < least || found > most {
                fail("\(found) responses took up to \(limit) ns, and it was \(least) to \(most)")
                return
            }
        }
    }
}
