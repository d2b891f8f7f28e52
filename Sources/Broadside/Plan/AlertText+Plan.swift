import Campaign
import Lists
import Observability

extension AlertText {
    /// What a campaign shows; of a template, what its first row gets, with its token shortened.
    ///
    /// - Returns: nil where that cannot be told.
    init?(_ plan: Plan, _ list: TokenList) {
        let set = plan.payloads.set
        let payload =
            set.isPersonal ? Self.firstPayload(set, list) : set.templates.first?.constantPayload
        guard let payload else { return nil }
        self.init(payload: payload)
        isFirstRows = set.isPersonal
    }

    /// Rows that are looked at for one that can be sent.
    private static let rowsLimit = 100

    private static func firstPayload(_ set: PayloadSet, _ list: TokenList) -> [UInt8]? {
        guard
            let source = try? ListSource(
                list: list, pool: ChunkPool(limit: 3), plan: nil, rowsLimit: nil),
            let chunk = (try? source.next(rowLimit: rowsLimit)) ?? nil
        else { return nil }
        var reader = RowReader(layout: list.layout)
        var renderer = PayloadRenderer(set, layout: list.layout)
        var digits = TokenDigits()
        reader.open(chunk)
        defer { _ = reader.close() }
        while reader.next() != nil {
            guard digits.write({ reader.readToken(reader.field(0), into: &$0) }) == nil else {
                continue
            }
            guard case .made(let shape) = renderer.render(reader) else { continue }
            return ShortenedToken([UInt8](digits.bytes)).shortened(in: renderer.lastPayload(shape))
        }
        return nil
    }
}
