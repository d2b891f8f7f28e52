import BroadsideRows
import BroadsideSupport

extension ListHeader {
    /// Refuses a file that is not a list of rows, and names its kind.
    ///
    /// - Parameters:
    ///   - beginning: The start of the list.
    ///   - format: The format according to the list's name or an option.
    ///   - token: The token column.
    func refuseForeign(
        _ beginning: [UInt8], format: ListFormat?, token: String
    ) throws(BroadsideError) {
        if let kind = ForeignFile.detect(beginning, isDelimited: format?.hasHeader ?? false) {
            if kind == .jsonArray || kind == .jsonDocument {
                try refuseJSON(beginning, token: token)
            }
            if let code = ForeignFile.storageError(beginning) {
                throw .request(
                    name,
                    " is the error \(code) of a storage service, in XML: download the list again")
            }
            throw .request(name, " is \(kind.name): \(kind.remedy(command))")
        }
    }

    /// Refuses a list without any text, such as the output of a command that failed.
    func refuseEmpty(_ beginning: [UInt8]) throws(BroadsideError) {
        let mark = ListFormat.byteOrderMark
        let text = beginning.dropFirst(beginning.starts(with: mark) ? mark.count : 0)
        guard beginning.count < RowChunk.capacity, text.allSatisfy({ $0 <= 0x20 }) else { return }
        // A list of lines or of JSON Lines has no header, so nothing distinguishes a list without
        // opt-outs from a failed export. A table without a header is not a list.
        throw .request(
            name,
            name.isOf(option: "suppress")
                ? " contains no rows, and not even a header, as after an export that failed: if no "
                    + "device opted out, write only the header"
                : " contains no rows: is it the right file?")
    }

    /// Refuses a list with all rows on its first line.
    func refuseTokensOnOneLine(_ beginning: [UInt8]) throws(BroadsideError) {
        let isCut = beginning.count >= RowChunk.capacity
        guard ForeignToken.areOnFirstLine(beginning, isCut: isCut) else { return }
        throw .request(
            name,
            " has several device tokens on the first line: write one per line, such as "
                + command.filter(ListCommand.onePerLine, to: "txt"))
    }

    /// Refuses a JSON document from which rows can be extracted. The error explains how to extract
    /// them.
    func refuseJSON(_ beginning: [UInt8], token: String) throws(BroadsideError) {
        guard let json = ForeignJSON.detect(beginning), json != .other else { return }
        let remedy = json.remedy(
            command, tokenColumn: token, isOnePerLine: ForeignJSON.isOnePerLine(beginning))
        throw .request(name, " is \(json.name): \(remedy)")
    }

    /// Refuses JSON Lines that the list's name or an option declares as a table.
    func refuseJSONLines(_ beginning: [UInt8]) throws(BroadsideError) {
        let mark = ListFormat.byteOrderMark
        let text = beginning.dropFirst(beginning.starts(with: mark) ? mark.count : 0)
        let line = Array(text.prefix { $0 != UInt8(ascii: "\n") })
        guard !JSONKeys.read(line.rawSpan).isEmpty else { return }
        throw .request(
            name,
            " has a JSON object on its first line, not the names of columns: "
                + TokenListFormat.jsonl.advice(hasOption: hasFormatOption))
    }

    /// Refuses a table that is formatted for display, with `|` between its columns.
    func refuseDrawnTable(_ beginning: [UInt8]) throws(BroadsideError) {
        let lines = beginning.split(separator: UInt8(ascii: "\n"), maxSplits: 20).prefix(20)
        guard lines.contains(where: { ForeignToken.detect($0) == .tableRow }) else { return }
        throw .request(
            name, " is a table with '|' between its columns: \(ForeignToken.tableAdvice)")
    }

    /// Refuses a list without a token column on its first line, if the header seems to be on a
    /// later line.
    func refuseLikelyTitles(_ beginning: [UInt8]) throws(BroadsideError) {
        guard let (line, columns) = TitleLines.likelyHeader(beginning) else { return }
        let above = line == 2 ? "the line" : "the \(line - 1) lines"
        throw .request(
            name,
            " seems to have its column names on line \(line) (\(shownColumns(columns))): name one with "
                + "\(columnOptions), and remove \(above) above them, such as "
                + command.filter("tail -n +\(line)"))
    }

    /// Refuses a list with lines above its header.
    func refuseTitles(_ beginning: [UInt8], token: String) throws(BroadsideError) {
        guard let line = TitleLines.headerLine(beginning, tokenColumn: token) else { return }
        let above = line == 2 ? "the line" : "the \(line - 1) lines"
        throw .request(
            name,
            " has its column names on line \(line): remove \(above) above them, such as "
                + command.filter("tail -n +\(line)"))
    }
}
