internal import Glibc

/// Makes the names in a directory durable against power loss.
///
/// A file system with nothing to sync reports EINVAL or ENOTSUP, which counts as success.
///
/// - Parameter folder: The open directory.
/// - Returns: False on failure, with `errno` set.
package func syncNames(in folder: Int32) -> Bool {
    fsync(folder) == 0 || errno == EINVAL || errno == ENOTSUP
}

/// Makes the names in a directory durable against power loss. If the directory is unreadable, it
/// cannot be synced alone, so everything is synced.
///
/// - Parameter path: The directory.
/// - Returns: False on failure, with `errno` set.
package func syncFolder(_ path: String) -> Bool {
    let folder = SystemCall.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard folder >= 0 else {
        guard errno == EACCES else { return false }
        sync()
        return true
    }
    let isSynced = syncNames(in: folder)
    let code = errno
    close(folder)
    errno = code
    return isSynced
}
