internal import BroadsideLedgerFormat
package import BroadsideSupport
internal import Glibc

// Operations on the ledgers of a nightly campaign: writing a report page into each ledger, and
// removing old ledgers.

extension LedgerDirectory {
    /// Name of the report page in a ledger's directory.
    package static let pageName = "report.html"

    /// Writes the report page into a ledger's directory, atomically.
    package static func writePage(_ bytes: [UInt8], into path: String) throws(BroadsideError) {
        let directory = try openToRead(path)
        try directory.openFolder(mustBeOwn: true)
        try directory.replace(pageName, with: bytes)
    }

    /// Removes the permissions of group and others from a ledger's directory if it has the setgid bit.
    /// Kubernetes sets this bit and gives the group access to each directory of a volume when a pod
    /// starts (`fsGroup`).
    ///
    /// - Returns: Whether permissions were removed.
    package static func closeToGroup(_ path: String) throws(BroadsideError) -> Bool {
        let folder = SystemCall.open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard folder >= 0 else { return false }
        defer { close(folder) }
        guard let information = SystemCall.status(of: folder), information.st_uid == geteuid(),
            information.st_mode & S_ISGID != 0, information.st_mode & S_IWOTH == 0,
            information.st_mode & othersAccess != 0
        else { return false }
        guard fchmod(folder, information.st_mode & 0o7777 & ~othersAccess) == 0 else {
            throw BroadsideError(
                "\(path) is open to its group, and that can't be changed: "
                    + describe(errno: errno), exitCode: ExitCode.disk)
        }
        return true
    }

    // MARK: Removal

    /// Reason why a ledger is not removed.
    package enum RemovalRefusal: Equatable, Sendable {
        /// The directory is not a ledger, is incomplete, belongs to another user, or is a merged
        /// ledger.
        case foreign
        /// Some rows of the ledger remain.
        case unfinished
        /// A run or a reader is using the ledger.
        case inUse
        /// The directory contains a file that no run created.
        case holds(String)
    }

    /// Renames a finished ledger to a hidden name in the same folder. Commands do not look for
    /// ledgers under hidden names.
    ///
    /// A power cut leaves the ledger whole, under one of the two names.
    ///
    /// - Parameters:
    ///   - path: The ledger's directory.
    ///   - hidden: Its new path, in the same folder.
    /// - Returns: The reason why the ledger was not hidden; nil if it was hidden.
    package static func hideFinished(
        _ path: String, as hidden: String
    ) throws(BroadsideError) -> RemovalRefusal? {
        guard try !isLink(path), try unlocked(path).content() == .ledger else { return .foreign }
        let directory = try openToRead(path)
        let manifest = try directory.readManifest()
        guard manifest.shards == nil, try directory.origin() == nil else { return .foreign }
        guard manifest.isWholeListFinished else { return .unfinished }
        if let name = try directory.names().first(where: { !isOwn($0) }) { return .holds(name) }
        do throws(BroadsideError) {
            _ = try closeToGroup(path)
            try directory.lock()
        } catch {
            if error.exitCode == ExitCode.inUse { return .inUse }
            if error.exitCode == ExitCode.badRequest { return .foreign }
            throw error
        }
        // A run may have continued the ledger before it was locked here.
        guard try directory.readManifest().isWholeListFinished else { return .unfinished }
        guard SystemCall.rename(path, hidden) == 0, syncFolder("\(hidden)/..") else {
            throw BroadsideError("\(path): \(describe(errno: errno))", exitCode: ExitCode.disk)
        }
        return nil
    }

    /// Removes a hidden ledger and the claims on it. The manifest, which identifies the claims, is
    /// removed last.
    package static func removeHidden(_ path: String) throws(BroadsideError) {
        guard try fileExists(path) else { return }
        let directory = try openToRead(path)
        try directory.openFolder(mustBeOwn: true)
        if try directory.hasManifest, let manifest = try? directory.readManifest(),
            let claims = try directory.parentFolder(manifest)
        {
            for number in try claims.numbers() {
                SystemCall.unlink(claims.name(number), in: claims.descriptor)
            }
        }
        let names = try directory.names()
        for name in names where name != manifestName && isOwn(name) {
            SystemCall.unlink(name, in: directory.folder)
        }
        SystemCall.unlink(manifestName, in: directory.folder)
        guard SystemCall.rmdir(path) == 0 || errno == ENOENT else {
            throw BroadsideError("\(path): \(describe(errno: errno))", exitCode: ExitCode.disk)
        }
    }

    /// Whether a path is a symbolic link.
    private static func isLink(_ path: String) throws(BroadsideError) -> Bool {
        guard try fileExists(path), let information = SystemCall.linkStatus(path) else {
            return false
        }
        return information.st_mode & S_IFMT == S_IFLNK
    }
}
