import Campaign

/// How a token list is written, as options name it.
public enum TokenListFormat: String, Sendable, CaseIterable {
    /// One token a line.
    case lines
    /// Comma-separated values with a header (RFC 4180).
    case csv
    /// The same with tabs.
    case tsv
    /// A JSON object a line.
    case jsonl

    var listFormat: ListFormat {
        switch self {
        case .lines: .lines
        case .csv: .csv
        case .tsv: .tsv
        case .jsonl: .jsonl
        }
    }
}

/// The beginning of a list's file: what it says about format and columns.
struct ListHeader {
    /// What its file is called; empty where it has no name.
    let fileName: String
    let bytes: ListBytes
    /// The token's column where the user named one.
    let tokenColumn: String?
    /// For columns that a campaign fills in: the option or the place in a file that asks for each.
    var wanted: [(name: String, place: String)] = []

    /// Octets in which a header must end: one whose quotes never close is not looked for further.
    static let searchLimit: UInt64 = 1 << 20

    private var name: String { bytes.name }

    /// Where each row has its token, and the other columns that are wanted.
    func layout(
        format given: TokenListFormat?, otherColumns: [String]
    ) throws(BroadsideError) -> RowLayout {
        let token = tokenColumn ?? TokenList.defaultTokenColumn
        let names = [token] + otherColumns
        guard Set(names).count == names.count else {
            throw .request("column '\(token)' is named for two purposes: name different columns")
        }
        let beginning = try read(at: 0)
        if beginning.starts(with: [0xff, 0xfe]) || beginning.starts(with: [0xfe, 0xff]) {
            throw .request(
                "\(name) is UTF-16 text: write it as UTF-8, as iconv -f UTF-16 -t UTF-8 does")
        }
        let format =
            given?.listFormat
            ?? ListFormat.detect(
                fileName: fileName, firstOctets: beginning, tokenColumn: token)
        // Each row names its own columns: one that lacks the token's is invalid by itself.
        if format == .jsonl, let layout = try? RowLayout(format: format, names: names) {
            return layout
        }
        guard format.hasHeader else {
            if let wanted = wanted.first(where: { $0.name == otherColumns.first }) {
                throw .request(
                    "\(wanted.place): there is no column '\(wanted.name)', as \(name) is a plain "
                        + "list of lines and has only the token: give a list with a header")
            }
            if let column = otherColumns.first ?? (token == "token" ? nil : token) {
                throw .request(
                    "\(name) is a list of lines, without a column '\(column)': add "
                        + "--format csv or --format tsv if it has columns")
            }
            return .lines
        }
        guard let header = try header(format) else {
            throw .request("\(name) has no header: name the columns on its first line")
        }
        do {
            return try RowLayout(format: format, names: names, header: header)
        } catch {
            let columns = error.columns.joined(separator: ", ")
            if let wanted = wanted.first(where: { $0.name == error.name && $0.name != token }) {
                let nearest = NearestName.of(error.name, among: error.columns)
                throw .request(
                    "\(wanted.place): \(name) has no column '\(error.name)': "
                        + (nearest.map { "did you mean \($0)? " } ?? "")
                        + "its columns are \(columns)")
            }
            throw .request(
                "\(name) has no column '\(error.name)': its columns are \(columns)"
                    + (Self.separatorAdvice(error.columns)
                        ?? (error.name == token ? ": name one with --token-column" : "")))
        }
    }

    /// A single column that holds a separator was written with another one.
    private static func separatorAdvice(_ columns: [String]) -> String? {
        guard columns.count == 1 else { return nil }
        if columns[0].contains("\t") { return ", with tabs between them: add --format tsv" }
        guard let separator = [";", "|"].first(where: { columns[0].contains($0) }) else {
            return columns[0].contains(",") ? ", with commas between them: add --format csv" : nil
        }
        return ", with '\(separator)' between them: write the list with commas, or with tabs as tsv"
    }

    /// The header's text; nil where the list ends before it.
    private func header(_ format: ListFormat) throws(BroadsideError) -> [UInt8]? {
        var cutter = RowCutter(format: format, pool: ChunkPool(limit: 2), rowLimit: 1)
        var place: UInt64 = 0
        while cutter.header == nil {
            let piece = try read(at: place)
            if piece.isEmpty || place > Self.searchLimit {
                _ = cutter.finish()
                break
            }
            place += UInt64(piece.count)
            var offset = 0
            _ = unsafe cutter.next(piece.span.bytes, at: &offset)
        }
        guard !cutter.isHeaderOverlong, cutter.header != nil || place <= Self.searchLimit else {
            throw .request(
                "\(name): its header is longer than \(RowChunk.capacity) bytes: is it the "
                    + "right file, with all its quotes closed?")
        }
        return cutter.header
    }

    private func read(at offset: UInt64) throws(BroadsideError) -> [UInt8] {
        let room = UnsafeMutableRawBufferPointer.allocate(
            byteCount: RowChunk.capacity, alignment: 64)
        defer { unsafe room.deallocate() }
        let count = try unsafe bytes.read(at: offset, into: room)
        return unsafe Array(room[..<count])
    }
}
