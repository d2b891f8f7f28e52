internal import Glibc

/// Returns the temporary path at which a file is written before it is renamed. Because the path is
/// random, no other user of a shared directory can place a file or a link there first, and no file
/// of a killed process has the same path.
package func temporaryName(of path: String) -> String {
    "\(path).\(String(UInt32.random(in: 0 ... .max), radix: 16)).new"
}

/// Writes a temporary file and renames it, so that the file at `path` is never incomplete.
///
/// A device or a pipe is written to directly, because renaming a file over it would remove it.
///
/// - Parameters:
///   - permissions: Permissions of the file, whatever the umask is; nil for the default.
///   - patienceMilliseconds: Maximum time for which a pipe or a device may accept nothing or have
///     no reader.
package func replaceFile(
    _ path: String, with bytes: [UInt8], permissions: UInt32? = nil,
    patienceMilliseconds: Int32 = 5_000
) throws(BroadsideError) {
    if isSpecialFile(path) {
        return try writeToSpecialFile(path, bytes, patienceMilliseconds: patienceMilliseconds)
    }
    let temporary = temporaryName(of: path)
    let descriptor = SystemCall.open(
        temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else {
        throw BroadsideError("\(path): \(describe(errno: errno))", exitCode: 5)
    }
    defer { close(descriptor) }
    // Some file systems have no permissions to set.
    if let permissions { _ = fchmod(descriptor, mode_t(permissions)) }
    do throws(BroadsideError) {
        try writeAll(bytes, to: descriptor, name: path)
        guard SystemCall.rename(temporary, path) == 0 else {
            throw BroadsideError("\(path): \(describe(errno: errno))", exitCode: 5)
        }
    } catch {
        SystemCall.unlink(temporary)
        throw error
    }
}

/// Writes to a pipe or a device, which may have no reader or a reader that has stalled.
private func writeToSpecialFile(
    _ path: String, _ bytes: [UInt8], patienceMilliseconds: Int32
) throws(BroadsideError) {
    func failure(_ text: String) -> BroadsideError {
        BroadsideError("\(path): \(text)", exitCode: 5)
    }
    var descriptor: Int32 = -1
    var waited: Int32 = 0
    repeat {
        descriptor = SystemCall.open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)
        if descriptor >= 0 { break }
        guard errno == ENXIO else { throw failure(describe(errno: errno)) }
        // A pipe without a reader.
        usleep(10_000)
        waited += 10
    } while waited < patienceMilliseconds
    guard descriptor >= 0 else { throw failure("nothing reads this pipe: start its reader first") }
    defer { close(descriptor) }
    var written = 0
    while written < bytes.count {
        let count = SystemCall.write(descriptor, bytes.rawSpan.extracting(written...))
        if count > 0 {
            written += count
            assert(written <= bytes.count, "no more is written than was asked for")
        } else if count < 0, errno == EAGAIN {
            let ready = SystemCall.poll(descriptor, POLLOUT, patienceMilliseconds)
            guard ready != 0 else { throw failure("its reader accepts nothing: check the reader") }
        } else if count < 0, errno == EPIPE {
            // The results of the run remain valid even if they are not read.
            return
        } else if count == 0 || errno != EINTR {
            throw failure(describe(errno: errno))
        }
    }
}

/// Returns whether a path leads to something other than a regular file.
package func isSpecialFile(_ path: String) -> Bool {
    guard let information = SystemCall.status(path) else { return false }
    return information.st_mode & S_IFMT != S_IFREG
}
