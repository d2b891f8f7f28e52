import BroadsideAPNs
import BroadsideLists
import BroadsidePayloads
import BroadsideSupport

/// The first row that a run sends, with its payload. Some errors of a template appear only in the
/// payload of a row.
struct FirstRow {
    /// Line of the list on which the row begins.
    let line: UInt64
    /// Index of the row's payload template.
    let template: Int
    let payload: [UInt8]
    private let token: ShortenedToken

    /// Maximum number of sendable rows that the search for the first row checks.
    static let searchLimit: UInt64 = 1000
    /// Maximum number of rows that the search for the first row reads, including skipped rows.
    private static let rowsLimit: UInt64 = 10_000_000

    /// - Returns: nil if all rows have the same payload, or none of the first rows can be sent.
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

    /// Payload with the row's token shortened.
    var shownPayload: [UInt8] { token.shortened(in: payload) }

    /// Checks the payload against Apple's rules.
    ///
    /// - Returns: Warnings, one line each.
    /// - Throws: If the payload must not be sent.
    func warnings(_ plan: Plan) throws(BroadsideError) -> [String] {
        guard plan.payloads.set.templates[template].isPersonal else { return [] }
        let isLegacy = plan.options.wireProtocol == .binary
        let bytes = payload.rawSpan
        let type = isLegacy ? PayloadLint.legacyPushType(bytes) : plan.options.pushType
        let location = "\(plan.payloads.names[template]), filled in by line \(line) of the list"
        var warnings: [String] = []
        for finding in PayloadLint.findings(bytes, pushType: type, isFilledIn: true) {
            let message = "\(location): \(finding.problem.message)"
            if finding.isError { throw .request(message) }
            // Skips warnings about the template itself, which were printed already.
            guard !plan.payloads.warningTexts.contains(finding.problem.message) else { continue }
            warnings.append(message)
        }
        return warnings
    }
}
