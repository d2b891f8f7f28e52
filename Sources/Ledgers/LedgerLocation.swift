import BroadsideSupport
internal import Glibc

/// Location of a ledger's directory during its run.
package struct LedgerLocation: Sendable {
    private let path: String
    private let device: UInt64
    private let inode: UInt64

    /// - Parameters:
    ///   - path: Path of the directory.
    ///   - descriptor: Descriptor of the open directory.
    init(path: String, descriptor: Int32) {
        self.path = path
        let own = SystemCall.status(of: descriptor)
        device = own.map { UInt64($0.st_dev) } ?? 0
        inode = own.map { UInt64($0.st_ino) } ?? 0
    }

    /// Whether the path is unused or names another directory. May wait for a file system. If the
    /// path can't be accessed at the moment, this is false.
    package var isVacant: Bool {
        guard inode != 0 else { return false }
        guard let found = SystemCall.status(path) else {
            return errno == ENOENT || errno == ENOTDIR || errno == ESTALE
        }
        return (UInt64(found.st_dev), UInt64(found.st_ino)) != (device, inode)
    }
}
