import BroadsideHygiene
import BroadsideRows
import BroadsideSupport

/// Start of a list's file, which determines its format and columns.
struct ListHeader {
    /// Name of the list's file; empty if it has none.
    let fileName: String
    let bytes: ListBytes
    /// Whether the file is a ledger's copy of standard input.
    var isSpooled = false
    var lineEnds = LineEnds.lineFeeds
    /// Token column given by the user, if any.
    let tokenColumn: String?
    /// Whether the option `--format` of the command applies to the list.
    var hasFormatOption = true
    /// Columns whose values the campaign uses. Each has the location that requires it: an option,
    /// or a location in a file.
    var wanted: [(name: String, location: String)] = []

    /// Number of bytes within which a header must end. It limits the search for the end of unclosed
    /// quotes.
    static let searchLimit: UInt64 = 2 << 20

    var name: InputName { isSpooled ? .standardInput : bytes.name }

    /// The file, for advice on commands that convert it to a list.
    var command: ListCommand {
        ListCommand(file: fileName, compression: bytes.compression)
    }

    /// Returns the layout of rows: the columns of the token and of other wanted values.
    func layout(
        format given: TokenListFormat?, otherColumns: [String]
    ) throws(BroadsideError) -> RowLayout {
        let token = tokenColumn ?? TokenList.defaultTokenColumn
        let names = [token] + otherColumns
        var known: Set<String> = []
        if let twice = names.first(where: { !known.insert($0).inserted }) {
            let start = wanted.last { $0.name == twice }.map { "\($0.location): " } ?? ""
            throw .request(
                "\(start)column '\(twice)' is named for two purposes: name different columns")
        }
        var beginning = try bytes.readBeginning()
        let named = given?.format ?? ListFormat.named(fileName)
        try refuseForeign(beginning, format: named, token: token)
        if lineEnds.areReturns {
            try lineEnds.replace(&beginning, bytes, next: UInt64(beginning.count))
        }
        try refuseTokensOnOneLine(beginning)
        var format = named ?? ListFormat.detect(firstBytes: beginning, tokenColumn: token)
        if format == .csv { format = ListFormat.separator(beginning, tokenColumn: token) }
        // A row without the token's column is invalid. The list is valid even so.
        if format.namesColumnsInEachRow, let layout = try? RowLayout(format: format, names: names) {
            return layout
        }
        guard format.hasHeader else {
            if given == nil { try refuseTitles(beginning, token: token) }
            guard let missing = otherColumns.first ?? (token == "token" ? nil : token) else {
                return .lines
            }
            try refuseEmpty(beginning)
            // A file that is not a list of tokens has no columns for that reason.
            if !isReceipts { try TokenList(linesOf: self).inspect() }
            if let wanted = wanted.first(where: { $0.name == otherColumns.first }) {
                throw .request(
                    "\(wanted.location): there is no column '\(wanted.name)', "
                        + "because \(name) is a plain list of lines, which has only "
                        + "the token: use a list with a header")
            }
            throw .request(
                name,
                " is a list of lines, without a column '\(missing)': "
                    + (hasFormatOption
                        ? "add --format csv or --format tsv"
                        : "let the file's name end in .csv or .tsv") + " if it has columns")
        }
        try refuseEmpty(beginning)
        guard let header = try header(format) else {
            throw .request(name, " has no header: write the names of the columns on its first line")
        }
        guard !OverwrittenRows.isOverwritten(header.rawSpan, in: format) else {
            throw .request(
                name,
                " has zero bytes in its header, so the file is damaged: replace it with an intact copy"
            )
        }
        do {
            return try RowLayout(format: format, names: names, header: header)
        } catch {
            switch error {
            case .missing(token, _), .malformed:
                try refuseJSON(beginning, token: token)
                try refuseJSONLines(beginning)
                try refuseTitles(beginning, token: token)
                try refuseDrawnTable(beginning)
                try refuseLikelyTitles(beginning)
            case .missing, .ambiguous, .twice: break
            }
            throw refusal(error, format: format, token: token)
        }
    }

    /// Returns the error for missing columns, with advice.
    private func refusal(
        _ error: RowLayout.HeaderError, format: ListFormat, token: String
    ) -> BroadsideError {
        switch error {
        case .malformed:
            return .request(
                name,
                ": its header is malformed: text follows a closing quote, or a quote is not "
                    + "closed: correct it")
        case .twice(let column):
            return .request(
                name, " has two columns named '\(tokenExcerpt(column.utf8))': rename one")
        case .ambiguous(let wanted, let columns):
            return .request(
                "\(location(of: wanted, token: token)) several columns that match '\(printable(wanted))' "
                    + "(\(shownColumns(columns))): write the name as in the header")
        case .missing(let wanted, let columns):
            if let location = columns.firstIndex(where: resemblesToken) {
                return .request(headless(columns, tokenIndex: location, format))
            }
            // A name contains the separator only if it is in quotes.
            if columns.count == 1, format != .tsv, columns[0].contains(where: ",;".contains) {
                return .request(
                    name,
                    " has its whole header in one pair of quotes: remove the quotes around each "
                        + "line, such as \(command.filter(ListCommand.withoutOuterQuotes))")
            }
            let nearest =
                nearestName(to: wanted, among: columns) ?? tokenColumn(wanted, columns, token)
            let missing =
                isReceipts && tokenColumn == nil && wanted == token
                ? "neither a column apns_id nor a column token"
                : "no column '\(printable(wanted))'"
            let shown = nearest.map(shownColumn)
            let separator = separatorAdvice(columns, wanted: wanted)
            let isHidden =
                separator == nil
                && nearest.map { ForeignText.escapedName($0) != $0 } ?? false
            let guess =
                isHidden || separator != nil ? "" : shown.map { "did you mean '\($0)'? " } ?? ""
            let advice =
                isHidden
                ? ": remove the invisible characters from the name \(shown ?? "")"
                : separator ?? (wanted == token ? tokenColumnAdvice : "")
            return .request(
                "\(location(of: wanted, token: token)) \(missing): \(guess)its "
                    + "columns are \(shownColumns(columns))\(advice)")
        }
    }

    /// Whether the option `--receipts` of `report` names the file. The rows of such a file may have
    /// apns-ids in place of tokens.
    var isReceipts: Bool { name.isOf(option: "receipts") }

    /// Options that name the column of tokens.
    var columnOptions: String { isReceipts ? "--id-column or --token-column" : "--token-column" }

    /// Advice for a missing token column. `--token-column` applies to the list of `--tokens`, not
    /// to a suppression list.
    private var tokenColumnAdvice: String {
        name.isOf(option: "suppress")
            ? ": name its token column '\(TokenList.defaultTokenColumn)', or as it is named in "
                + "--tokens"
            : ": name one with \(columnOptions)"
    }

    /// Returns the only column whose name contains `token`. Returns nil if no column or several
    /// columns have such a name, or if the missing column is not the token column.
    private func tokenColumn(_ wanted: String, _ columns: [String], _ token: String) -> String? {
        guard wanted == token else { return nil }
        let named = columns.filter { $0.lowercased().contains("token") }
        return named.count == 1 ? named[0] : nil
    }

    /// Returns the start of a message about a column. It names the list and, if known, the option
    /// or file that requires the column.
    private func location(of column: String, token: String) -> String {
        guard let wanted = wanted.first(where: { $0.name == column && column != token }) else {
            return "\(name) has"
        }
        return "\(wanted.location): \(name) has"
    }

    /// Returns the error for a list without a header, whose first line is a row. The message
    /// contains no token.
    private func headless(_ columns: [String], tokenIndex: Int, _ format: ListFormat) -> String {
        if isReceipts { return headlessReceipts(columns, keyIndex: tokenIndex, format) }
        let start = "\(name) has no header: the first line looks like a token"
        let tokens = columns.count { ForeignToken.countTokens($0.utf8) == 1 }
        if tokens > 1 {
            return
                "\(name) has no header, and \(tokens) fields on the first line "
                + "look like tokens: add a first line that names the columns, or, "
                + "if all fields are tokens, write one per line, such as "
                + "\(command.filter(ListCommand.onePerLine, to: "txt"))"
        }
        guard columns.count > 1 else {
            return
                "\(start): add a first line with the word token, or "
                + TokenListFormat.lines.advice(hasOption: hasFormatOption)
        }
        let names = columns.indices.map { $0 == tokenIndex ? "token" : "column\($0 + 1)" }
        return
            "\(start) (in column \(tokenIndex + 1)): add a first line that names the columns, such "
            + "as \(Self.firstLine(names, format))"
    }

    /// Returns the error for receipts without a header, whose first line is a row. The message
    /// contains no token.
    private func headlessReceipts(
        _ columns: [String], keyIndex: Int, _ format: ListFormat
    ) -> String {
        let isID = ForeignToken.detect(Array(columns[keyIndex].utf8)[...]) == .uuid
        let timeIndex = columns.firstIndex { WrittenTime(Array($0.utf8).rawSpan) != nil }
        var names = columns.indices.map { index in
            index == keyIndex
                ? isID ? "apns_id" : "token" : index == timeIndex ? "time" : "column\(index + 1)"
        }
        if names.count == 1 { names.append("time") }
        return
            "\(name) has no header: the first line has \(isID ? "an apns-id" : "a token") (in column "
            + "\(keyIndex + 1)): add a first line that names the columns, such as "
            + "\(Self.firstLine(names, format))"
    }

    /// Formats the first columns of a header for a message.
    private static func firstLine(_ names: [String], _ format: ListFormat) -> String {
        let separator = Unicode.Scalar(format.separator ?? UInt8(ascii: ","))
        return names.prefix(8).joined(separator: format == .tsv ? " (with tabs) " : "\(separator)")
    }

    /// Returns advice for a header whose columns have another separator. Such a header has one
    /// column, or one of its columns contains the wanted name between tabs.
    private func separatorAdvice(_ columns: [String], wanted: String) -> String? {
        let hasTabs = columns.contains { column in
            column.split(separator: "\t").contains { $0.lowercased() == wanted.lowercased() }
        }
        if hasTabs || columns.count == 1 && columns[0].contains("\t") {
            let advice = TokenListFormat.tsv.advice(hasOption: hasFormatOption)
            return ", with tabs between them: \(advice)"
        }
        guard columns.count == 1 else { return nil }
        if columns[0].contains("|") {
            return ", with '|' between them: \(ForeignToken.tableAdvice)"
        }
        let isCSV = columns[0].contains(",") || columns[0].contains(";")
        let advice = TokenListFormat.csv.advice(hasOption: hasFormatOption)
        return isCSV ? ", which are not tabs: \(advice)" : nil
    }

    /// Returns the text of the header; nil if the list ends before it.
    private func header(_ format: ListFormat) throws(BroadsideError) -> [UInt8]? {
        var cutter = RowSplitter(format: format, pool: ChunkPool(limit: 2), rowLimit: 1)
        var location: UInt64 = 0
        while cutter.header == nil {
            let piece = try read(at: location)
            if piece.isEmpty || location > Self.searchLimit {
                _ = cutter.finish()
                break
            }
            location += UInt64(piece.count)
            var offset = 0
            if case .faulty = cutter.next(piece.rawSpan, at: &offset) { break }
        }
        if let fault = cutter.fault { throw .faultyList(name, ": \(fault.message)") }
        guard !cutter.isHeaderOverlong, cutter.header != nil || location <= Self.searchLimit else {
            throw .request(
                name,
                ": its header is longer than \(RowChunk.rowByteCountMax) bytes: is it the "
                    + "right file?")
        }
        return cutter.header
    }

    private func read(at offset: UInt64) throws(BroadsideError) -> [UInt8] {
        var buffer = ReadBuffer(byteCount: RowChunk.capacity)
        // SAFETY: `read` sets bytes from the start of the room that it is given, and returns how
        // many.
        _ = try unsafe buffer.fill(limit: .max) { (room) throws(BroadsideError) in
            unsafe try lineEnds.read(bytes, at: offset, into: room)
        }
        return [UInt8](buffer.bytes)
    }
}
