internal import Glibc

/// The attributes that identify the state of a file, for detecting changes.
package struct FileStamp: Equatable, Sendable {
    private let device: UInt64
    private let inode: UInt64
    private let byteCount: Int64
    private let modifiedSeconds: Int
    private let modifiedNanoseconds: Int

    /// Records the state of a regular file; nil for any other file.
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

    /// Returns a description of the change to the file, or nil if it is unchanged.
    ///
    /// - Parameter path: The path at which the file was opened. Another file at that path counts as
    ///   a change; a deleted path does not, because the open file still exists.
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
