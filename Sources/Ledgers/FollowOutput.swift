internal import BroadsideLedgerFormat
import BroadsideRows
import BroadsideSupport
internal import Glibc

/// Output of a follower: standard output, a pipe, a device, or a file to which the follower appends
/// rows.
///
/// An earlier follower may have been killed after it wrote rows and before it saved its cursor. So
/// opening the file removes all bytes after the position in the cursor, if there is a cursor.
final class FollowOutput {
    private let descriptor: Int32
    private let path: String?
    private let stream: OutputFile?
    private var byteCount: UInt64 = 0
    /// The last bytes of the output, for the cursor.
    private var tail: [UInt8] = []

    /// Opens an output.
    ///
    /// - Parameters:
    ///   - path: Path of the output; nil or `-` for standard output.
    ///   - cursor: The cursor, which describes the output; nil if there is no cursor yet.
    /// - Throws: Exit code 2 if the file at the path is not the cursor's output, or has rows from a
    ///   different ledger; 7 if another follower is using it.
    init(_ path: String?, cursor: FollowCursor?) throws(BroadsideError) {
        let name = path == "-" ? nil : path
        if let name { try OutputRule.checkDestination(option: "output", path: name) }
        if let name, ListCompression.named(name) != nil {
            throw .usage(
                "output",
                "\(name): followed rows are not compressed: name a file without .gz or .zst")
        }
        guard let name, !isSpecialFile(name) else {
            guard cursor?.output == nil else {
                throw .usage(
                    "output",
                    "is missing or not a regular file, but the cursor in --cursor belongs to an output "
                        + "file: name that file")
            }
            (descriptor, self.path) = (-1, nil)
            stream = try OutputFile(name, permissions: 0o600)
            return
        }
        if let cursor, cursor.output == nil {
            throw .usage(
                "output",
                "\(name): the cursor in --cursor does not belong to an output file: name another cursor"
            )
        }
        self.path = name
        stream = nil
        descriptor = SystemCall.open(name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw .file(option: "output", name, errno: errno, "name a place to write to")
        }
        try takeUp(name, cursor?.output)
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// Whether the output is a file that grows with the cursor.
    var isFile: Bool { path != nil }

    /// Locks the file and cuts off the bytes after the cursor.
    private func takeUp(
        _ name: String, _ known: FollowCursor.Output?
    ) throws(BroadsideError) {
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK else {
            throw BroadsideError(
                option: "output",
                "\(name) is being written by another follower: wait until it ends",
                exitCode: ExitCode.inUse)
        }
        guard let found = SystemCall.status(of: descriptor) else { throw failure(name) }
        guard let known else {
            guard found.st_size == 0 else {
                throw .usage(
                    "output",
                    "\(name) is not empty: name the --cursor that belongs to it, or another file"
                )
            }
            guard syncFolder(OutputRule.parent(of: name)) else { throw failure(name) }
            return
        }
        guard UInt64(found.st_size) >= known.byteCount else {
            throw .usage(
                "output",
                "\(name) is shorter than --cursor says: put the file back, or follow from the start with "
                    + "another file and another cursor")
        }
        let count = min(Int(known.byteCount), FollowCursor.Output.tailByteCountMax)
        tail = try readTail(name, before: known.byteCount, count)
        guard FollowCursor.Output(byteCount: known.byteCount, tail: tail) == known else {
            throw .usage(
                "output",
                "\(name) is not the file that belongs to --cursor: name that "
                    + "file, or another cursor"
            )
        }
        guard ftruncate(descriptor, off_t(known.byteCount)) == 0,
            lseek(descriptor, off_t(known.byteCount), SEEK_SET) >= 0
        else { throw failure(name) }
        byteCount = known.byteCount
    }

    private func readTail(
        _ name: String, before end: UInt64, _ count: Int
    ) throws(BroadsideError) -> [UInt8] {
        guard lseek(descriptor, off_t(end) - off_t(count), SEEK_SET) >= 0 else {
            throw failure(name)
        }
        var bytes: [UInt8] = []
        while bytes.count < count {
            var room = [UInt8](repeating: 0, count: count - bytes.count)
            let read = SystemCall.read(descriptor, &room)
            guard read > 0 else { throw failure(name) }
            bytes += room.prefix(read)
        }
        return bytes
    }

    private func failure(_ name: String) -> BroadsideError {
        BroadsideError("\(name): \(describe(errno: errno))", exitCode: ExitCode.disk)
    }

    /// Appends rows.
    func write(_ bytes: [UInt8]) throws(BroadsideError) {
        guard let path else {
            try stream?.write(bytes)
            return
        }
        try writeAll(bytes, to: descriptor, name: path)
        byteCount += UInt64(bytes.count)
        tail = Array(
            (tail + bytes.suffix(FollowCursor.Output.tailByteCountMax)).suffix(
                FollowCursor.Output.tailByteCountMax))
        assert(
            tail.count == min(Int(clamping: byteCount), FollowCursor.Output.tailByteCountMax),
            "the tail is as long as its limit, or as the whole output")
    }

    /// Syncs the written bytes to disk.
    ///
    /// - Returns: The output's record for a cursor; nil if it is not a file.
    func flush() throws(BroadsideError) -> FollowCursor.Output? {
        guard let path else { return nil }
        guard fsync(descriptor) == 0 else { throw failure(path) }
        return FollowCursor.Output(byteCount: byteCount, tail: tail)
    }
}
