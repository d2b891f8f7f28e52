import APNs
import Campaign
import Lists
import Support

/// The payload of a list's first row that has one, held against Apple's rules: what a template says
/// only once a row fills it in.
enum FirstPayload {
    /// - Returns: What is strange about it, a line each.
    /// - Throws: Where it must not be sent.
    static func check(_ plan: Plan, _ list: TokenList) throws(BroadsideError) -> [String] {
        let set = plan.payloads.set
        guard plan.options.payloadCheck == .error, set.isPersonal else { return [] }
        let source = try ListSource(
            list: list, pool: ChunkPool(limit: 3), plan: nil, rowsLimit: nil)
        guard let chunk = try source.next(rowLimit: .max) else { return [] }
        var reader = RowReader(layout: list.layout)
        var renderer = PayloadRenderer(set, layout: list.layout)
        reader.open(chunk)
        defer { _ = reader.close() }
        var survey = ListSurvey()
        while let row = reader.next() {
            // A row that is not sent has no payload.
            guard survey.take(row, of: reader) > 0 else { continue }
            guard case .made(let shape) = renderer.render(reader) else { continue }
            let template = Int(shape.template)
            guard set.templates[template].isPersonal else { return [] }
            let payload = renderer.lastPayload(shape)
            let isLegacy = plan.options.wireProtocol == .binary
            let bytes = payload.rawSpan
            let type =
                isLegacy ? PayloadLint.legacyPushType(bytes) : plan.options.pushType
            let place =
                "\(plan.payloads.names[template]), filled in by line \(row.line) of the list"
            var warnings: [String] = []
            for finding in PayloadLint.findings(bytes, pushType: type) {
                let message = "\(place): \(finding.problem.message)"
                if finding.isError { throw .request(message) }
                // What the template says by itself was told.
                guard !plan.payloads.warningTexts.contains(finding.problem.message) else {
                    continue
                }
                warnings.append(message)
            }
            return warnings
        }
        return []
    }
}
