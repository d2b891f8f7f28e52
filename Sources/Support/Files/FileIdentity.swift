internal import Glibc

/// The identity of a file, independent of its path, with its permissions.
package struct FileIdentity: Equatable {
    private let device: UInt64
    private let inode: UInt64
    /// The permission bits.
    package let permissions: UInt32
    package let isRegular: Bool
    package let isDirectory: Bool

    private init(_ information: stat) {
        device = UInt64(information.st_dev)
        inode = UInt64(information.st_ino)
        permissions = UInt32(information.st_mode & 0o777)
        isRegular = information.st_mode & S_IFMT == S_IFREG
        isDirectory = information.st_mode & S_IFMT == S_IFDIR
    }

    package init?(descriptor: Int32) {
        guard let information = SystemCall.status(of: descriptor) else { return nil }
        self.init(information)
    }

    /// Identifies the file at a path, following links; nil if the path has none.
    package init?(path: String) {
        guard let information = SystemCall.status(path) else { return nil }
        self.init(information)
    }

    /// Identifies the file or link at a path, without following the link; nil if there is neither.
    init?(link path: String) {
        guard let information = SystemCall.linkStatus(path) else { return nil }
        self.init(information)
    }

    package static func == (first: Self, second: Self) -> Bool {
        first.device == second.device && first.inode == second.inode
    }
}
