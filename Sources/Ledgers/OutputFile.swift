internal import BroadsideRows
public import BroadsideSupport
internal import Glibc

/// Where a command writes a long text: standard output, or a file that appears whole or not at all.
/// A name that ends in `.gz` or `.zst` asks for it to be packed.
///
/// A device or a pipe is written to as it is: renaming a file over it would take its place.
public final class OutputFile {
    private let descriptor: Int32
    private let path: String?
    /// The file beside its place; nil where what is written needs no renaming.
    private let temporary: String?
    private var isSettled = false
    private var isFinished = false
    private var compressor: ListCompressor?
    /// Whether there is nothing left to do once the reader of a pipe has gone; else what follows is
    /// for nobody.
    package var endsWithReader = true
    private var isClosed = false
    /// Whether people read it where it is written: lists and reasons from elsewhere could move the
    /// terminal's cursor.
    private let isTerminal: Bool
    /// The end of what a terminal is to show, until its line is whole.
    private var line: [UInt8] = []
    /// Bytes written, and those of them that are on the disk.
    private var writtenCount = 0
    private var syncedCount = 0

    /// A line of a terminal is not waited for beyond so many bytes.
    private static let lineLimit = 1 << 20
    /// So many bytes go to the disk at a time.
    private static let stretch = 32 << 20

    /// - Parameters:
    ///   - path: nil or `-` for standard output.
    ///   - option: The option that named it, for messages.
    ///   - permissions: Those of the file; nil: as usual.
    /// - Throws: Exit code 2, if it can't be written there.
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
        if let existing = FileIdentity(path: path), !existing.isRegular {
            temporary = nil
            descriptor = SystemCall.open(path, O_WRONLY | O_CLOEXEC)
        } else {
            let name = temporaryName(of: path)
            temporary = name
            descriptor = SystemCall.open(
                name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode_t(permissions ?? 0o644))
        }
        guard descriptor >= 0 else {
            throw .file(option: option, path, errno: errno, "name a place to write to")
        }
    }

    deinit {
        guard path != nil else { return }
        close(descriptor)
        if !isFinished, let temporary { SystemCall.unlink(temporary) }
    }

    /// Appends bytes.
    public func write(_ bytes: [UInt8]) throws(BroadsideError) {
        try write(bytes.rawSpan)
    }

    /// Appends bytes.
    package func write(_ bytes: RawSpan) throws(BroadsideError) {
        assert(!isSettled, "nothing is written behind the end")
        guard !isTerminal else { return try show(bytes) }
        guard compressor != nil else {
            try put(bytes)
            return
        }
        try compressor?.encode(bytes, isLast: false) {
            (packed) throws(BroadsideError) in try put(packed)
        }
    }

    /// Writes whole lines to a terminal, with escapes for what it would obey.
    private func show(_ bytes: RawSpan, isLast: Bool = false) throws(BroadsideError) {
        line.append(bytes)
        let count =
            isLast || line.count > Self.lineLimit
            ? line.count : line.lastIndex(of: 0x0a).map { $0 + 1 } ?? 0
        guard count > 0 else { return }
        let text = ForeignText.escapedLines(String(decoding: line.prefix(count), as: UTF8.self))
        line.removeFirst(count)
        let bytes = Array(text.utf8)
        try put(bytes.rawSpan)
    }

    private func put(_ bytes: RawSpan) throws(BroadsideError) {
        guard !isClosed else { return }
        let name = path ?? "standard output"
        guard try writeUnlessClosed(bytes, to: descriptor, name: name) else {
            isClosed = true
            if endsWithReader { throw .outputClosed }
            return
        }
        writtenCount += bytes.byteCount
        assert(syncedCount <= writtenCount, "only what was written is synced")
        if temporary != nil, writtenCount - syncedCount >= Self.stretch { try passOn() }
    }

    /// Has the disk take what was written, and the system forget it: a list of gigabytes would fill its
    /// memory with what nobody reads soon. On machines whose memory is lent page by page that costs
    /// several times what making the list does.
    private func passOn() throws(BroadsideError) {
        guard fdatasync(descriptor) == 0 else {
            throw BroadsideError("\(path ?? ""): \(describe(errno: errno))", exitCode: 5)
        }
        _ = posix_fadvise(
            descriptor, off_t(syncedCount), off_t(writtenCount - syncedCount), POSIX_FADV_DONTNEED)
        syncedCount = writtenCount
    }

    /// Has the disk take all of it. What is left to be done is to put it in its place, so that of files
    /// that belong together none appears where another can't be written.
    package func settle() throws(BroadsideError) {
        guard !isSettled else { return }
        if isTerminal { try show(RawSpan(), isLast: true) }
        try compressor?.encode(RawSpan(), isLast: true) {
            (packed) throws(BroadsideError) in try put(packed)
        }
        compressor = nil
        if let path, temporary != nil, fsync(descriptor) != 0 {
            throw BroadsideError("\(path): \(describe(errno: errno))", exitCode: 5)
        }
        isSettled = true
    }

    /// Puts the file in its place, where it survives a power cut.
    public func finish() throws(BroadsideError) {
        try settle()
        guard let path, let temporary else { return }
        guard SystemCall.rename(temporary, path) == 0 else {
            throw BroadsideError("\(path): \(describe(errno: errno))", exitCode: 5)
        }
        isFinished = true
        guard syncFolder(OutputRule.parent(of: path)) else {
            throw BroadsideError(
                "\(path) is written, but its folder can't be synced: \(describe(errno: errno)): a power "
                    + "cut may take it away", exitCode: 5)
        }
    }
}
