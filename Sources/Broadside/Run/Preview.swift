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
    /// Limit on the rows read to find one for each payload.
    private static let rowsLimit: UInt64 = 1_000_000

    private let plan: Plan
    private let settings: ReactorSettings
    private let manifest: Manifest
    private let listName: String

    /// - Parameter count: Limit on the requests per payload.
    /// - Throws: If a run would refuse the list.
    static func run(_ run: CheckedRun, count: Int) throws(BroadsideError) {
        let (plan, list) = (run.plan, run.list)
        try FirstRowsCheck(list, plan: plan, rows: run.rows.rows()).check()
        let preview = Preview(plan, list)
        let set = plan.payloads.set
        let selection = try run.rows.selection()
        var rows = try RowCursor(list, selection)
        var renderer = PayloadRenderer(set, layout: list.layout)
        var digits = TokenDigits()
        var shown = [Int](repeating: 0, count: set.templates.count)
        var shownTopics: [UInt8: Int] = [:]
        var read: UInt64 = 0
        // Only the list shows which topics exist.
        while read < rowsLimit, set.topic != nil || shown.contains(where: { $0 < count }),
            let row = try rows.next()
        {
            read = row.number + 1 - selection.rows.part.firstRow
            guard rows.disposition == .send,
                digits.write({ rows.reader.readToken(rows.reader.field(0), into: &$0) }) == nil
            else { continue }
            var shape = PayloadRenderer.Shape()
            var payload = set.templates[0].constantPayload
            if set.isPersonal {
                guard case .made(let made) = renderer.render(rows.reader) else { continue }
                shape = made
                payload = renderer.lastPayload(made)
            }
            let template = Int(shape.template)
            let isShown =
                set.topic == nil
                ? shown[template] >= count : shownTopics[shape.topic, default: 0] >= count
            guard !isShown || shown[template] < count else { continue }
            shown[template] += 1
            shownTopics[shape.topic, default: 0] += 1
            preview.show(
                line: row.line, token: [UInt8](digits.bytes), payload: payload,
                payloadName: set.templates.count > 1 ? plan.payloads.names[template] : nil,
                topic: set.topic?.topics.text(shape.topic),
                collapseID: set.collapse == nil ? nil : renderer.lastCollapseID(shape))
        }
        let searched = read < rowsLimit ? "the list" : "the first \(grouped(read)) rows"
        for template in shown.indices where shown[template] == 0 {
            print("no row of \(searched) gets \(printable(plan.payloads.names[template]))")
        }
        print("preview: nothing was sent, nothing was written")
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
        line: UInt64, token: [UInt8], payload: [UInt8], payloadName: String?, topic: [UInt8]?,
        collapseID: [UInt8]?
    ) {
        let name = payloadName.map { ", \(printable($0))" } ?? ""
        let token = ShortenedToken(token)
        var lines = ["line \(line) of \(listName)\(name)"]
        if let binary = settings.binary {
            lines.append("command \(binary.command.rawValue)")
            lines.append("token \(token.text)")
            if let seconds = binary.expiration { lines.append("expiration \(seconds)") }
            lines.append("priority \(binary.priority)")
        } else {
            lines += fields(
                token, payloadCount: payload.count, topic: topic, collapseID: collapseID)
        }
        let text = ForeignText.escaped(
            String(decoding: token.shortened(in: payload), as: UTF8.self))
        print(ForeignText.escaped(lines[0]))
        for line in lines.dropFirst() { print("  \(ForeignText.escaped(line))") }
        print("\n  \(text)\n  (\(grouped(payload.count)) bytes)\n")
    }

    /// Header fields in the order in which they are sent.
    private func fields(
        _ token: ShortenedToken, payloadCount: Int, topic: [UInt8]?, collapseID: [UInt8]?
    ) -> [String] {
        let authorization = settings.usesProviderToken ? [UInt8]() : nil
        let own = collapseID.flatMap { $0.isEmpty ? nil : $0 }
        return settings.fields(
            authorization: authorization, version: 0, personalTopicCount: topic?.count,
            personalCollapseCount: own?.count, personalLength: true
        ).map { field in
            let value: String
            switch (field.name, field.value) {
            case (.path, _): value = "/3/device/\(token.text)"
            case (.authorization, _): value = "bearer … (\(plan.credential.summary))"
            case (.identifier, _): value = "… (from the campaign's number and the row's)"
            case (.contentLength, _): value = "\(payloadCount)"
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
