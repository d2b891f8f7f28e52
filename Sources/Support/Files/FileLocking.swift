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
        case "lustre": "have it mounted with -o flock"
        case "nfs": "have the server's lock manager (lockd, rpc.statd) started, or use NFSv4"
        case "nfs4": "have locks enabled on the NFS server, or its limit on locks raised"
        case "cifs", "smb3": "have it mounted without nobrl and nolock"
        case "9p", "virtiofs": "have locks of the shared folder enabled on its host"
        case let type? where type.hasPrefix("fuse"): "have flock enabled in its options"
        default: "have flock enabled there"
        }
    }
}
