internal import BroadsideAPNs
import BroadsideEngine
internal import BroadsideHPACK
internal import BroadsideLedgerFormat
import BroadsideLists
internal import BroadsidePayloads
internal import BroadsideRows
import BroadsideSupport

/// Prints the first N requests of each payload and topic as they would be sent (`--preview N`),
/// without connections or output files.
struct Preview {
    /// Limit on the rows that are read to find requests of each payload.
    private static let rowsLimit: UInt64 = 1_000_000

    private let plan: Plan
    private let settings: ReactorSettings
    private let manifest: Manifest
    private let listName: String

    /// - Parameter count: Limit on the requests per payload.
    /// - Throws: If a run would refuse the list.
    static func run(_ run: CheckedRun, count: Int) throws(BroadsideError) {
        let (plan, list) = (run.plan, run.list)
        var (selection, waves) = try checkedRows(run)
        selection.due = waves?.anyTime
        let preview = Preview(plan, list)
        let set = plan.payloads.set
        var rows = try RowCursor(list, selection)
        var renderer = PayloadRenderer(set, layout: list.layout)
        var digits = TokenDigits()
        var progress = PreviewProgress(
            limit: count, payloads: plan.payloads.names, arms: set.arms?.split.names ?? [],
            hasTopics: set.topic != nil)
        var tally = PreviewTally()
        var read: UInt64 = 0
        var isAtEnd = false
        while read < rowsLimit, progress.needsMore {
            guard let row = try rows.next() else {
                isAtEnd = true
                break
            }
            read = row.number + 1 - selection.rows.part.firstRow
            guard isSent(rows, &digits, &tally) else { continue }
            var shape = PayloadRenderer.Shape()
            var payload = set.templates[0].constantPayload
            let shortened = renderer.shortenedRows
            if set.isPersonal {
                switch renderer.render(rows.reader) {
                case .invalid(let reason):
                    tally.note(reason, option: renderer.culprit?.use.option ?? "--payload")
                    continue
                case .made(let made):
                    shape = made
                    payload = renderer.lastPayload(made)
                }
            }
            guard progress.isWanted(shape) else {
                tally.noteOther()
                continue
            }
            tally.noteShown()
            progress.noteShown(shape)
            let template = Int(shape.template)
            preview.show(
                line: row.line, token: [UInt8](digits.bytes), payload: payload,
                payloadName: set.templates.count > 1 ? plan.payloads.names[template] : nil,
                arm: shape.arm, delivery: try waves?.deliveryText(ofRow: row.number),
                topic: set.topic?.topics.text(shape.topic),
                collapseID: set.hasRowCollapse ? renderer.lastCollapseID(shape) : nil,
                shortened: renderer.shortenedRows > shortened
                    ? set.templates[template].fittedColumn : nil)
        }
        if progress.lacksRequests {
            for line in tally.lines(isWhole: isAtEnd, plan.options) { print(line) }
        }
        let searched = isAtEnd ? "the list" : "the first \(grouped(read)) rows"
        for line in progress.unseen(in: searched) { print(line) }
        print("preview: nothing was sent, nothing was written")
    }

    /// Checks the list as a run does.
    ///
    /// - Returns: Rows of the run, and its waves; nil if all rows are sent at once.
    private static func checkedRows(
        _ run: CheckedRun
    ) throws(BroadsideError) -> (selection: ListSelection, waves: WavePlan?) {
        let check = FirstRowsCheck(
            run.list, plan: run.plan, rows: try run.rows.rows(), isBegun: run.isBegun)
        try check.check()
        let selection = try run.rows.selection()
        try check.checkPayloads(skips: selection.skips)
        let waves = try run.rows.waves()
        if let headers = waves?.zones.headers,
            let refusal = run.list.refusal(of: headers, isBegun: run.isBegun)
        {
            throw refusal
        }
        return (selection, waves)
    }

    /// Whether a run sends the row that was read last, if a request can be made from it. Writes its
    /// token, or counts the row if it is not sent.
    private static func isSent(
        _ rows: borrowing RowCursor, _ digits: inout TokenDigits, _ tally: inout PreviewTally
    ) -> Bool {
        if case .skipped(let reason) = rows.disposition {
            tally.note(reason)
            return false
        }
        if let reason = digits.write({ rows.reader.readToken(rows.reader.field(0), into: &$0) }) {
            tally.note(reason)
            return false
        }
        if case .invalid(let reason) = rows.disposition {
            tally.note(reason, option: "--zone-column")
            return false
        }
        assert(rows.disposition == .send, "no earlier run has settled a row")
        return true
    }

    private init(_ plan: Plan, _ list: TokenList) {
        self.plan = plan
        listName = list.path.map { printable($0) } ?? "\(list.name)"
        // Manifest of a campaign that would begin now, except for its ID.
        manifest =
            LedgerSession.begin(
                plan, identity: LedgerSession.identity(plan, list: list, skips: nil), list: list,
                part: .wholeList, now: Clock.now()
            ).0
        settings = plan.reactorSettings(manifest: manifest)
    }

    private func show(
        line: UInt64, token: [UInt8], payload: [UInt8], payloadName: String?, arm: UInt8,
        delivery: String?, topic: [UInt8]?, collapseID: [UInt8]?, shortened: String?
    ) {
        let arms = plan.payloads.set.arms
        let armName = arms.flatMap { arm == 0 ? nil : ", arm \($0.split.names[Int(arm) - 1])" }
        let name =
            (armName ?? "") + (payloadName.map { ", \(printable($0))" } ?? "")
            + (delivery.map { ", \($0)" } ?? "")
        let token = ShortenedToken(token)
        var lines = ["line \(line) of \(listName)\(name)"]
        if let binary = settings.binary {
            lines.append("command \(binary.command.rawValue)")
            lines.append("token \(token.text)")
            if let seconds = binary.expiration { lines.append("expiration \(seconds)") }
            lines.append("priority \(binary.priority)")
        } else {
            lines += fields(
                token, payloadCount: payload.count, topic: topic, collapseID: collapseID,
                priority: arms?.priority(of: arm))
        }
        let text = ForeignText.escaped(
            String(decoding: token.shortened(in: payload), as: UTF8.self))
        print(ForeignText.escaped(lines[0]))
        for line in lines.dropFirst() { print("  \(ForeignText.escaped(line))") }
        let cut = shortened.map { "; \(printable($0)) is shortened" } ?? ""
        print("\n  \(text)\n  (\(grouped(payload.count)) bytes\(cut))\n")
    }

    /// Header fields in the order in which they are sent.
    private func fields(
        _ token: ShortenedToken, payloadCount: Int, topic: [UInt8]?, collapseID: [UInt8]?,
        priority: Priority?
    ) -> [String] {
        let authorization = settings.usesProviderToken ? [UInt8]() : nil
        let own = collapseID.flatMap { $0.isEmpty ? nil : $0 }
        return settings.fields(
            authorization: authorization, version: 0, personalTopicCount: topic?.count,
            personalCollapseCount: own?.count,
            ownPriorityCount: priority.map { "\($0.rawValue)".utf8.count }, personalLength: true
        ).map { field in
            let value: String
            switch (field.name, field.value) {
            case (.path, _): value = "/3/device/\(token.text)"
            case (.authorization, _): value = "bearer … (\(plan.credential.summary))"
            case (.identifier, _): value = "… (made from the numbers of the campaign and the row)"
            case (.contentLength, _): value = "\(payloadCount)"
            case (.priority, .hole): value = priority.map { "\($0.rawValue)" } ?? ""
            case (.topic, .hole): value = String(decoding: topic ?? [], as: UTF8.self)
            case (.collapseIdentifier, .hole):
                value = String(decoding: token.shortened(in: own ?? []), as: UTF8.self)
            case (_, .constant(let bytes)): value = String(decoding: bytes, as: UTF8.self)
            case (_, .hole): value = "…"
            }
            return "\(field.name.text): \(value)"
        }
    }
}
