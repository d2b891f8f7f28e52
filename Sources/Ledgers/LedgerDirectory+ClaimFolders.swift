internal import BroadsideLedgerFormat
import BroadsideSupport
internal import Glibc

// Where the claims on a ledger are. What can't be read is no folder without claims: that would let an old
// copy of the ledger continue.

extension LedgerDirectory {
    /// What to do about a folder of claims that can't be used.
    static let claimAdvice = "the folder of the ledger must be writable"

    /// The folder beside the ledger; nil if that is on another file system, if there is none, or if it may not
    /// be read.
    ///
    /// - Throws: Exit code 5, where a disk fails: a claim may be there.
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

    /// Another folder with claims; nil if there is none.
    ///
    /// - Throws: Exit code 5, where a disk fails.
    func folder(at path: String, _ manifest: Manifest) throws(BroadsideError) -> ClaimFolder? {
        let descriptor = SystemCall.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return try noFolder(path) }
        return ClaimFolder(descriptor, path: path, manifest: manifest)
    }

    /// That a folder is not there; `errno` says whether that is so.
    private func noFolder(_ path: String) throws(BroadsideError) -> ClaimFolder? {
        let number = errno
        guard FileFailure(errno: number) == .failed else { return nil }
        throw BroadsideError(
            option: "ledger", "\(path): \(FileFailure.message(errno: number, Self.claimAdvice))",
            exitCode: ExitCode.disk)
    }
}
