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
