import BroadsideRows

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
