import BroadsideAPNs
import BroadsideLists
import BroadsidePayloads
import BroadsideSupport

/// The first row of a run that is sent, and the payload that it gets: what a template says only once a row
/// fills it in.
struct FirstRow {
    /// The line of the list on which it begins.
    let line: UInt64
    /// Which of the payloads it gets.
    let template: Int
    let payload: [UInt8]
    private let token: ShortenedToken

    /// Rows of the run that are looked at for one with a token and a payload, and with those that are skipped.
    static let searchLimit: UInt64 = 1000
    private static let rowsLimit: UInt64 = 10_000_000

    /// - Returns: nil if the payload is the same for all rows, or none of the first rows can be sent.
    static func find(
        _ plan: Plan, _ list: TokenList, _ selection: ListSelection
    ) throws(BroadsideError) -> FirstRow? {
        let set = plan.payloads.set
        guard set.isPersonal else { return nil }
        var rows = try RowCursor(list, selection)
        var renderer = PayloadRenderer(set, layout: list.layout)
        var digits = TokenDigits()
        var (seen, candidates): (UInt64, UInt64) = (0, 0)
        while seen < rowsLimit, candidates < searchLimit, let row = try rows.next() {
            seen += 1
            guard rows.disposition == .send else { continue }
            candidates += 1
            guard digits.write({ rows.reader.readToken(rows.reader.field(0), into: &$0) }) == nil,
                case .made(let shape) = renderer.render(rows.reader)
            else { continue }
            return FirstRow(
                line: row.line, template: Int(shape.template),
                payload: renderer.lastPayload(shape), token: ShortenedToken([UInt8](digits.bytes)))
        }
        return nil
    }

    /// The payload with the row's token shortened.
    var shownPayload: [UInt8] { token.shortened(in: payload) }

    /// Holds the payload against Apple's rules.
    ///
    /// - Returns: What is strange about it, a line each.
    /// - Throws: If it must not be sent.
    func warnings(_ plan: Plan) throws(BroadsideError) -> [String] {
        guard plan.payloads.set.templates[template].isPersonal else { return [] }
        let isLegacy = plan.options.wireProtocol == .binary
        let bytes = payload.rawSpan
        let type = isLegacy ? PayloadLint.legacyPushType(bytes) : plan.options.pushType
        let location = "\(plan.payloads.names[template]), filled in by line \(line) of the list"
        var warnings: [String] = []
        for finding in PayloadLint.findings(bytes, pushType: type) {
            let message = "\(location): \(finding.problem.message)"
            if finding.isError { throw .request(message) }
            // What the template says by itself was told.
            guard !plan.payloads.warningTexts.contains(finding.problem.message) else { continue }
            warnings.append(message)
        }
        return warnings
    }
}
