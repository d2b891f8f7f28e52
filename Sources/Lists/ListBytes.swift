internal import BroadsidePayloads
package import BroadsideRows
package import BroadsideSupport
internal import Glibc

/// Decoded bytes of a token list from any source.
package final class ListBytes: Sendable {
    private enum Source: Sendable {
        /// Uncompressed file, which can be read at any offset.
        case file(descriptor: Int32, byteCount: UInt64)
        /// Compressed file, or standard input.
        case stream(ListStream, descriptor: Int32, fileByteCount: UInt64)
        case memory([UInt8])
    }

    private let source: Source
    /// State of the list's file when it was opened; nil if the list is not a file.
    private let stamp: FileStamp?
    /// Name of the list in messages.
    let name: InputName
    /// Absolute path of the file; nil if the list is not a file.
    let path: String?

    /// Advice for a list that can't be used.
    private static let advice = "name a readable token list"
    /// Name of standard input.
    package static let standardInput = "-"

    /// Opens a list's file, or standard input.
    ///
    /// - Parameter option: Long name of the option that names the file, without dashes; for
    ///   messages.
    package init(opening file: String, option: String) throws(BroadsideError) {
        let isInput = file == Self.standardInput
        name = isInput ? .standardInput : InputName(file, option: option)
        if file.lowercased().hasPrefix("file://") {
            throw .request(name, " is a URL: write the file's path, without file://")
        }
        if let advice = Self.remoteAdvice(file, option: option) {
            throw .request(name, " is not a local file: \(advice)")
        }
        // Opening a pipe must not wait for a writer, because pipes are refused.
        let descriptor =
            isInput
            ? dup(STDIN_FILENO) : SystemCall.open(file, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else {
            let code = errno
            guard FileValue.isToken(file) else {
                throw .file(name, errno: code, Self.advice)
            }
            throw .request(
                name,
                " is a device token, not a file: name a token list, or, for one device, use send --to "
                    + "or ledger forget --token")
        }
        guard let information = SystemCall.status(of: descriptor) else {
            let code = errno
            close(descriptor)
            throw .file(name, errno: code, Self.advice)
        }
        let isRegular = information.st_mode & S_IFMT == S_IFREG
        guard isRegular || isInput else {
            close(descriptor)
            throw .request(
                name,
                information.st_mode & S_IFMT == S_IFIFO
                    ? " is a pipe: \(Self.pipeAdvice(option: option))"
                    : " is not a regular file: name a token list")
        }
        path = isInput ? nil : absolutePath(file)
        stamp = FileStamp(descriptor: descriptor)
        let byteCount = isRegular ? UInt64(information.st_size) : 0
        do throws(BroadsideError) {
            let compression =
                isInput ? nil : try Self.compression(descriptor, file: file, name: name)
            if isInput || compression != nil {
                let stream = try ListStream(
                    descriptor: descriptor, name: name, canRestart: !isInput,
                    compression: compression, fileByteCount: isRegular ? byteCount : nil)
                source = .stream(stream, descriptor: descriptor, fileByteCount: byteCount)
            } else {
                source = .file(descriptor: descriptor, byteCount: byteCount)
            }
        } catch {
            close(descriptor)
            throw error
        }
    }

    /// Advice for reading a list from a pipe, which can be read only once.
    private static func pipeAdvice(option: String) -> String {
        option == "tokens"
            ? "use standard input, as in COMMAND | broadside ... --tokens -"
            : "write it to a file first"
    }

    /// Returns advice for reading a list at a URL; nil for a path.
    private static func remoteAdvice(_ file: String, option: String) -> String? {
        guard let end = file.firstRange(of: "://"), end.lowerBound > file.startIndex,
            file[..<end.lowerBound].allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber) })
        else { return nil }
        let address = shellWord(file)
        let command: String
        switch file[..<end.lowerBound].lowercased() {
        case "s3": command = "aws s3 cp \(address) -"
        case "gs": command = "gcloud storage cat \(address)"
        case "http", "https": command = "curl -fsS \(address)"
        default: return "copy it here first"
        }
        return option == "tokens"
            ? "\(command) | broadside ... --\(option) -"
            : "copy it here first: \(command) > list.csv"
    }

    /// Copies standard input to a temporary file, so that it can be read more than once.
    init(spoolingAside: ()) throws(BroadsideError) {
        let descriptor = try SpooledInput.spoolAside()
        guard let information = SystemCall.status(of: descriptor) else {
            let code = errno
            close(descriptor)
            throw BroadsideError(.standardInput, ": \(describe(errno: code))", exitCode: 5)
        }
        source = .file(descriptor: descriptor, byteCount: UInt64(information.st_size))
        stamp = nil
        name = .standardInput
        path = nil
    }

    /// Creates a list in memory.
    init(_ bytes: [UInt8]) {
        source = .memory(bytes)
        stamp = nil
        name = InputName("the list")
        path = nil
    }

    deinit {
        switch source {
        case .file(let descriptor, _), .stream(_, let descriptor, _): close(descriptor)
        case .memory: break
        }
    }

    /// Detects the compression from the first bytes. Refuses an uncompressed file that has the name
    /// extension of a compressed one.
    private static func compression(
        _ descriptor: Int32, file: String, name: InputName
    ) throws(BroadsideError) -> ListCompression? {
        var mark: [UInt8] = [0, 0, 0, 0]
        let count = SystemCall.read(descriptor, at: 0, &mark)
        guard count >= 0 else { throw .file(name, errno: errno, advice) }
        if let found = ListCompression.detect(Array(mark[..<count])) { return found }
        guard let named = ListCompression.named(file) else { return nil }
        guard count == 0 else {
            throw .request(
                name,
                " is not a \(named.rawValue) file: rename it with the ending of its real format")
        }
        // An empty file with such a name counts as compressed, too. Reading it reports that it is
        // cut off.
        return named
    }

    /// Compression of the file.
    package var compression: ListCompression? {
        if case .stream(let stream, _, _) = source { return stream.compression }
        return nil
    }

    /// Whether the bytes can be read again from the start, however many have been read.
    var canReadAgain: Bool {
        if case .stream(let stream, _, _) = source { return stream.canRestart }
        return true
    }

    /// Whether the list is an uncompressed file, so that it can be divided by bytes.
    var isPlainFile: Bool {
        if case .file = source { return true }
        return false
    }

    /// Number of bytes; nil if unknown until the end is reached.
    var byteCount: UInt64? {
        switch source {
        case .file(_, let byteCount): byteCount
        case .stream(let stream, _, _): stream.decodedByteCount
        case .memory(let bytes): UInt64(bytes.count)
        }
    }

    /// Returns the number of bytes, after reading to the end if necessary.
    package func measure() throws(BroadsideError) -> UInt64 {
        var byte = ReadBuffer(byteCount: 1)
        while true {
            if let byteCount { return byteCount }
            try SignalWatch.stopIfRequested()
            _ = try read(at: .max, into: &byte)
        }
    }

    /// Estimated number of decoded bytes. Compression is assumed to halve the size of a list.
    package var estimatedByteCount: UInt64 {
        if case .stream(let stream, _, let fileByteCount) = source {
            // The size of a pipe's contents is unknown. The estimate is then so high that a run may
            // use more than one core.
            return stream.decodedByteCount ?? (fileByteCount == 0 ? .max : fileByteCount * 2)
        }
        return byteCount ?? 0
    }

    /// Returns the progress of a reader at `offset`, and the total, both in bytes. The total is 0
    /// if it is unknown.
    package func progress(at offset: UInt64) -> (done: UInt64, total: UInt64) {
        if case .stream(let stream, _, let fileByteCount) = source {
            return (stream.inputOffset, fileByteCount)
        }
        return (offset, byteCount ?? 0)
    }

    /// Identity of the file, independent of its name; nil if the list is not a file.
    var identity: FileIdentity? {
        switch source {
        case .file(let descriptor, _), .stream(_, let descriptor, _):
            FileIdentity(descriptor: descriptor)
        case .memory: nil
        }
    }

    /// - Throws: Exit code 5 if the list's file has changed since it was opened.
    func checkUnchanged() throws(BroadsideError) {
        guard let stamp else { return }
        switch source {
        case .memory: return
        case .file(let descriptor, _), .stream(_, let descriptor, _):
            if let how = stamp.change(descriptor: descriptor, path: path) {
                throw .changed(name, how)
            }
        }
    }

    /// Reads bytes into a buffer that records how many of its bytes are initialized.
    ///
    /// - Parameter limit: Maximum number of bytes to read.
    package func read(
        at offset: UInt64, into buffer: inout ReadBuffer, limit: Int = .max
    ) throws(BroadsideError) -> Int {
        // SAFETY: `read` sets bytes from the start of the room that it is given, and returns how
        // many.
        try unsafe buffer.fill(limit: limit) { (room) throws(BroadsideError) in
            unsafe try read(at: offset, into: room)
        }
    }

    /// Reads bytes from an offset on. Returns 0 only at the end, and only if the file did not
    /// change. Bytes that were added after the file was opened are not read.
    func read(
        at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer
    ) throws(BroadsideError) -> Int {
        switch source {
        case .memory(let bytes):
            guard offset < bytes.count else { return 0 }
            let piece = bytes[Int(offset)...].prefix(buffer.count)
            // SAFETY: the piece was cut to the buffer's count.
            unsafe buffer.copyBytes(from: piece)
            return piece.count
        case .file(let descriptor, let byteCount):
            let room = Int(min(byteCount - min(byteCount, offset), UInt64(buffer.count)))
            guard room > 0 else {
                if buffer.count > 0 { try checkUnchanged() }
                return 0
            }
            // SAFETY: `room` is at most the buffer's count; the kernel sets no more.
            let count = unsafe pread(descriptor, buffer.baseAddress, room, off_t(offset))
            guard count >= 0 else {
                throw BroadsideError(name, ": \(describe(errno: errno))", exitCode: 5)
            }
            if count == 0 {
                try checkUnchanged()
                throw .changed(name, "it ends after \(offset) bytes of \(byteCount)")
            }
            return count
        case .stream(let stream, _, _):
            do throws(BroadsideError) {
                // SAFETY: the caller's buffer is passed on unchanged.
                let count = try unsafe stream.read(at: offset, into: buffer)
                if count == 0, buffer.count > 0 { try checkUnchanged() }
                return count
            } catch {
                // What looks like damage may be a change of the file while it was read.
                if error.isDamage || error.exitCode == ExitCode.disk { try checkUnchanged() }
                throw error
            }
        }
    }
}
