import APNs
import Campaign

/// Reads and checks everything that a run would, builds each request, connects nowhere, writes
/// nothing.
enum DryRun {
    static func run(_ plan: Plan, list: TokenList) throws(BroadsideError) -> Int32 {
        let pool = ChunkPool(limit: 3)
        let source = try ListSource(
            list: list, pool: pool, plan: nil, rowsLimit: plan.options.limit)
        var reader = RowReader(layout: list.layout)
        var personalizer = RowPersonalizer(plan.payloads.set, layout: list.layout)
        let isPersonal = plan.payloads.set.isPersonal
        var reasons: [Reason: Int] = [:]
        var rows: UInt64 = 0
        var invalid: UInt64 = 0
        var firstInvalidLine: UInt64?
        let room = UnsafeMutableRawBufferPointer.allocate(
            byteCount: RowSlab.tokenDigitsLimit, alignment: 8)
        defer { unsafe room.deallocate() }
        while let chunk = try source.next(rowLimit: .max) {
            reader.open(chunk)
            while let row = reader.next() {
                rows += 1
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
                if let reason {
                    invalid += 1
                    reasons[reason, default: 0] += 1
                    firstInvalidLine = firstInvalidLine ?? row.line
                }
            }
            if let chunk = reader.close() { pool.giveBack(chunk) }
        }
        if let line = source.unclosedQuoteLine {
            throw .request(
                "the list ends inside quotes that open on line \(line): close them there")
        }
        print(plan.description)
        print("rows         \(rows)")
        print("to send      \(rows - invalid)")
        let place = firstInvalidLine.map { ", the first on line \($0)" } ?? ""
        print("invalid      \(invalid)\(place)")
        for (reason, count) in reasons.sorted(by: { $0.key.text < $1.key.text }) {
            print("             \(count) \(reason.text)")
        }
        print("dry run: nothing was sent, nothing was written")
        return 0
    }
}
