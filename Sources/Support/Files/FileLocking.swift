internal import Glibc

/// Advice for file systems without file locks.
package enum FileLocking {
    /// Returns the problem and its remedy; nil if the error does not concern the file system's
    /// capabilities.
    ///
    /// - Parameters:
    ///   - number: The value of `errno` after flock(2).
    ///   - type: The type of the file system; nil if unknown.
    package static func advice(errno number: Int32, fileSystem type: String?) -> String? {
        guard [ENOSYS, ENOLCK, EOPNOTSUPP, EINVAL].contains(number) else { return nil }
        let what = type.map { "its file system (\($0))" } ?? "its file system"
        return "\(what) does not lock files (\(describe(errno: number))): \(step(type)), or name a "
            + "ledger on another file system"
    }

    private static func step(_ type: String?) -> String {
        switch type {
        case "lustre": "mount it with -o flock"
        case "nfs": "start the server's lock manager (lockd, rpc.statd), use NFSv4"
        case "nfs4": "enable locks on the NFS server, raise its limit on locks"
        case "cifs", "smb3": "mount it without nobrl and nolock"
        case "9p", "virtiofs": "enable locks of the shared folder on its host"
        case let type? where type.hasPrefix("fuse"): "enable flock in its options"
        default: "enable flock there"
        }
    }
}
