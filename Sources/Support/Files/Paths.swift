internal import Glibc

/// A path that stays right when the working directory is another.
package func absolutePath(_ path: String) -> String {
    SystemCall.realPath(path) ?? path
}

/// Whether something stands there, a link that leads nowhere included.
///
/// - Throws: Where that is not known: a disk that fails does not say that there is nothing.
package func fileExists(_ path: String) throws(BroadsideError) -> Bool {
    if SystemCall.linkStatus(path) != nil { return true }
    switch errno {
    // Nothing can have a name that is too long.
    case ENOENT, ENOTDIR, ELOOP, ENAMETOOLONG: return false
    case let number: throw .file(InputName(path), errno: number, "name a path that you may use")
    }
}

/// The same for a path that the user did not name: what may not be looked at counts as missing.
///
/// - Throws: Exit code 5, where a disk fails.
package func fileCanBeSeen(_ path: String) throws(BroadsideError) -> Bool {
    try isKnown(SystemCall.linkStatus(path), path)
}

/// Whether a path leads to a directory; false for one that can't be used at all: who opens it says why.
///
/// - Throws: Exit code 5, where a disk fails.
package func isDirectoryPath(_ path: String) throws(BroadsideError) -> Bool {
    let information = SystemCall.status(path)
    let isKnown = try isKnown(information, path)
    return isKnown && (information?.st_mode ?? 0) & S_IFMT == S_IFDIR
}

/// Whether something was found; where it was not, `errno` says why.
private func isKnown(_ information: stat?, _ path: String) throws(BroadsideError) -> Bool {
    if information != nil { return true }
    let number = errno
    guard FileFailure(errno: number) == .unusable else {
        throw .file(InputName(path), errno: number, "")
    }
    return false
}

/// When a regular file was last written to, milliseconds since 1970; nil for anything else.
package func modifiedAtMilliseconds(_ path: String) -> UInt64? {
    guard let information = SystemCall.status(path), information.st_mode & S_IFMT == S_IFREG,
        information.st_mtim.tv_sec >= 0
    else { return nil }
    return UInt64(information.st_mtim.tv_sec) * 1000
        + UInt64(information.st_mtim.tv_nsec) / 1_000_000
}
