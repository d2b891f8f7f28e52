import Broadside
import BroadsideAPNs
import BroadsideHygiene
import BroadsideLedgerFormat
import BroadsideLists
import BroadsideRows
import BroadsideSupport

/// Runs `ledger export` and `prune` with the engine's own code. Compares the results with what the
/// simulation knows about the list and the responses.
extension Simulation {
    /// Checks the export of all rows in all states.
    func checkExport(_ rows: [LedgerRow], _ index: LedgerIndex) {
        var output: [UInt8] = []
        do {
            var export = LedgerExport(
                of: index, states: Set(RowState.allCases), format: .csv,
                campaign: plan.campaign, part: plan.part?.index ?? 0,
                reasonText: { Reason(rawValue: $0)?.text ?? "" })
            var reader = ListPartReader(
                list: TokenList(lines: plan.list.bytes, layout: plan.list.layout))
            while try export.next(list: &reader) {
                output.append(export.bytes)
                export.forgetText()
            }
        } catch {
            fail("the ledger can't be exported: \(error)")
            return
        }
        let lines = output.split(separator: 0x0a, omittingEmptySubsequences: false).dropFirst()
        guard lines.count == rows.count + 1, lines.last?.isEmpty == true else {
            fail("\(lines.count - 1) rows are exported of \(rows.count)")
            return
        }
        for (number, line) in zip(rows.indices, lines) {
            let expected = exported(rows[number], number)
            guard !line.elementsEqual(expected) else { continue }
            fail(
                "row \(number) is exported as \(Self.text(Array(line))), not as "
                    + Self.text(expected))
            return
        }
    }

    /// Line of the export that the simulation expects for a row.
    private func exported(_ row: LedgerRow, _ number: Int) -> [UInt8] {
        func number64(_ value: UInt64?) -> [UInt8] { value.map { Array("\($0)".utf8) } ?? [] }
        let isSettled = row.state.isSettled
        let fields: [[UInt8]] = [
            number64(UInt64(plan.list.lines[number])),
            plan.list.tokens[number] ?? plan.list.texts[number],
            Array(row.state.name.utf8),
            row.status == 0 ? [] : number64(UInt64(row.status)),
            Array(row.reason.utf8),
            number64(row.timestamp),
            number64(UInt64(row.attempts)),
            plan.identifier(row: UInt64(number)),
            isSettled ? number64(row.settledAt) : [],
        ]
        return Array(fields.joined(separator: [0x2c]))
    }

    /// Checks the list that `prune` writes. It has all rows except those whose token was reported
    /// as unregistered and got no other response at that time or later.
    func checkPrune(_ rows: [LedgerRow]) {
        var gone: [[UInt8]: UInt64] = [:]
        var living: [[UInt8]: UInt64] = [:]
        for (number, row) in rows.enumerated() {
            guard let token = plan.list.tokens[number],
                row.state == .accepted || row.state == .rejected
            else { continue }
            if row.state == .rejected, row.reason == "Unregistered" {
                gone[token] = max(gone[token] ?? 0, row.settledAt)
            } else {
                living[token] = max(living[token] ?? 0, row.settledAt)
            }
        }
        var expected = Array(plan.list.bytes[..<plan.list.headerCount])
        for (number, range) in plan.list.ranges.enumerated() {
            let token = plan.list.tokens[number]
            let isGone = token.flatMap { token in
                gone[token].map { $0 > living[token] ?? 0 }
            }
            let before =
                number == 0
                ? plan.list.headerCount : plan.list.ranges[number - 1].upperBound
            expected += plan.list.bytes[before..<range.lowerBound]
            if isGone != true { expected += plan.list.bytes[range] }
        }
        do {
            let pruned = try prune()
            guard pruned != expected else { return }
            let place = zip(pruned, expected).enumerated().first { $1.0 != $1.1 }?.offset
            fail(
                "prune leaves \(pruned.count) bytes of \(plan.list.bytes.count), not "
                    + "\(expected.count); they differ from \(place ?? -1) on")
        } catch {
            fail("the list can't be pruned: \(error)")
        }
    }

    private func prune() throws(LedgerError) -> [UInt8] {
        var manifest = Manifest(
            campaign: plan.campaign,
            identity: CampaignIdentity(
                listByteCount: UInt64(plan.list.bytes.count), listFormat: "lines",
                columns: ["token"], payloadSHA256: "", topic: "com.example.news",
                pushType: "alert", priority: 10, expiration: nil, collapseID: nil,
                environment: "production", shard: nil, part: plan.part, suppressSHA256: nil),
            firstStartedAtMilliseconds: wallStart, listPath: nil)
        for epoch in 1...segments.count {
            _ = manifest.beginEpoch(
                atMilliseconds: wallStart,
                previousLengths: manifestLengths[UInt32(epoch - 1)] ?? [])
        }
        var ledger = VerdictLedger(
            manifest: manifest, segments: segments.flatMap { $0 }.map(\.ledgerSegment))
        let reasons: Set<Reason> = [.unregistered, .expiredToken]
        var dead = DeadTokens()
        try dead.insertDead(of: &ledger, reasons: reasons)
        dead.seal()
        try dead.rescueLiving(of: ledger, reasons: reasons)
        dead.seal()
        var pruner = ListPruner(
            dead: dead, layout: plan.list.layout, collectsRemoved: false,
            nowMilliseconds: 1_790_000_000_000)
        var list = plan.list.bytes
        var removed: [UInt8] = []
        let kept = list.withUnsafeMutableBytes {
            pruner.process($0, isLast: true, removed: &removed).keptCount
        }
        return Array(list[..<kept])
    }
}
