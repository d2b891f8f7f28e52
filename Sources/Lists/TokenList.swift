package import BroadsideRows
package import BroadsideSupport
internal import Synchronization

/// Opened token list. Its size, format and token column are known before anything is sent.
package final class TokenList: Sendable {
    /// Decoded bytes of the list.
    package let bytes: ListBytes
    /// Layout of the rows; the token is field 0.
    package let layout: RowLayout
    /// The line ends of the list.
    private let lineEnds: LineEnds
    /// Whether the list is a copy of standard input.
    package let isSpooled: Bool
    /// The commands that convert the list's file to a new list, for advice in messages.
    package let command: ListCommand
    /// Whether a warning has named the signs of missing rows.
    let isDamageNamed = Atomic<Bool>(false)
    /// Whether the option `--format` of the command applies to the list.
    let hasFormatOption: Bool

    package var format: ListFormat { layout.format }

    /// Default name of the token's column.
    package static let defaultTokenColumn = "token"

    /// Opens a list and reads its header.
    ///
    /// - Parameters:
    ///   - tokens: Source of the tokens; the file `-` is standard input.
    ///   - format: Format of the list; nil to detect it from its name and its first bytes.
    ///   - tokenColumn: Name of the column with the token; nil for `token`.
    ///   - otherColumns: Further columns to read, as fields 1 and up.
    ///   - wanted: Columns whose values a campaign uses, each with the option or file that requires
    ///     the column. Their fields follow those of `otherColumns`. The token's column may be among
    ///     them.
    ///   - optional: The columns of `wanted` that a row may lack. For a single token, their fields
    ///     are empty, so that defaults apply.
    ///   - option: Long name of the option that names the list, without dashes; for messages.
    ///   - hasFormatOption: Whether the command has the option `--format`. It applies to the list
    ///     that `--tokens` names; for messages.
    ///   - isReadAgain: Whether the list has to be read more than once.
    ///   - isSpooled: Whether the list is a ledger's copy of standard input.
    ///   - isInspected: Whether to refuse a list without device tokens; false for a list that was
    ///     already sent.
    package convenience init(
        _ tokens: TokenSource, format: TokenListFormat?, tokenColumn: String?,
        otherColumns: [String] = [], wanted: [(name: String, location: String)] = [],
        optional: Set<String> = [], option: String = "tokens", hasFormatOption: Bool = true,
        isReadAgain: Bool = false, isSpooled: Bool = false, isInspected: Bool = true
    ) throws(BroadsideError) {
        let token = tokenColumn ?? Self.defaultTokenColumn
        let allColumns = otherColumns + wanted.map(\.name).filter { $0 != token }
        switch tokens {
        case .single(let token):
            if let column = wanted.first(where: {
                allColumns.contains($0.name) && !optional.contains($0.name)
            }) {
                let noDefault =
                    column.location.hasPrefix("--where") ? "" : ", and there is no default"
                throw .request(
                    "\(column.location): --to has no column '\(column.name)'\(noDefault): make "
                        + "a one-row list with your own token, and name it with --tokens")
            }
            guard allColumns.isEmpty else {
                try self.init(token, emptyColumns: allColumns, tokenColumn: tokenColumn)
                return
            }
            self.init(lines: Array(token.utf8) + [0x0a])
        case .file(let file):
            let isAside = isReadAgain && file == ListBytes.standardInput
            let bytes =
                isAside
                ? try ListBytes(spoolingAside: ()) : try ListBytes(opening: file, option: option)
            let lineEnds = try LineEnds(of: bytes)
            let header = ListHeader(
                // A spooled list has no name of its own.
                fileName: isSpooled || isAside ? "" : file, bytes: bytes, isSpooled: isSpooled,
                lineEnds: lineEnds, tokenColumn: tokenColumn,
                hasFormatOption: hasFormatOption && option == "tokens", wanted: wanted)
            let layout = try header.layout(format: format, otherColumns: allColumns)
            if let other = otherColumns.first(where: { layout.field(named: $0) == 0 }) {
                throw .request(
                    "column '\(other)' is named for two purposes: name different columns")
            }
            self.init(
                bytes: bytes, lineEnds: lineEnds, layout: layout, isSpooled: isSpooled || isAside,
                command: header.command, hasFormatOption: header.hasFormatOption)
            if isInspected { try inspect() }
        }
    }

    /// Creates a table of one row, in which all columns except the token's are empty.
    private convenience init(
        _ token: String, emptyColumns: [String], tokenColumn: String?
    ) throws(BroadsideError) {
        let names = [tokenColumn ?? Self.defaultTokenColumn] + emptyColumns
        let quoted = names.map { name in
            "\"\(name.pieces(at: "\"").joined(separator: "\"\""))\""
        }
        let header = Array(quoted.joined(separator: ",").utf8)
        let row = token + String(repeating: ",", count: emptyColumns.count)
        do throws(RowLayout.HeaderError) {
            let layout = try RowLayout(format: .csv, names: names, header: header)
            self.init(lines: header + Array("\n\(row)\n".utf8), layout: layout)
        } catch {
            throw .usage("to", "has no columns: name a list with --tokens")
        }
    }

    /// Creates a list in memory, for one device or the deterministic simulation.
    package convenience init(lines: [UInt8], layout: RowLayout = .lines) {
        self.init(
            bytes: ListBytes(lines), lineEnds: .lineFeeds, layout: layout, isSpooled: false,
            command: ListCommand(file: ""))
    }

    /// Reads a list's file as lines, whatever columns are wanted.
    convenience init(linesOf header: ListHeader) {
        self.init(
            bytes: header.bytes, lineEnds: header.lineEnds, layout: .lines,
            isSpooled: header.isSpooled, command: header.command,
            hasFormatOption: header.hasFormatOption)
    }

    private init(
        bytes: ListBytes, lineEnds: LineEnds, layout: RowLayout, isSpooled: Bool,
        command: ListCommand, hasFormatOption: Bool = true
    ) {
        self.command = command
        self.hasFormatOption = hasFormatOption
        self.bytes = bytes
        self.lineEnds = lineEnds
        self.layout = layout
        self.isSpooled = isSpooled
    }

    /// Name of the list in messages.
    package var name: InputName { isSpooled ? .standardInput : bytes.name }

    /// Absolute path of the list; nil if the list is a copy of standard input, or is not a file.
    package var path: String? { isSpooled ? nil : bytes.path }

    /// Number of bytes of the decoded list; nil if unknown until its end is reached.
    package var byteCount: UInt64? { bytes.byteCount }

    /// Identity of the file, independent of its name; nil if the list is not a file.
    package var identity: FileIdentity? { bytes.identity }

    /// Reads bytes from an offset on, with line feeds as line ends. Returns 0 only at the end.
    func read(
        at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer
    ) throws(BroadsideError) -> Int {
        // SAFETY: the caller's buffer is passed on unchanged.
        try unsafe lineEnds.read(bytes, at: offset, into: buffer)
    }

    /// Reads bytes, with line feeds as line ends, into a buffer that records how many of its bytes
    /// are initialized.
    @discardableResult
    package func read(
        at offset: UInt64, into buffer: inout ReadBuffer
    ) throws(BroadsideError) -> Int {
        // SAFETY: `read` sets bytes from the start of the room that it is given, and returns how
        // many.
        try unsafe buffer.fill(limit: .max) { (room) throws(BroadsideError) in
            unsafe try read(at: offset, into: room)
        }
    }

    /// Whether the list's lines end with carriage returns, which are read as line feeds.
    package var hasReplacedLineEnds: Bool { lineEnds.areReturns }

    /// Replaces the line ends by line feeds in a text that was read unchanged.
    ///
    /// - Parameter next: Offset in the list at which the text ends.
    func replaceLineEnds(in text: inout [UInt8], next: UInt64) throws(BroadsideError) {
        try lineEnds.replace(&text, bytes, next: next)
    }

    /// Reads the list's bytes unchanged, for copying. Returns 0 only at the end.
    package func readOriginal(
        at offset: UInt64, into buffer: inout ReadBuffer
    ) throws(BroadsideError) -> Int {
        try bytes.read(at: offset, into: &buffer)
    }

    /// Reads the list's bytes unchanged, for copying. Returns 0 only at the end.
    func readOriginal(
        at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer
    ) throws(BroadsideError) -> Int {
        // SAFETY: the caller's buffer is passed on unchanged.
        try unsafe bytes.read(at: offset, into: buffer)
    }

    /// Returns the error for a fault after which the list can't be read.
    package func refusal(_ fault: ListFault) -> BroadsideError {
        .faultyList(name, ": \(fault.message)")
    }
}
