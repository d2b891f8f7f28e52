import BroadsidePrimitives
import BroadsideSupport

/// A row that names columns, because lists were joined with their headers.
public struct RepeatedHeader: Sendable, Equatable {
    /// Line of the row, from 1.
    public var line: UInt64
    /// The names in the row.
    public var columns: [String]
    /// Whether each column has the same position as in the list's header. Otherwise, later rows
    /// have their values in other columns.
    public var isSame: Bool
    /// Whether a row is on the same line, because files were joined without a line break.
    public var isJoined = false
}

/// Headers among the rows of a list, and other signs of lists that were joined.
public struct RepeatedHeaders: Sendable, Equatable {
    /// Number of headers.
    public private(set) var count: UInt64 = 0
    /// The first header among the rows; nil if there is none.
    public private(set) var first: RepeatedHeader?
    /// The first header whose columns differ from those of the list's header; nil if there is none.
    public private(set) var other: RepeatedHeader?
    /// Number of lines with several JSON objects, because files were joined without a line break.
    public private(set) var joinedLineCount: UInt64 = 0
    /// The first line with several JSON objects; nil if there is none.
    public private(set) var firstJoinedLine: UInt64?

    /// Creates a count of no headers.
    public init() {}

    /// If the last row of `reader` is a header, or several JSON objects, counts it. This row must
    /// have no token.
    public mutating func take(_ reader: borrowing RowReader) {
        if let line = reader.joinedLine {
            joinedLineCount += 1
            firstJoinedLine = firstJoinedLine ?? line
            return
        }
        guard let header = reader.repeatedHeader else { return }
        count += 1
        first = first ?? header
        if !header.isSame { other = other ?? header }
        assert(other == nil || count > 0, "the header with other columns is counted")
    }
}

extension RowReader {
    /// The header in the row that was read last; nil if the row is not a header. Allocates nothing
    /// for a row whose text in the token's column is not a column's name.
    ///
    /// A row is a header in two cases: the field in the token's column is this column's name, or
    /// each field is the name of some column. A row that differs from the list's header must also
    /// contain the names of two columns. A single name may be a placeholder for a token, as in
    /// `token,en`.
    ///
    /// A malformed row may have a header on its line, after its last field.
    public var repeatedHeader: RepeatedHeader? {
        let token = field(0)
        if token.form == .malformed { return joinedHeader(text(token)) }
        guard token.form == .plain, columns.mayBeHeader(text(token)) else { return nil }
        return header(at: token)
    }

    /// The line of the row that was read last, if it has several JSON objects; nil for any other
    /// row.
    fileprivate var joinedLine: UInt64? {
        let row = field(0)
        guard columns.format == .jsonl, row.form == .unusable else { return nil }
        let text = self.text(row)
        var tokenizer = JSONTokenizer()
        do throws(JSONError) {
            guard try tokenizer.next(in: text)?.kind == .objectStart else { return nil }
            while try tokenizer.next(in: text) != nil {}
            return nil
        } catch {
            let isNext =
                error.code == .trailingText && text.byte(at: error.offset) == UInt8(ascii: "{")
            return isNext ? line - 1 : nil
        }
    }

    /// The header on the line that contains a field; nil if this line is not a header.
    @inline(never)
    private func header(at field: Field) -> RepeatedHeader? {
        let all = text(Field(start: 0, count: end, form: .plain))
        let lineFeed = UInt8(ascii: "\n")
        var (start, stop) = (field.start, field.start + field.count)
        while start > 0, all.byte(at: start - 1) != lineFeed { start -= 1 }
        while stop < end, all.byte(at: stop) != lineFeed { stop += 1 }
        var line = [UInt8](all.extracting(start..<stop))
        // The second of two joined files may begin with a byte order mark.
        let mark = ListFormat.byteOrderMark
        if line.starts(with: mark) { line.removeFirst(mark.count) }
        let names = RowLayout.columns(line, separator: separator)
        let found = names.map { $0.lowercased() }
        let (header, token) = (columns.header, columns.tokenColumn)
        guard
            found.indices.contains(token) && found[token] == header[token]
                || found.allSatisfy({ $0.isEmpty || header.contains($0) })
        else { return nil }
        let isSame =
            found.count <= header.count
            && zip(found, header).allSatisfy { $0.isEmpty || $0 == $1 }
        let known = Set(found).intersection(header).subtracting([""])
        guard isSame || known.count > 1 else { return nil }
        // A header is one line, and `line` is the next one.
        return RepeatedHeader(line: self.line - 1, columns: names, isSame: isSame)
    }

    /// The header after the last field of a row; nil if there is none.
    @inline(never)
    private func joinedHeader(_ row: RawSpan) -> RepeatedHeader? {
        let (header, rowCount) = (columns.header, columns.columnCount)
        guard rowCount > 0 else { return nil }
        var (start, stop) = (row.byteCount, row.byteCount)
        while start > 0, row.byte(at: start - 1) != separator { start -= 1 }
        let quote = UInt8(ascii: "\"")
        if stop - start > 1, row.byte(at: start) == quote { (start, stop) = (start + 1, stop - 1) }
        guard columns.mayBeHeader(row.extracting(start..<stop)) else { return nil }
        let fields = RowLayout.columns([UInt8](row), separator: separator)
        guard fields.count > rowCount else { return nil }
        // The first name follows the row's last field.
        let last = fields[rowCount - 1].filter { $0 != "\"" }
        let first = header.filter { !$0.isEmpty && last.lowercased().hasSuffix($0) }
            .max { $0.count < $1.count }
        guard let first else { return nil }
        let names = [String(last.suffix(first.count))] + fields[rowCount...]
        let found = names.map { $0.lowercased() }
        guard found.contains(header[columns.tokenColumn]), found.allSatisfy(header.contains)
        else { return nil }
        let isSame = found.count <= header.count && zip(found, header).allSatisfy { $0 == $1 }
        return RepeatedHeader(line: line - 1, columns: names, isSame: isSame, isJoined: true)
    }
}
