import BroadsideSupport
internal import Glibc

/// Where a ledger's directory is, while its run goes on.
package struct LedgerLocation: Sendable {
    private let path: String
    private let device: UInt64
    private let inode: UInt64

    /// - Parameters:
    ///   - path: The directory's.
    ///   - descriptor: The directory itself, open.
    init(path: String, descriptor: Int32) {
        self.path = path
        let own = SystemCall.status(of: descriptor)
        device = own.map { UInt64($0.st_dev) } ?? 0
        inode = own.map { UInt64($0.st_ino) } ?? 0
    }

    /// Whether nothing, or another directory, is under its name. May wait for a file system. One that
    /// can't be asked for the moment has lost nothing.
    package var isVacant: Bool {
        guard inode != 0 else { return false }
        guard let found = SystemCall.status(path) else {
            return errno == ENOENT || errno == ENOTDIR || errno == ESTALE
        }
        return (UInt64(found.st_dev), UInt64(found.st_ino)) != (device, inode)
    }
}
