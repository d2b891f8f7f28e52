internal import BroadsideSupport
internal import Glibc

/// Operations on whole files of a few kilobytes.
enum PrivateFile {
    static let limit = 1 << 20
    private static let pieceCount = 1 << 16

    /// Creates a file that has the given mode as soon as it exists. Does not change an existing
    /// file or the target of a symbolic link.
    static func create(_ path: String, _ bytes: [UInt8], mode: mode_t) throws(SimulatorError) {
        try create(path, mode: mode) { append throws(SimulatorError) in try append(bytes) }
    }

    /// Creates a file from parts that the closure appends. The file has the given mode as soon as
    /// it exists. An existing file is not changed.
    static func create(
        _ path: String, mode: mode_t,
        _ body: (_ append: ([UInt8]) throws(SimulatorError) -> Void) throws(SimulatorError) -> Void
    ) throws(SimulatorError) {
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC
        let descriptor = SystemCall.open(path, flags, mode)
        guard descriptor >= 0 else {
            if errno == EEXIST { throw foreign(path) }
            throw SimulatorError("\(path): \(describe(errno: errno))", exitCode: 5)
        }
        var isWhole = false
        defer {
            _ = close(descriptor)
            if !isWhole { SystemCall.unlink(path) }
        }
        // Sets the mode independently of the umask.
        _ = fchmod(descriptor, mode)
        var waiting: [UInt8] = []
        func writeWaiting() throws(SimulatorError) {
            try SimulatorError.converted { () throws(BroadsideError) in
                try writeAll(waiting, to: descriptor, name: path)
            }
            waiting.removeAll(keepingCapacity: true)
        }
        try body { bytes throws(SimulatorError) in
            waiting += bytes
            if waiting.count >= pieceCount { try writeWaiting() }
        }
        try writeWaiting()
        isWhole = true
    }

    /// Opens a file for output that may include device tokens. A regular file of this user is
    /// truncated, and readable only by its owner. A pipe or a device is left unchanged, as is a file
    /// that another program has opened and passed as `/dev/stdout`.
    ///
    /// - Returns: The descriptor, or -1 with `errno` set.
    static func openToAppend(_ path: String) -> Int32 {
        let descriptor = SystemCall.open(
            path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0o600)
        if descriptor >= 0 { makePrivate(descriptor, path) }
        return descriptor
    }

    /// Returns the error for a path at which another program's file already exists.
    static func foreign(_ path: String) -> SimulatorError {
        SimulatorError(
            "--state: \(path) already exists and was not made by this simulator: name another "
                + "directory, or move the file away",
            exitCode: 2)
    }

    /// Returns whether something with this name exists. A dangling symbolic link counts.
    static func exists(_ path: String) throws(SimulatorError) -> Bool {
        try SimulatorError.converted { () throws(BroadsideError) in try fileExists(path) }
    }

    /// Passes each line of a regular file, without its line end, to `isExpected`. Returns false if
    /// the file is not regular, `isExpected` rejects a line, or data follows the last line end.
    static func forEachLine(
        _ path: String, _ isExpected: ([UInt8]) -> Bool
    ) throws(SimulatorError) -> Bool {
        let name = InputName(path, option: "state")
        let descriptor = SystemCall.open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else {
            if errno == ELOOP { return false }
            throw SimulatorError(.file(name, errno: errno, "name a readable file"))
        }
        defer { _ = close(descriptor) }
        guard FileIdentity(descriptor: descriptor)?.isRegular == true else { return false }
        var waiting: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: pieceCount)
        while true {
            let count = try SimulatorError.converted { () throws(BroadsideError) in
                try readPiece(descriptor, &piece, shownAs: name)
            }
            guard count > 0 else { return waiting.isEmpty }
            waiting += piece[..<count]
            var start = 0
            while let end = waiting[start...].firstIndex(of: 0x0a) {
                guard isExpected(Array(waiting[start..<end])) else { return false }
                start = end + 1
            }
            waiting.removeFirst(start)
            // No expected line is this long.
            if waiting.count > pieceCount { return false }
        }
    }

    /// Reads a whole file.
    static func read(
        _ path: String, option: String, limit: Int = PrivateFile.limit
    ) throws(SimulatorError) -> [UInt8] {
        try SimulatorError.converted { () throws(BroadsideError) in
            try readFile(path, option: option, limit: limit)
        }
    }
}
