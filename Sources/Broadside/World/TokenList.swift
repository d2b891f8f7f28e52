package import Campaign
internal import Glibc

/// A token list as it lies before us: its bytes, their number, how they are written and where each
/// row has its token. Known in full before anything is sent.
package final class TokenList: Sendable {
    private enum Source: Sendable {
        case file(descriptor: Int32)
        case memory([UInt8])
    }

    private let source: Source
    /// Where it was read, absolute; nil where it is no file.
    let path: String?
    let byteCount: UInt64
    /// Where each row has its token: field 0.
    let layout: RowLayout

    var format: ListFormat { layout.format }

    /// The name of the token's column where none is given.
    static let defaultTokenColumn = "token"

    /// Opens a list and reads its header.
    ///
    /// - Parameters:
    ///   - tokens: Where it lies.
    ///   - format: How it is written; nil: as its name and its first bytes say.
    ///   - tokenColumn: The column that holds the token; nil: `token`.
    ///   - otherColumns: Columns that are wanted besides: fields 1 and up.
    convenience init(
        _ tokens: SendOptions.Tokens, format: TokenListFormat?, tokenColumn: String?,
        otherColumns: [String] = []
    ) throws(BroadsideError) {
        switch tokens {
        case .single(let token):
            self.init(lines: Array(token.utf8) + [0x0a])
        case .file(let name):
            let descriptor = unsafe open(name, O_RDONLY | O_CLOEXEC)
            guard descriptor >= 0 else {
                throw .request(
                    "--tokens \(name): \(describe(errno: errno)): name a readable token list")
            }
            var information = stat()
            unsafe fstat(descriptor, &information)
            guard information.st_mode & S_IFMT == S_IFREG else {
                close(descriptor)
                throw .request("--tokens \(name) is no regular file: name a token list")
            }
            let layout: RowLayout
            do {
                layout = try ListHeader(
                    name: name, descriptor: descriptor, tokenColumn: tokenColumn
                ).layout(format: format, otherColumns: otherColumns)
            } catch {
                close(descriptor)
                throw error
            }
            self.init(
                source: .file(descriptor: descriptor), path: absolutePath(name),
                byteCount: UInt64(information.st_size), layout: layout)
        }
    }

    /// A list in memory: one device, or the simulated world's.
    package convenience init(lines: [UInt8], layout: RowLayout = .lines) {
        self.init(
            source: .memory(lines), path: nil, byteCount: UInt64(lines.count), layout: layout)
    }

    private init(source: Source, path: String?, byteCount: UInt64, layout: RowLayout) {
        self.source = source
        self.path = path
        self.byteCount = byteCount
        self.layout = layout
    }

    deinit {
        if case .file(let descriptor) = source { close(descriptor) }
    }

    /// Which file it is, whatever names it has; nil where it is none.
    var identity: FileIdentity? {
        guard case .file(let descriptor) = source else { return nil }
        return FileIdentity(descriptor: descriptor)
    }

    /// Reads bytes from a place on; 0 only at the end.
    func read(
        at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer
    ) throws(BroadsideError) -> Int {
        switch source {
        case .memory(let bytes):
            guard offset < bytes.count else { return 0 }
            let piece = bytes[Int(offset)...].prefix(buffer.count)
            unsafe buffer.copyBytes(from: piece)
            return piece.count
        case .file(let descriptor):
            let count = unsafe pread(descriptor, buffer.baseAddress, buffer.count, off_t(offset))
            guard count >= 0 else {
                throw BroadsideError(
                    "\(path ?? "the token list"): \(describe(errno: errno))", exitCode: 5)
            }
            return count
        }
    }
}

/// Which file something is, whatever path leads to it, and what may be done with it.
struct FileIdentity: Equatable {
    private let device: UInt64
    private let inode: UInt64
    /// Its permission bits.
    let permissions: UInt32
    let isRegular: Bool

    private init(_ information: stat) {
        device = UInt64(information.st_dev)
        inode = UInt64(information.st_ino)
        permissions = UInt32(information.st_mode & 0o777)
        isRegular = information.st_mode & S_IFMT == S_IFREG
    }

    init?(descriptor: Int32) {
        var information = stat()
        guard unsafe fstat(descriptor, &information) == 0 else { return nil }
        self.init(information)
    }

    /// The file at a path, links followed; nil where there is none.
    init?(path: String) {
        var information = stat()
        guard unsafe stat(path, &information) == 0 else { return nil }
        self.init(information)
    }

    static func == (first: Self, second: Self) -> Bool {
        first.device == second.device && first.inode == second.inode
    }
}

/// A path that stays right when the working directory is another.
func absolutePath(_ path: String) -> String {
    guard let resolved = unsafe realpath(path, nil) else { return path }
    defer { unsafe free(resolved) }
    return unsafe String(cString: resolved)
}
