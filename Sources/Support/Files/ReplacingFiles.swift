internal import Glibc

/// Where a file is written before it is put in its place. Random, so that in a directory of everybody's
/// nobody can lay a file or a link there before, and because a killed process may have left its own.
package func temporaryName(of path: String) -> String {
    "\(path).\(String(UInt32.random(in: 0 ... .max), radix: 16)).new"
}

/// Writes a file beside its place and renames it: never half.
///
/// A device or a pipe is written to as it is: renaming a file over it would take it away.
///
/// - Parameter patienceMilliseconds: how long a pipe or a device may take nothing, or have no reader.
package func replaceFile(
    _ path: String, with bytes: [UInt8], patienceMilliseconds: Int32 = 5_000
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

/// Writes to a pipe or a device, which may have no reader, or one that has stopped reading.
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
            guard ready != 0 else { throw failure("its reader takes nothing") }
        } else if count < 0, errno == EPIPE {
            // What the run did stands, whether it is read or not.
            return
        } else if count == 0 || errno != EINTR {
            throw failure(describe(errno: errno))
        }
    }
}

/// Whether something stands there that is not a regular file.
package func isSpecialFile(_ path: String) -> Bool {
    guard let information = SystemCall.status(path) else { return false }
    return information.st_mode & S_IFMT != S_IFREG
}
