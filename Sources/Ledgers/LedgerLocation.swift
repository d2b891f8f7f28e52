import BroadsideSupport
internal import Glibc

/// Location of a ledger's directory and segments during its run.
package struct LedgerLocation: Sendable {
    private let path: String
    private let device: UInt64
    private let inode: UInt64
    /// Names of the segments that the run writes.
    package var segments: [String] = []

    /// - Parameters:
    ///   - path: Path of the directory.
    ///   - descriptor: Descriptor of the open directory.
    init(path: String, descriptor: Int32) {
        self.path = path
        let own = SystemCall.status(of: descriptor)
        device = own.map { UInt64($0.st_dev) } ?? 0
        inode = own.map { UInt64($0.st_ino) } ?? 0
    }

    /// Whether the path is unused, names another directory, or names one without the segments. May
    /// wait for a file system. If the path can't be accessed at the moment, this is false.
    package var isLost: Bool {
        guard inode != 0 else { return false }
        guard let found = SystemCall.status(path) else { return Self.isMissing }
        return (UInt64(found.st_dev), UInt64(found.st_ino)) != (device, inode)
            || segments.contains {
                SystemCall.linkStatus("\(path)/\($0)") == nil && Self.isMissing
            }
    }

    /// Whether the latest call failed because there is no such file.
    private static var isMissing: Bool {
        errno == ENOENT || errno == ENOTDIR || errno == ESTALE
    }
}
