internal import Glibc

/// A path that stays right when the working directory is another.
package func absolutePath(_ path: String) -> String {
    guard let resolved = unsafe realpath(path, nil) else { return path }
    defer { unsafe free(resolved) }
    return unsafe String(cString: resolved)
}

/// Whether something stands there, a link that leads nowhere included.
package func fileExists(_ path: String) -> Bool {
    var information = stat()
    return unsafe lstat(path, &information) == 0
}

/// Whether a path leads to a directory.
package func isDirectoryPath(_ path: String) -> Bool {
    var information = stat()
    return unsafe stat(path, &information) == 0 && information.st_mode & S_IFMT == S_IFDIR
}
