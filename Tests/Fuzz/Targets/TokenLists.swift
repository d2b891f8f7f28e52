import BroadsideAPNs
import BroadsideHygiene
import BroadsideRows

extension FuzzTarget {
    /// A token list in one of its formats: cutter, readers, and what a token is.
    ///
    /// However the list arrives it is cut alike, and its readers find as many rows as were counted.
    static let tokenList = FuzzTarget(name: "token-list") { bytes in
        var input = FuzzInput(bytes)
        let format = ListFormat.allCases[input.choice(below: ListFormat.allCases.count)]
        let size = 1 + input.choice(below: 64)
        let rowLimit = [Int.max, 1, 7][input.choice(below: 3)]
        let list = input.bytes
        _ = ListFormat.detect(fileName: "", firstBytes: list, tokenColumn: "token")
        let whole = cut(list.pieces(of: 1 << 20), format, rowLimit)
        let torn = cut(list.pieces(of: size), format, rowLimit)
        precondition(whole == torn, "how the list arrived changed how it was cut")
        prune(list, format, size)
    }

    /// A prune without dead tokens copies the list, and finds as many rows and tokens as a survey, or the
    /// same fault.
    private static func prune(_ list: [UInt8], _ format: ListFormat, _ size: Int) {
        guard let layout = layout(of: list, format) else { return }
        let pool = ChunkPool(limit: 2)
        var cutter = RowSplitter(layout: layout, pool: pool)
        var survey = ListSurvey()
        func take(_ chunk: RowChunk) {
            defer { pool.giveBack(chunk) }
            var reader = RowReader(layout: layout)
            reader.open(chunk)
            while let row = reader.next() { _ = survey.take(row, of: reader) }
            _ = reader.close()
        }
        var offset = 0
        while case .chunk(let chunk) = cutter.next(list.span.bytes, at: &offset) { take(chunk) }
        if let chunk = cutter.finish() { take(chunk) }
        var dead = DeadTokens()
        dead.seal()
        var pruner = ListPruner(
            dead: dead, layout: layout, collectsRemoved: false,
            nowMilliseconds: 1_790_000_000_000)
        var kept: [UInt8] = []
        var removed: [UInt8] = []
        var start = 0
        var window = size
        while start < list.count, pruner.fault == nil {
            let end = min(start + window, list.count)
            var piece = Array(list[start..<end])
            let outcome = piece.withUnsafeMutableBytes {
                pruner.process($0, isLast: end == list.count, removed: &removed)
            }
            kept += piece[..<outcome.keptCount]
            start += outcome.consumedCount
            window = outcome.consumedCount == 0 ? window * 2 : size
        }
        let (found, fault) = (pruner.finish(), cutter.fault)
        precondition(found == fault, "a prune finds another fault")
        guard fault == nil else { return }
        precondition(kept == list, "a prune of nothing changed the list")
        precondition(pruner.counts.rows == survey.counts.rows, "a prune finds other rows")
        precondition(pruner.counts.withoutToken == survey.counts.invalid, "and other tokens")
    }

    private static func layout(of list: [UInt8], _ format: ListFormat) -> RowLayout? {
        let pool = ChunkPool(limit: 2)
        var cutter = RowSplitter(format: format, pool: pool, rowLimit: 1)
        var offset = 0
        if case .chunk(let chunk) = cutter.next(list.span.bytes, at: &offset) {
            pool.giveBack(chunk)
        } else if let chunk = cutter.finish() {
            pool.giveBack(chunk)
        }
        return firstColumn(format, cutter.header)
    }

    private static func firstColumn(_ format: ListFormat, _ header: [UInt8]?) -> RowLayout? {
        guard let separator = format.separator else {
            return try? RowLayout(format: format, names: ["token"])
        }
        let columns = RowLayout.columns(header ?? [], separator: separator)
        guard let name = columns.first(where: { !$0.isEmpty }) else { return nil }
        return try? RowLayout(format: format, names: [name], header: header)
    }

    private struct Part: Equatable {
        var start: ListPosition
        var end: ListPosition
        var hash: UInt64
        var rows: [String]
    }

    private struct Cut: Equatable {
        var parts: [Part] = []
        var fault: ListFault?
    }

    private static func cut(
        _ pieces: [[UInt8]], _ format: ListFormat, _ rowLimit: Int
    ) -> Cut {
        let pool = ChunkPool(limit: 2)
        var cutter = RowSplitter(format: format, pool: pool, rowLimit: rowLimit)
        var parts: [Part] = []
        reading: for piece in pieces {
            var offset = 0
            read: while true {
                switch cutter.next(piece.span.bytes, at: &offset) {
                case .chunk(let chunk): parts.append(read(chunk, cutter.header, format, pool))
                case .needsInput: break read
                case .poolEmpty: preconditionFailure("all chunks were given back")
                case .faulty: break reading
                }
            }
            precondition(offset == piece.count)
        }
        if let chunk = cutter.finish() { parts.append(read(chunk, cutter.header, format, pool)) }
        for (part, next) in zip(parts, parts.dropFirst()) {
            precondition(part.end.row == next.start.row, "row numbers have a gap")
            precondition(part.end.byteOffset <= next.start.byteOffset, "chunks overlap")
        }
        return Cut(parts: parts, fault: cutter.fault)
    }

    private static func read(
        _ chunk: RowChunk, _ header: [UInt8]?, _ format: ListFormat, _ pool: ChunkPool
    ) -> Part {
        var part = Part(start: chunk.start, end: chunk.end, hash: chunk.hash, rows: [])
        let rowCount = chunk.rowCount
        defer { pool.giveBack(chunk) }
        var names = ["token", "name"]
        if let separator = format.separator {
            // The header's own first two names, so that columns are found whatever they are called.
            names = []
            for name in RowLayout.columns(header ?? [], separator: separator)
            where names.count < 2 && !name.isEmpty && !names.contains(name) { names.append(name) }
        }
        guard !names.isEmpty,
            let layout = try? RowLayout(format: format, names: names, header: header)
        else { return part }
        var reader = RowReader(layout: layout)
        var survey = ListSurvey()
        var count = 0
        reader.open(chunk)
        while let row = reader.next() {
            precondition(row.number == chunk.start.row + UInt64(count))
            precondition(row.line >= chunk.start.line && row.line < max(chunk.end.line, 1))
            count += 1
            let digits = survey.take(row, of: reader)
            precondition(digits <= TokenText.maximumDigitCount && digits.isMultiple(of: 2))
            for index in layout.names.indices {
                let field = reader.field(index)
                part.rows.append("\(row.line) \(field.form) \(reader.value(field)) \(digits)")
            }
        }
        _ = reader.close()
        precondition(count == rowCount, "\(count) rows of \(rowCount)")
        return part
    }
}
