internal import BroadsidePayloads
package import BroadsideRows
package import BroadsideSupport
internal import Glibc

/// The bytes of a token list, decoded, wherever they lie.
package final class ListBytes: Sendable {
    private enum Source: Sendable {
        /// A file as it is: read at any place.
        case file(descriptor: Int32, byteCount: UInt64)
        /// A packed file, or standard input.
        case stream(ListStream, descriptor: Int32, fileByteCount: UInt64)
        case memory([UInt8])
    }

    private let source: Source
    /// What its file was when it was opened; nil where it is none.
    private let stamp: FileStamp?
    /// How messages call it.
    let name: InputName
    /// Where it was read, absolute; nil where it is not a file.
    let path: String?

    /// What to do about a list that can't be used.
    private static let advice = "name a readable token list"
    /// A name that stands for standard input.
    package static let standardInput = "-"

    /// Opens a list's file, or standard input.
    ///
    /// - Parameter option: the option that names it, for messages.
    package init(opening file: String, option: String) throws(BroadsideError) {
        let isInput = file == Self.standardInput
        name = isInput ? .standardInput : InputName(file, option: option)
        if let advice = Self.remoteAdvice(file, option: option) {
            throw .request(name, " is not a file of this machine: \(advice)")
        }
        let descriptor = isInput ? dup(STDIN_FILENO) : SystemCall.open(file, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw .file(name, errno: errno, Self.advice) }
        guard let information = SystemCall.status(of: descriptor) else {
            let code = errno
            close(descriptor)
            throw .file(name, errno: code, Self.advice)
        }
        let isRegular = information.st_mode & S_IFMT == S_IFREG
        guard isRegular || isInput else {
            close(descriptor)
            throw .request(name, " is not a regular file: name a token list")
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

    /// How to read a list that lies elsewhere; nil for a path.
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

    /// Standard input, copied aside so that it can be read more than once.
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

    /// Bytes in memory.
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

    /// By the first bytes; a name that promises more is not believed.
    private static func compression(
        _ descriptor: Int32, file: String, name: InputName
    ) throws(BroadsideError) -> ListCompression? {
        var mark: [UInt8] = [0, 0, 0, 0]
        let count = SystemCall.read(descriptor, at: 0, &mark)
        guard count >= 0 else { throw .file(name, errno: errno, advice) }
        if let found = ListCompression.detect(Array(mark[..<count])) { return found }
        guard let named = ListCompression.named(file) else { return nil }
        guard count == 0 else {
            throw .request(name, " is not a \(named.rawValue) file: name it as what it is")
        }
        // An empty file is no exception: reading it says that it is cut off.
        return named
    }

    /// How its file is packed.
    package var compression: ListCompression? {
        if case .stream(let stream, _, _) = source { return stream.compression }
        return nil
    }

    /// Whether its bytes can be read from the beginning again, however many were read.
    var canReadAgain: Bool {
        if case .stream(let stream, _, _) = source { return stream.canRestart }
        return true
    }

    /// Whether it is a file as it is, so that it can be cut by bytes.
    var isPlainFile: Bool {
        if case .file = source { return true }
        return false
    }

    /// How many bytes there are; nil where nobody knows before the end was reached.
    var byteCount: UInt64? {
        switch source {
        case .file(_, let byteCount): byteCount
        case .stream(let stream, _, _): stream.decodedByteCount
        case .memory(let bytes): UInt64(bytes.count)
        }
    }

    /// How many bytes there are, read to the end where that has to be.
    package func measure() throws(BroadsideError) -> UInt64 {
        var byte = ReadBuffer(byteCount: 1)
        while true {
            if let byteCount { return byteCount }
            try SignalWatch.stopIfRequested()
            _ = try read(at: .max, into: &byte)
        }
    }

    /// About how many bytes there are. Digits pack to half their size.
    package var estimatedByteCount: UInt64 {
        if case .stream(let stream, _, let fileByteCount) = source {
            // Nobody knows what comes through a pipe: enough for a second core.
            return stream.decodedByteCount ?? (fileByteCount == 0 ? .max : fileByteCount * 2)
        }
        return byteCount ?? 0
    }

    /// How much of what has to be read was read, where the reader is at `offset`; a total of 0 is
    /// unknown.
    package func progress(at offset: UInt64) -> (done: UInt64, total: UInt64) {
        if case .stream(let stream, _, let fileByteCount) = source {
            return (stream.inputOffset, fileByteCount)
        }
        return (offset, byteCount ?? 0)
    }

    /// Which file it is, whatever names it has; nil where it is none.
    var identity: FileIdentity? {
        switch source {
        case .file(let descriptor, _), .stream(_, let descriptor, _):
            FileIdentity(descriptor: descriptor)
        case .memory: nil
        }
    }

    /// - Throws: Exit code 5 where its file is not as it was when it was opened.
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

    /// The same, into memory that knows how much of it is set.
    ///
    /// - Parameter limit: The most bytes that are wanted.
    func read(
        at offset: UInt64, into buffer: inout ReadBuffer, limit: Int = .max
    ) throws(BroadsideError) -> Int {
        // SAFETY: `read` sets bytes from the beginning of the room that it is given, and says how
        // many.
        try unsafe buffer.fill(limit: limit) { (room) throws(BroadsideError) in
            unsafe try read(at: offset, into: room)
        }
    }

    /// Reads bytes from a place on; 0 only at the end, and only of a file that did not change. What
    /// was added to it since it was opened is not read.
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
                // SAFETY: the caller's buffer is passed on as it is.
                let count = try unsafe stream.read(at: offset, into: buffer)
                if count == 0, buffer.count > 0 { try checkUnchanged() }
                return count
            } catch {
                // What is called damaged may be half of another file.
                if error.isDamage || error.exitCode == ExitCode.disk { try checkUnchanged() }
                throw error
            }
        }
    }
}
