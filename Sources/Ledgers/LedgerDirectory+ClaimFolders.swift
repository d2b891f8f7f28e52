internal import BroadsideLedgerFormat
import BroadsideSupport
internal import Glibc

// Folders with the claims on a ledger. A folder that can't be read does not count as empty, because
// an old copy of the ledger could then continue.

extension LedgerDirectory {
    /// Advice for a folder of claims that can't be used.
    static let claimAdvice = "the folder of the ledger must be writable"

    /// Opens the folder that contains the ledger; nil if the folder is on another file system, does
    /// not exist, or can't be read.
    ///
    /// - Throws: Exit code 5 if a disk fails, because a claim may exist.
    func parentFolder(_ manifest: Manifest) throws(BroadsideError) -> ClaimFolder? {
        let descriptor = SystemCall.open("..", in: folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return try noFolder("\(path)/..") }
        guard let own = SystemCall.status(of: folder),
            let parent = SystemCall.status(of: descriptor)
        else {
            close(descriptor)
            return try noFolder("\(path)/..")
        }
        guard own.st_dev == parent.st_dev, own.st_ino != parent.st_ino else {
            close(descriptor)
            return nil
        }
        guard let folderPath = SystemCall.realPath("/proc/self/fd/\(descriptor)") else {
            close(descriptor)
            return try noFolder("\(path)/..")
        }
        return ClaimFolder(descriptor, path: folderPath, manifest: manifest)
    }

    /// Error (errno) that prevents access to the folder that contains the ledger; nil if the folder
    /// can be opened. If `parentFolder` returns nil although there is no error, the folder is on
    /// another file system.
    var parentFailure: Int32? {
        let descriptor = SystemCall.open("..", in: folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return errno }
        close(descriptor)
        return nil
    }

    /// Opens another folder with claims; nil if it does not exist or can't be read.
    ///
    /// - Throws: Exit code 5 if a disk fails.
    func folder(at path: String, _ manifest: Manifest) throws(BroadsideError) -> ClaimFolder? {
        let descriptor = SystemCall.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return try noFolder(path) }
        return ClaimFolder(descriptor, path: path, manifest: manifest)
    }

    /// Returns nil if `errno` shows that the folder does not exist or can't be read. Throws if
    /// `errno` shows that a disk failed.
    private func noFolder(_ path: String) throws(BroadsideError) -> ClaimFolder? {
        let number = errno
        guard FileFailure(errno: number) == .failed else { return nil }
        throw BroadsideError(
            option: "ledger", "\(path): \(FileFailure.message(errno: number, Self.claimAdvice))",
            exitCode: ExitCode.disk)
    }
}
