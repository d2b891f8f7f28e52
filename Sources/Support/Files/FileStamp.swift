internal import Glibc

/// What tells a file's state from any other of it, and from another file's.
package struct FileStamp: Equatable, Sendable {
    private let device: UInt64
    private let inode: UInt64
    private let byteCount: Int64
    private let modifiedSeconds: Int
    private let modifiedNanoseconds: Int

    /// nil for what is not a regular file.
    package init?(descriptor: Int32) {
        guard let information = SystemCall.status(of: descriptor),
            information.st_mode & S_IFMT == S_IFREG
        else { return nil }
        device = UInt64(information.st_dev)
        inode = UInt64(information.st_ino)
        byteCount = Int64(information.st_size)
        modifiedSeconds = Int(information.st_mtim.tv_sec)
        modifiedNanoseconds = Int(information.st_mtim.tv_nsec)
    }

    /// What became of the file; nil where it is as it was.
    ///
    /// - Parameter path: where it was opened; another file in its place is a change, its name gone is
    ///   none: the file is there as long as it is open.
    package func change(descriptor: Int32, path: String?) -> String? {
        guard let now = FileStamp(descriptor: descriptor) else { return "it can't be checked" }
        if now.byteCount != byteCount {
            let how = now.byteCount < byteCount ? "shorter" : "longer"
            return "it is \(how), \(now.byteCount) bytes, not \(byteCount)"
        }
        if now != self { return "it was written to, or touched" }
        guard let path else { return nil }
        guard let information = SystemCall.status(path) else { return nil }
        let isOurs = UInt64(information.st_dev) == device && UInt64(information.st_ino) == inode
        return isOurs ? nil : "another file has replaced it"
    }
}
