internal import BroadsideRows
public import BroadsideSupport
internal import Glibc

/// Output of a command that writes a long text: standard output, or a file that appears atomically.
/// If its name ends in `.gz` or `.zst` it is compressed.
///
/// A device or a pipe is written to directly, because renaming a file over it would replace it.
public final class OutputFile {
    private let descriptor: Int32
    private let path: String?
    /// Path of the temporary file; nil if the output needs no renaming.
    private let temporary: String?
    /// Whether the temporary file has a name. It gets one at the end if the file system permits.
    private var isNamed = false
    private var isSettled = false
    /// Whether the file has its final name.
    package private(set) var isFinished = false
    private var compressor: ListCompressor?
    /// Whether writing throws an error once the reader of a pipe has gone. Otherwise further output
    /// is discarded.
    package var endsWithReader = true
    private var isClosed = false
    /// Whether the output is a terminal, on which control characters in lists and reasons could
    /// move the cursor.
    private let isTerminal: Bool
    /// Incomplete last line of output to a terminal.
    private var line: [UInt8] = []
    /// Number of bytes written, and number of these bytes that are on disk.
    private var writtenCount = 0
    private var syncedCount = 0

    /// Length in bytes above which an incomplete line is written to a terminal.
    private static let lineLimit = 1 << 20
    /// Number of written bytes after which the output is flushed to disk.
    private static let stretch = 32 << 20

    /// - Parameters:
    ///   - path: Path of the output; nil or `-` for standard output.
    ///   - option: The option with the path, for messages.
    ///   - permissions: Permissions of the file; nil for the default. If the file exists, the new
    ///     file gives no access to anyone who had none.
    /// - Throws: Exit code 2 if the output can't be written to this path.
    public init(
        _ path: String?, option: String = "output", permissions: UInt32? = nil
    ) throws(BroadsideError) {
        guard let path, path != "-" else {
            descriptor = STDOUT_FILENO
            self.path = nil
            temporary = nil
            isTerminal = isatty(STDOUT_FILENO) == 1
            return
        }
        try OutputRule.checkDestination(option: option, path: path)
        self.path = path
        isTerminal = false
        compressor = ListCompression.named(path).map { ListCompressor($0) }
        let existing = FileIdentity(path: path)
        if let existing, !existing.isRegular {
            temporary = nil
            descriptor = SystemCall.open(path, O_WRONLY | O_CLOEXEC)
        } else {
            let name = temporaryName(of: path)
            temporary = name
            let ofOwner: UInt32 = 0o700
            let allowed = existing.map { $0.permissions | ofOwner } ?? 0o777
            let mode = mode_t((permissions ?? 0o644) & allowed)
            if let nameless = Self.openNameless(beside: path, mode, named: name) {
                descriptor = nameless
            } else {
                descriptor = SystemCall.open(
                    name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
                isNamed = descriptor >= 0
            }
        }
        guard descriptor >= 0 else {
            throw .file(option: option, path, errno: errno, "name a place to write to")
        }
    }

    deinit {
        guard path != nil else { return }
        close(descriptor)
        if isNamed, !isFinished, let temporary { SystemCall.unlink(temporary) }
    }

    /// Opens a file without a name in the folder of a path. However the process ends, nothing of
    /// the file is left.
    ///
    /// - Parameter temporary: The path that the file gets at the end.
    /// - Returns: A descriptor, or -1; nil if there are no such files, or if the file could not get
    ///   a name later, for example because `/proc` is missing.
    private static func openNameless(
        beside path: String, _ mode: mode_t, named temporary: String
    ) -> Int32? {
        func open() -> Int32 {
            SystemCall.open(
                OutputRule.parent(of: path), O_WRONLY | SystemCall.namelessFile | O_CLOEXEC, mode)
        }
        // Another file tests whether such files can get names, because a file gets a name only once.
        let test = open()
        guard test >= 0 else {
            return [EOPNOTSUPP, EISDIR, EINVAL, ENOSYS].contains(errno) ? nil : test
        }
        defer { close(test) }
        guard SystemCall.link(test, to: temporary) == 0 else { return nil }
        SystemCall.unlink(temporary)
        return open()
    }

    /// Appends bytes.
    public func write(_ bytes: [UInt8]) throws(BroadsideError) {
        try write(bytes.rawSpan)
    }

    /// Appends bytes.
    package func write(_ bytes: RawSpan) throws(BroadsideError) {
        assert(!isSettled, "nothing is written beyond the end")
        guard !isTerminal else { return try show(bytes) }
        guard compressor != nil else {
            try put(bytes)
            return
        }
        try compressor?.encode(bytes, isLast: false) {
            (packed) throws(BroadsideError) in try put(packed)
        }
    }

    /// Writes whole lines to a terminal, with control characters escaped.
    private func show(_ bytes: RawSpan, isLast: Bool = false) throws(BroadsideError) {
        line.append(bytes)
        let count =
            isLast || line.count > Self.lineLimit
            ? line.count : line.lastIndex(of: 0x0a).map { $0 + 1 } ?? 0
        guard count > 0 else { return }
        let text = ForeignText.escapedLines(String(decoding: line.prefix(count), as: UTF8.self))
        line.removeFirst(count)
        assert(line.count <= Self.lineLimit, "what waits for its line's end has a limit")
        let bytes = Array(text.utf8)
        try put(bytes.rawSpan)
    }

    private func put(_ bytes: RawSpan) throws(BroadsideError) {
        guard !isClosed else { return }
        switch writeWhole(bytes, to: descriptor) {
        case nil: break
        case EPIPE:
            isClosed = true
            if endsWithReader { throw .outputClosed }
            return
        case let number?: throw .output(path ?? "standard output", errno: number)
        }
        writtenCount += bytes.byteCount
        assert(syncedCount <= writtenCount, "only what was written is synced")
        if temporary != nil, writtenCount - syncedCount >= Self.stretch { try passOn() }
    }

    /// Flushes the output to disk, then drops it from the page cache. A list of gigabytes would
    /// otherwise fill the cache with data that nothing reads soon. On machines that allocate memory
    /// page by page, filling the cache costs several times as much as generating the list.
    private func passOn() throws(BroadsideError) {
        assert(writtenCount > syncedCount, "a sync of nothing")
        guard fdatasync(descriptor) == 0 else {
            throw .output(path ?? "", errno: errno)
        }
        _ = posix_fadvise(
            descriptor, off_t(syncedCount), off_t(writtenCount - syncedCount), POSIX_FADV_DONTNEED)
        syncedCount = writtenCount
    }

    /// Flushes all output to disk, so that only the renaming is left. If one of several related
    /// files can't be written, none of them appears under its final name.
    package func settle() throws(BroadsideError) {
        guard !isSettled else { return }
        if isTerminal { try show(RawSpan(), isLast: true) }
        try compressor?.encode(RawSpan(), isLast: true) {
            (packed) throws(BroadsideError) in try put(packed)
        }
        compressor = nil
        if let path, temporary != nil, fsync(descriptor) != 0 {
            throw .output(path, errno: errno)
        }
        isSettled = true
    }

    /// Gives the file its final name and makes it durable.
    public func finish() throws(BroadsideError) {
        try settle()
        guard let path, let temporary else { return }
        assert(!isFinished, "a file takes its place once")
        // A link can't replace a file, so the file first gets a temporary name.
        if !isNamed { isNamed = SystemCall.link(descriptor, to: temporary) == 0 }
        guard isNamed, SystemCall.rename(temporary, path) == 0 else {
            throw .output(path, errno: errno)
        }
        isFinished = true
        guard syncFolder(OutputRule.parent(of: path)) else {
            throw BroadsideError(
                "\(path) is written, but its folder can't be synced: "
                    + "\(describe(errno: errno)): a power cut may lose it", exitCode: 5)
        }
    }
}
