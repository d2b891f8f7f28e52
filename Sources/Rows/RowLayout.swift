import BroadsideSupport

/// The wanted columns of a list and their positions in each row.
public struct RowLayout: Sendable, Equatable {
    /// Format of the list.
    public let format: ListFormat
    /// The names of the wanted columns, without duplicates. Field `i` of a row is the column
    /// `names[i]`.
    public let names: [String]
    /// For delimited formats, the position of each wanted column in a row; otherwise empty.
    let columnIndices: [Int]
    /// For delimited formats, the names in the header, in lower case; otherwise empty.
    let header: [String]
    /// Requested names that differ only in case from an earlier requested name. Both names mean the
    /// same column. The value is the index of the earlier name's field.
    private let aliases: [String: Int]

    /// Layout of a list without columns: field 0 is the whole line.
    public static var lines: RowLayout {
        RowLayout(format: .lines, names: ["token"], columnIndices: [])
    }

    /// Finds the columns `names` in a list.
    ///
    /// A column is found by its exact name. If there is none, case is ignored, as long as only one
    /// column matches. In JSON Lines, which have no header, keys must match exactly.
    ///
    /// - Parameters:
    ///   - names: Distinct names. For `lines` only the first name is used, for the whole line.
    ///   - header: Text of the header as `RowSplitter` returns it, for delimited formats.
    /// - Throws: The first error in the header.
    public init(
        format: ListFormat, names: [String], header: [UInt8]? = nil
    ) throws(HeaderError) {
        precondition(!names.isEmpty && Set(names).count == names.count, "names are distinct")
        guard let separator = format.separator else {
            self.init(
                format: format, names: format == .lines ? [names[0]] : names, columnIndices: [])
            return
        }
        let header = header ?? []
        guard RowLayout.isWellFormed(header, format) else { throw .malformed }
        let columns = RowLayout.columns(header, separator: separator)
        var known: Set<String> = []
        for column in columns where !column.isEmpty && !known.insert(column).inserted {
            throw .twice(column)
        }
        var columnIndices: [Int] = []
        var kept: [String] = []
        var aliases: [String: Int] = [:]
        for name in names {
            let index = try RowLayout.index(of: name, in: columns)
            if let known = columnIndices.firstIndex(of: index) {
                aliases[name] = known
            } else {
                columnIndices.append(index)
                kept.append(name)
            }
        }
        self.init(
            format: format, names: kept, columnIndices: columnIndices,
            header: columns.map { $0.lowercased() }, aliases: aliases)
    }

    private init(
        format: ListFormat, names: [String], columnIndices: [Int], header: [String] = [],
        aliases: [String: Int] = [:]
    ) {
        self.format = format
        self.names = names
        self.columnIndices = columnIndices
        self.header = header
        self.aliases = aliases
    }

    /// For delimited formats, the number of columns of the header; otherwise 0. A row with more
    /// columns is malformed.
    var columnCount: Int { header.count }

    /// Index of the token's column in the header; nil for a format without header.
    public var tokenIndex: Int? { columnIndices.first }

    /// Criteria by which a line inside quotes is recognized as a row; nil if no field can span
    /// lines.
    public var shape: RowShape? {
        guard format.quotesSpanLines, let separator = format.separator else { return nil }
        return RowShape(
            separator: separator, tokenIndex: columnIndices[0], columnCount: columnCount)
    }

    /// Index of the field with a requested name; nil if the name was not requested.
    public func field(named name: String) -> Int? {
        names.firstIndex(of: name) ?? aliases[name]
    }

    /// Reason why columns are not found in a header.
    public enum HeaderError: Error, Equatable {
        /// The header has no column of this name. `columns` are the names in the header.
        case missing(String, columns: [String])
        /// Several columns match the name if case is ignored.
        case ambiguous(String, columns: [String])
        /// Two columns have this name.
        case twice(String)
        /// The header breaks the rules of RFC 4180.
        case malformed
    }

    private static func index(of name: String, in columns: [String]) throws(HeaderError) -> Int {
        if let index = columns.firstIndex(of: name) { return index }
        let lower = name.lowercased()
        let found = columns.indices.filter { columns[$0].lowercased() == lower }
        guard let index = found.first else { throw .missing(name, columns: columns) }
        guard found.count == 1 else {
            throw .ambiguous(name, columns: found.map { columns[$0] })
        }
        return index
    }

    /// Whether a header is one well-formed row.
    private static func isWellFormed(_ header: [UInt8], _ format: ListFormat) -> Bool {
        var scanner = RowScanner(format: format)
        var scan = 0
        if let end = scanner.nextEnd(in: header.rawSpan, from: &scan) { return !end.isMalformed }
        return !scanner.endOfText(at: header.count).isMalformed
    }

    /// Returns the number of fields of a well-formed row; 1 for formats without columns.
    public func fieldCount(of row: [UInt8]) -> Int {
        guard let separator = format.separator else { return 1 }
        let tabs = format == .tsv ? row.count { $0 == separator } : 0
        // Only in a line with more fields than the header are tabs between quotes text.
        if format == .tsv, tabs < columnCount { return tabs + 1 }
        return Self.columns(row, separator: separator).count
    }

    /// Returns the names in a well-formed header, without surrounding blanks and quotes.
    public static func columns(_ header: [UInt8], separator: UInt8) -> [String] {
        if separator == UInt8(ascii: "\t") { return tabColumns(header) }
        let quote = UInt8(ascii: "\"")
        var columns: [String] = []
        var name: [UInt8] = []
        var (isQuoted, isAtStart) = (false, true)
        var offset = 0
        func end() {
            let isBlank = { (byte: UInt8) in byte == 0x20 || byte == 0x09 || byte == 0x0d }
            let text = name.drop(while: isBlank).reversed().drop(while: isBlank).reversed()
            columns.append(String(decoding: Array(text), as: UTF8.self))
            name = []
        }
        while offset < header.count {
            let byte = header[offset]
            let wasAtStart = isAtStart
            isAtStart = false
            if byte == quote, wasAtStart {
                isQuoted = true
            } else if byte == quote, isQuoted {
                if offset + 1 < header.count, header[offset + 1] == quote {
                    name.append(quote)
                    offset += 1
                } else {
                    isQuoted = false
                }
            } else if byte == separator, !isQuoted {
                end()
                isAtStart = true
            } else {
                name.append(byte)
            }
            offset += 1
        }
        end()
        return columns
    }
}
