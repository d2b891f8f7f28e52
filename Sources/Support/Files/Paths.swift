internal import Glibc

/// A path that stays right when the working directory is another.
package func absolutePath(_ path: String) -> String {
    SystemCall.realPath(path) ?? path
}

/// Whether something stands there, a link that leads nowhere included.
package func fileExists(_ path: String) -> Bool {
    SystemCall.linkStatus(path) != nil
}

/// Whether a path leads to a directory.
package func isDirectoryPath(_ path: String) -> Bool {
    SystemCall.status(path).map { $0.st_mode & S_IFMT == S_IFDIR } ?? false
}

/// When a regular file was last written to, milliseconds since 1970; nil for anything else.
package func modifiedAtMilliseconds(_ path: String) -> UInt64? {
    guard let information = SystemCall.status(path), information.st_mode & S_IFMT == S_IFREG,
        information.st_mtim.tv_sec >= 0
    else { return nil }
    return UInt64(information.st_mtim.tv_sec) * 1000
        + UInt64(information.st_mtim.tv_nsec) / 1_000_000
}
