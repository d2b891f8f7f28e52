internal import Glibc

/// Makes the names in a directory survive a power cut.
///
/// A file system that has nothing to sync there says so with EINVAL or ENOTSUP: it is done, too.
///
/// - Parameter folder: The open directory.
/// - Returns: false if that failed; errno says why.
package func syncNames(in folder: Int32) -> Bool {
    fsync(folder) == 0 || errno == EINVAL || errno == ENOTSUP
}

/// Makes a folder's names survive a power cut. If it may not be read, and so can't be synced alone,
/// everything is.
///
/// - Parameter path: The folder.
/// - Returns: false if that failed; errno says why.
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
