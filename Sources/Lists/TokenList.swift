package import BroadsideRows
package import BroadsideSupport

/// A token list as it lies before us: its bytes, their number, how they are written and where each
/// row has its token. Known in full before anything is sent.
package final class TokenList: Sendable {
    /// Its bytes, decoded.
    package let bytes: ListBytes
    /// Where each row has its token: field 0.
    package let layout: RowLayout
    /// How it ends its lines.
    private let lineEnds: LineEnds
    /// Whether it is a copy of standard input.
    let isSpooled: Bool
    /// Its file, for commands that make another list of it.
    package let command: ListCommand

    package var format: ListFormat { layout.format }

    /// The name of the token's column where none is given.
    package static let defaultTokenColumn = "token"

    /// Opens a list and reads its header.
    ///
    /// - Parameters:
    ///   - tokens: Where it lies; a file `-` is standard input.
    ///   - format: How it is written; nil: as its name and its first bytes say.
    ///   - tokenColumn: The column that holds the token; nil: `token`.
    ///   - otherColumns: Columns that are wanted besides: fields 1 and up.
    ///   - wanted: Columns that a campaign fills in, after those, and who asks for each; the token's
    ///     may be among them.
    ///   - option: The option that names it, for messages.
    ///   - isReadAgain: Whether one pass over it is not enough.
    ///   - isSpooled: Whether it is what a ledger keeps of standard input.
    ///   - isInspected: Whether tokens of another kind are refused; a list that was sent is not asked.
    package convenience init(
        _ tokens: TokenSource, format: TokenListFormat?, tokenColumn: String?,
        otherColumns: [String] = [], wanted: [(name: String, location: String)] = [],
        option: String = "tokens", isReadAgain: Bool = false, isSpooled: Bool = false,
        isInspected: Bool = true
    ) throws(BroadsideError) {
        let token = tokenColumn ?? Self.defaultTokenColumn
        let allColumns = otherColumns + wanted.map(\.name).filter { $0 != token }
        switch tokens {
        case .single(let token):
            if let column = wanted.first(where: { allColumns.contains($0.name) }) {
                throw .request(
                    "\(column.location): --to has no column '\(column.name)': give a list with a header "
                        + "and --limit 1")
            }
            self.init(lines: Array(token.utf8) + [0x0a])
        case .file(let file):
            let isAside = isReadAgain && file == ListBytes.standardInput
            let bytes =
                isAside
                ? try ListBytes(spoolingAside: ()) : try ListBytes(opening: file, option: option)
            let lineEnds = try LineEnds(of: bytes)
            let header = ListHeader(
                // What is spooled has no name of its own.
                fileName: isSpooled || isAside ? "" : file, bytes: bytes, lineEnds: lineEnds,
                tokenColumn: tokenColumn, wanted: wanted)
            let layout = try header.layout(format: format, otherColumns: allColumns)
            if let other = otherColumns.first(where: { layout.field(named: $0) == 0 }) {
                throw .request(
                    "column '\(other)' is named for two purposes: name different columns")
            }
            self.init(
                bytes: bytes, lineEnds: lineEnds, layout: layout, isSpooled: isSpooled || isAside,
                command: header.command)
            if isInspected { try inspect() }
        }
    }

    /// A list in memory: one device, or the deterministic simulation's.
    package convenience init(lines: [UInt8], layout: RowLayout = .lines) {
        self.init(
            bytes: ListBytes(lines), lineEnds: .lineFeeds, layout: layout, isSpooled: false,
            command: ListCommand(file: ""))
    }

    private init(
        bytes: ListBytes, lineEnds: LineEnds, layout: RowLayout, isSpooled: Bool,
        command: ListCommand
    ) {
        self.command = command
        self.bytes = bytes
        self.lineEnds = lineEnds
        self.layout = layout
        self.isSpooled = isSpooled
    }

    /// How messages call it.
    package var name: InputName { isSpooled ? .standardInput : bytes.name }

    /// Where it was read, absolute; nil where it is not a file of the user's.
    package var path: String? { isSpooled ? nil : bytes.path }

    /// Bytes of the decoded list; nil where nobody knows before its end was reached.
    package var byteCount: UInt64? { bytes.byteCount }

    /// Which file it is, whatever names it has; nil where it is none.
    package var identity: FileIdentity? { bytes.identity }

    /// Reads bytes from a place on, with line feeds at the ends of lines; 0 only at the end.
    func read(
        at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer
    ) throws(BroadsideError) -> Int {
        // SAFETY: the caller's buffer is passed on as it is.
        try unsafe lineEnds.read(bytes, at: offset, into: buffer)
    }

    /// The same, into memory that knows how much of it is set.
    @discardableResult
    package func read(
        at offset: UInt64, into buffer: inout ReadBuffer
    ) throws(BroadsideError) -> Int {
        // SAFETY: `read` sets bytes from the beginning of the room that it is given, and says how
        // many.
        try unsafe buffer.fill(limit: .max) { (room) throws(BroadsideError) in
            unsafe try read(at: offset, into: room)
        }
    }

    /// Whether what is read has line feeds where the list has carriage returns.
    package var hasReplacedLineEnds: Bool { lineEnds.areReturns }

    /// Puts line feeds at the ends of lines into what was read as it is in the list.
    ///
    /// - Parameter next: Where the list goes on behind the text.
    func replaceLineEnds(in text: inout [UInt8], next: UInt64) throws(BroadsideError) {
        try lineEnds.replace(&text, bytes, next: next)
    }

    /// Reads bytes as they are in the list, for what is copied; 0 only at the end.
    package func readOriginal(
        at offset: UInt64, into buffer: inout ReadBuffer
    ) throws(BroadsideError) -> Int {
        try bytes.read(at: offset, into: &buffer)
    }

    /// The same.
    func readOriginal(
        at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer
    ) throws(BroadsideError) -> Int {
        // SAFETY: the caller's buffer is passed on as it is.
        try unsafe bytes.read(at: offset, into: buffer)
    }

    /// That it can't be read on.
    package func refusal(_ fault: ListFault) -> BroadsideError {
        .faultyList(name, ": \(fault.message)")
    }
}
