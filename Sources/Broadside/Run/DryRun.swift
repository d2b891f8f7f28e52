import APNs
import Campaign
internal import Glibc

/// Reads and checks everything that a run would, builds each request, connects nowhere, writes
/// nothing.
enum DryRun {
    /// What the rows of a list are.
    private struct Tally {
        var rows: UInt64 = 0
        var skipped: [RowDisposition: UInt64] = [:]
        private var invalid: UInt64 = 0
        private var reasons: [Reason: Int] = [:]
        private var firstInvalidLine: UInt64?

        mutating func noteInvalid(_ reason: Reason, line: UInt64) {
            invalid += 1
            reasons[reason, default: 0] += 1
            firstInvalidLine = firstInvalidLine ?? line
        }

        func print(withSkips: Bool) {
            Swift.print("rows         \(rows)")
            let suppressed = skipped[.suppressed] ?? 0
            let duplicates = skipped[.duplicate] ?? 0
            Swift.print("to send      \(rows - invalid - suppressed - duplicates)")
            if withSkips {
                Swift.print(
                    "skipped      \(suppressed + duplicates): \(Reason.suppressed.text) \(suppressed), "
                        + "\(Reason.duplicate.text) \(duplicates)")
            }
            let place = firstInvalidLine.map { ", the first on line \($0)" } ?? ""
            Swift.print("invalid      \(invalid)\(place)")
            for (reason, count) in reasons.sorted(by: { $0.key.text < $1.key.text }) {
                Swift.print("             \(count) \(reason.text)")
            }
        }
    }

    static func run(
        _ plan: Plan, list: TokenList, skips: SkipSearch?
    ) throws(BroadsideError) -> Int32 {
        let pool = ChunkPool(limit: 3)
        let shard = plan.options.shard
        let part = try list.part(of: shard)
        let limit = plan.options.limit
        var selection = RowSelection.all
        if let shard, !list.isCutByBytes {
            selection = RowSelection(
                divisor: UInt64(shard.count), remainder: UInt64(shard.index - 1))
        }
        let source = try ListSource(
            list: list, pool: pool, plan: nil,
            rowsLimit: limit.map { shard?.rowsLimit($0, part: part, of: list) ?? $0 }, part: part,
            selection: selection, skips: try skips?.listAside(of: list))
        var tally = Tally()
        var reader = RowReader(layout: list.layout)
        var personalizer = RowPersonalizer(plan.payloads.set, layout: list.layout)
        let isPersonal = plan.payloads.set.isPersonal
        let room = UnsafeMutableRawBufferPointer.allocate(
            byteCount: RowSlab.tokenDigitsLimit, alignment: 8)
        defer { unsafe room.deallocate() }
        while let chunk = try source.next(rowLimit: .max) {
            reader.open(chunk)
            let dispositions = chunk.dispositions
            while let row = reader.next() {
                let disposition = dispositions.flatMap { RowDisposition(rawValue: $0[row.index]) }
                if disposition == .settled { continue }
                tally.rows += 1
                if disposition == .suppressed || disposition == .duplicate, let disposition {
                    tally.skipped[disposition, default: 0] += 1
                    continue
                }
                var digits = unsafe OutputRawSpan(buffer: room, initializedCount: 0)
                let field = reader.field(0)
                let isToken =
                    field.form != .missing && field.form != .unusable
                    && TokenText.canonicalize(reader.text(field), into: &digits)
                _ = unsafe digits.finalize(for: room)
                var reason: Reason? = isToken ? nil : .malformedToken
                if field.form == .missing { reason = .missingColumn }
                if isToken, isPersonal, case .invalid(let other) = personalizer.personalize(reader)
                {
                    reason = other
                }
                if let reason { tally.noteInvalid(reason, line: row.line) }
            }
            if let chunk = reader.close() { pool.giveBack(chunk) }
        }
        if let line = source.unclosedQuoteLine {
            throw .request(
                "\(list.name) ends inside quotes that open on line \(line): close them there")
        }
        print(plan.description(of: list, for: STDOUT_FILENO))
        tally.print(withSkips: skips != nil)
        print("dry run: nothing was sent, nothing was written")
        return 0
    }
}
