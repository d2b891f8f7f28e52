import Campaign
import Lists
import Observability

extension AlertText {
    /// What a campaign shows; of a template, what its first row gets.
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
        reader.open(chunk)
        defer { _ = reader.close() }
        while reader.next() != nil {
            guard case .made(let shape) = renderer.render(reader) else { continue }
            let count = Int(shape.payloadCount)
            let pieces = unsafe renderer.lastPieces
            // Of a payload without placeholders there are no pieces, and nothing is read of them.
            let nothing = UnsafeMutableRawPointer.allocate(byteCount: 1, alignment: 1)
            defer { unsafe nothing.deallocate() }
            return unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, written in
                // SAFETY: there is room for the shape's count, which is what is written.
                if let base = buffer.baseAddress {
                    unsafe renderer.writePayload(
                        shape, pieces: pieces.baseAddress ?? UnsafeRawPointer(nothing),
                        to: UnsafeMutableRawPointer(base))
                    written = count
                }
            }
        }
        return nil
    }
}
