import BroadsidePayloads
import BroadsideRows
import BroadsideSupport

extension FuzzTarget {
    /// A payload template, a line feed of its own behind it, and a row of JSON Lines: what comes of
    /// both is a JSON text, however odd the row's values are.
    static let payloadTemplate = FuzzTarget(name: "payload-template") { bytes in
        let parts = bytes.split(separator: 0, maxSplits: 1, omittingEmptySubsequences: false)
        let payload = Array(parts[0])
        guard PayloadCheck.syntaxProblem(payload.span.bytes) == nil else { return }
        let template: PayloadTemplate
        do throws(PayloadCheck.Problem) {
            template = try PayloadTemplate(payload.span.bytes)
        } catch {
            precondition((error.line ?? 1) >= 1 && (error.column ?? 1) >= 1)
            return
        }
        precondition(template.uses.count <= PayloadTemplate.placeholderLimit)
        guard template.isPersonal else {
            precondition(
                PayloadCheck.syntaxProblem(template.constantPayload.span.bytes) == nil,
                "a payload without placeholders became nonsense")
            return
        }
        let row = parts.count == 2 ? Array(parts[1]) : []
        fill(template, row: row.map { $0 == 0x0a ? 0x20 : $0 } + [0x0a])
    }

    private static let payloadLimit = 4096

    private static func fill(_ template: PayloadTemplate, row: [UInt8]) {
        let columns = template.uses.map(\.column)
        guard
            let layout = try? RowLayout(
                format: .jsonl, names: ["token"] + columns.filter { $0 != "token" })
        else { preconditionFailure("JSON Lines has no header to lack a column") }
        let pool = ChunkPool(limit: 2)
        var cutter = RowSplitter(format: .jsonl, pool: pool)
        var offset = 0
        var first: RowChunk?
        if case .chunk(let chunk) = cutter.next(row.span.bytes, at: &offset) { first = chunk }
        guard let chunk = first ?? cutter.finish() else { return }
        defer { pool.giveBack(chunk) }
        let set = PayloadSet(
            templates: [template], choice: nil, collapse: nil, limit: payloadLimit)
        var renderer = PayloadRenderer(set, layout: layout)
        var reader = RowReader(layout: layout)
        reader.open(chunk)
        while reader.next() != nil {
            guard case .made(let shape) = renderer.render(reader) else { continue }
            let count = Int(shape.payloadCount)
            precondition(count <= payloadLimit)
            precondition(
                renderer.lastPieces.byteCount <= PayloadRenderer.piecesLimit(payloadLimit))
            // Memory of exactly this size, so that a write beyond it can be noticed.
            let room = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 1)
            defer { room.deallocate() }
            // A payload has a byte at least, and so have its pieces.
            guard let target = room.baseAddress else { continue }
            let pieces = [UInt8](renderer.lastPieces)
            pieces.withUnsafeBytes { pieces in
                renderer.writePayload(shape, pieces: pieces, to: target)
            }
            precondition(
                PayloadCheck.syntaxProblem(Array(room).span.bytes) == nil,
                "a row's payload is not JSON")
        }
        _ = reader.close()
    }
}
