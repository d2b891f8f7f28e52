internal import Glibc

/// Returns a path that stays valid when the working directory changes.
package func absolutePath(_ path: String) -> String {
    SystemCall.realPath(path) ?? path
}

/// Returns an absolute path without `.`, `..` and repeated slashes. Links are not resolved, because
/// the target of a link may change.
package func normalizedPath(_ path: String) -> String {
    let isAbsolute = path.starts(withBytes: "/")
    let path = isAbsolute ? path : "\(SystemCall.workingDirectory ?? "")/\(path)"
    var parts: [Substring] = []
    for part in path.split(separator: "/") where part != "." {
        if part == ".." { _ = parts.popLast() } else { parts.append(part) }
    }
    return "/" + parts.joined(separator: "/")
}

/// Returns whether two paths lead to the same file or directory, which need not exist.
package func areSamePaths(_ first: String, _ second: String) -> Bool {
    if normalizedPath(first) == normalizedPath(second) { return true }
    guard let identity = FileIdentity(path: first) else { return false }
    return identity == FileIdentity(path: second)
}

/// Returns whether a path exists. A dangling link counts as existing.
///
/// - Throws: If a failure, such as a disk error, prevents the check. The path may then exist.
package func fileExists(_ path: String) throws(BroadsideError) -> Bool {
    if SystemCall.linkStatus(path) != nil { return true }
    switch errno {
    // No file can have a name that is too long.
    case ENOENT, ENOTDIR, ELOOP, ENAMETOOLONG: return false
    case let number: throw .file(InputName(path), errno: number, "name a path that you may use")
    }
}

/// Returns whether a path exists, for paths that the user did not name. An inaccessible path counts
/// as missing.
///
/// - Throws: Exit code 5 if a disk fails.
package func fileCanBeSeen(_ path: String) throws(BroadsideError) -> Bool {
    try isKnown(SystemCall.linkStatus(path), path)
}

/// Returns whether a path leads to a directory; false for an inaccessible path, whose error is
/// reported when it is opened.
///
/// - Throws: Exit code 5 if a disk fails.
package func isDirectoryPath(_ path: String) throws(BroadsideError) -> Bool {
    let information = SystemCall.status(path)
    let isKnown = try isKnown(information, path)
    return isKnown && (information?.st_mode ?? 0) & S_IFMT == S_IFDIR
}

/// Returns whether `information` is not nil. If it is nil, `errno` must have the reason.
private func isKnown(_ information: stat?, _ path: String) throws(BroadsideError) -> Bool {
    if information != nil { return true }
    let number = errno
    guard FileFailure(errno: number) == .unusable else {
        throw .file(InputName(path), errno: number, "")
    }
    return false
}

/// Returns the modification time of a regular file, in milliseconds since 1970; nil for any other
/// file.
package func modifiedAtMilliseconds(_ path: String) -> UInt64? {
    guard let information = SystemCall.status(path), information.st_mode & S_IFMT == S_IFREG,
        information.st_mtim.tv_sec >= 0
    else { return nil }
    return UInt64(information.st_mtim.tv_sec) * 1000
        + UInt64(information.st_mtim.tv_nsec) / 1_000_000
}
