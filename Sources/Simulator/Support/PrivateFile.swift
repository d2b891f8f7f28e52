internal import BroadsideSupport
internal import Glibc

/// Whole files of a few kilobytes.
enum PrivateFile {
    static let limit = 1 << 20
    private static let pieceCount = 1 << 16

    /// Creates a file with a mode from its first instant on. One that is there already stays as it
    /// is, and so does what a symbolic link names.
    static func create(_ path: String, _ bytes: [UInt8], mode: mode_t) throws(SimulatorError) {
        try create(path, mode: mode) { append throws(SimulatorError) in try append(bytes) }
    }

    /// The same, piece by piece: what the closure appends is written as it goes.
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
        // Whatever the umask.
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

    /// Opens a file for what is appended to it, device tokens among it: emptied, and for nobody else's
    /// eyes if it is a file of its own. A pipe or a device stays as it is.
    ///
    /// - Returns: The descriptor, or -1 and `errno`.
    static func openToAppend(_ path: String) -> Int32 {
        let descriptor = SystemCall.open(
            path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0o600)
        guard descriptor >= 0, !path.hasPrefix("/dev/"),
            FileIdentity(descriptor: descriptor)?.isRegular == true
        else { return descriptor }
        // Of another user's file the mode stays.
        _ = fchmod(descriptor, 0o600)
        return descriptor
    }

    /// Somebody else's file has the name of one that is to be made.
    static func foreign(_ path: String) -> SimulatorError {
        SimulatorError(
            "--state: \(path) is there already and was not made by this simulator: name another "
                + "directory, or move the file away",
            exitCode: 2)
    }

    /// Whether something has this name, a symbolic link to nowhere too.
    static func exists(_ path: String) throws(SimulatorError) -> Bool {
        try SimulatorError.converted { () throws(BroadsideError) in try fileExists(path) }
    }

    /// Visits the lines of a file without their ends; false if one of them, or what follows the
    /// last line end, is not what the caller expects, or if it is not a regular file.
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
            // No line that anybody expects is so long.
            if waiting.count > pieceCount { return false }
        }
    }

    /// A file's bytes.
    static func read(
        _ path: String, option: String, limit: Int = PrivateFile.limit
    ) throws(SimulatorError) -> [UInt8] {
        try SimulatorError.converted { () throws(BroadsideError) in
            try readFile(path, option: option, limit: limit)
        }
    }
}
