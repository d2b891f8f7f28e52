import BroadsideSupport
import BroadsideTLS
internal import Glibc

/// Reads a whole file that other users should not be able to read. The returned array is the only
/// copy of its bytes, and the caller must overwrite it.
func readSecret(
    _ path: String, option: String, limit: Int, _ warnings: inout [String]
) throws(BroadsideError) -> [UInt8] {
    let descriptor = SystemCall.open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
        throw FileValue.unreadable(path, option: option, errno: errno)
    }
    defer { close(descriptor) }
    var failure: Int32 = 0
    // SAFETY: read(2) writes only after the first `count` bytes and within the buffer, and `count`
    // is the number of bytes that are set.
    var bytes = unsafe [UInt8](unsafeUninitializedCapacity: limit + 1) { buffer, count in
        while count <= limit {
            let room = unsafe UnsafeMutableRawBufferPointer(
                rebasing: UnsafeMutableRawBufferPointer(buffer)[count...])
            let result = unsafe read(descriptor, room.baseAddress, room.count)
            if result < 0, errno == EINTR { continue }
            if result < 0 { failure = errno }
            guard result > 0 else { return }
            count += result
        }
    }
    guard failure == 0 else {
        bytes.cleanse()
        throw .file(option: option, path, errno: failure, "name a readable file")
    }
    guard bytes.count <= limit else {
        bytes.cleanse()
        throw .usage(option, "\(path): larger than \(limit) bytes: is it the right file?")
    }
    if let status = SystemCall.status(of: descriptor), status.st_mode & S_IFMT == S_IFREG,
        isReadableByOthers(
            mode: status.st_mode, owner: status.st_uid, group: status.st_gid, user: geteuid(),
            groups: SystemCall.groups)
    {
        warnings.append(
            "--\(option) \(path) can be read by other users: run chmod 600 "
                + "\(shellWord(path))")
    }
    return bytes
}

/// Whether a secret file is open to users who do not need it, and its user can change that.
///
/// A file of another owner that this process reads through one of its groups was given to it on
/// purpose: Kubernetes mounts secrets so (`fsGroup`), and its user could not change the mode.
func isReadableByOthers(
    mode: mode_t, owner: uid_t, group: gid_t, user: uid_t, groups: [gid_t]
) -> Bool {
    if mode & 0o004 != 0 { return true }
    let isGiven = owner != user && groups.contains(group)
    return mode & 0o040 != 0 && !isGiven
}

/// Whether a path refers to a pipe or a socket.
func isPipe(_ path: String) -> Bool {
    guard let mode = SystemCall.status(path)?.st_mode else { return false }
    return mode & S_IFMT == S_IFIFO || mode & S_IFMT == S_IFSOCK
}
