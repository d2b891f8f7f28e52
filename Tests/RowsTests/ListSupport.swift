@testable import BroadsideRows

/// What a chunk says of itself, and its stored bytes.
struct ChunkFacts: Equatable {
    var start: ListPosition
    var end: ListPosition
    var hash: UInt64
    var isOverlong: Bool
    var bytes: [UInt8]
}

func array(_ span: RawSpan) -> [UInt8] {
    span.withUnsafeBytes { Array($0) }
}

func facts(_ chunk: RowChunk) -> ChunkFacts {
    ChunkFacts(
        start: chunk.start, end: chunk.end, hash: chunk.hash, isOverlong: chunk.isOverlong,
        bytes: array(chunk.bytes))
}

/// Cuts a whole list whose bytes arrive in the given pieces, or what comes before a fault; `visit` sees
/// each chunk.
func cut(
    _ cutter: inout RowSplitter, pool: ChunkPool, pieces: [[UInt8]], visit: (RowChunk) -> Void
) {
    for piece in pieces {
        var offset = 0
        read: while true {
            switch cutter.next(piece.span.bytes, at: &offset) {
            case .chunk(let chunk):
                visit(chunk)
                pool.giveBack(chunk)
            case .needsInput:
                precondition(offset == piece.count)
                break read
            case .poolEmpty: preconditionFailure("all chunks were given back")
            case .faulty: return
            }
        }
    }
    if let chunk = cutter.finish() {
        visit(chunk)
        pool.giveBack(chunk)
    }
}

func split(_ bytes: [UInt8], pieceSize: Int) -> [[UInt8]] {
    var pieces: [[UInt8]] = []
    var offset = 0
    while offset < bytes.count {
        let count = min(pieceSize, bytes.count - offset)
        pieces.append(Array(bytes[offset..<offset + count]))
        offset += count
    }
    return pieces
}

func cut(
    _ list: [UInt8], format: ListFormat = .lines, rowLimit: Int = .max, pieceSize: Int = .max,
    start: ListPosition = ListPosition()
) -> [ChunkFacts] {
    let pool = ChunkPool(limit: 2)
    var cutter = RowSplitter(format: format, pool: pool, start: start, rowLimit: rowLimit)
    let pieces = split(Array(list.dropFirst(Int(start.byteOffset))), pieceSize: pieceSize)
    var chunks: [ChunkFacts] = []
    cut(&cutter, pool: pool, pieces: pieces) { chunks.append(facts($0)) }
    return chunks
}

/// A row as the tests compare it: its number, its line, its fields' texts (nil where missing).
struct RowFacts: Equatable {
    var number: UInt64
    var line: UInt64
    var fields: [String?]
}

/// All rows of a list with the fields of `columns`.
func rows(
    _ list: String, format: ListFormat = .lines, columns: [String] = ["token"],
    rowLimit: Int = .max, pieceSize: Int = .max
) throws -> [RowFacts] {
    let pieces = split(Array(list.utf8), pieceSize: pieceSize)
    let pool = ChunkPool(limit: 2)
    // The header is known once the first chunk comes; here a first pass reads it.
    var first = RowSplitter(format: format, pool: pool)
    cut(&first, pool: pool, pieces: pieces) { _ in }
    let layout = try RowLayout(format: format, names: columns, header: first.header)
    var reader = RowReader(layout: layout)
    var cutter = RowSplitter(format: format, pool: pool, rowLimit: rowLimit)
    var result: [RowFacts] = []
    cut(&cutter, pool: pool, pieces: pieces) { chunk in
        reader.open(chunk)
        var count = 0
        while let row = reader.next() {
            var texts: [String?] = []
            for index in 0..<columns.count {
                let field = reader.field(index)
                let text = String(decoding: array(reader.text(field)), as: UTF8.self)
                texts.append(field.form == .missing ? nil : text)
            }
            result.append(RowFacts(number: row.number, line: row.line, fields: texts))
            count += 1
        }
        precondition(count == chunk.rowCount, "the reader and the cutter disagree")
        _ = reader.close()
    }
    return result
}
