import BroadsideSupport
internal import Glibc

/// Ledger that is being created. A rename makes it appear at its path atomically. Until then, a
/// marker shows that the directory is not a ledger yet. So no run starts in a directory that a
/// killed process left.
final class UnfinishedLedger {
    /// Directory of the new ledger. It has a temporary name until the ledger is finished.
    let directory: LedgerDirectory
    private let output: String

    /// - Parameter output: Final path of the ledger, which must not exist.
    init(at output: String) throws(BroadsideError) {
        self.output = output
        let temporaryPath = temporaryName(of: output)
        do throws(BroadsideError) {
            directory = try LedgerDirectory.create(
                temporaryPath, marker: LedgerDirectory.unfinishedName)
        } catch {
            throw Self.named(error, temporaryPath, output)
        }
        do throws(BroadsideError) {
            try mark()
        } catch {
            Self.remove(temporaryPath)
            throw Self.named(error, temporaryPath, output)
        }
    }

    private func mark() throws(BroadsideError) {
        try directory.replace(
            LedgerDirectory.unfinishedName, with: Array("not yet a ledger\n".utf8))
    }

    /// Renames the ledger to its final path and makes the name durable.
    func finish() throws(BroadsideError) {
        directory.removeFile(LedgerDirectory.unfinishedName)
        try directory.syncDirectory()
        guard try !fileExists(output) else {
            throw .usage(
                "output",
                "\(output) was created by another process in the meantime: name a new directory")
        }
        guard SystemCall.rename(directory.path, output) == 0 else {
            throw BroadsideError(
                option: "output", "\(output): \(describe(errno: errno))", exitCode: ExitCode.disk)
        }
        guard syncFolder(OutputRule.parent(of: output)) else {
            throw BroadsideError(
                "\(output) is complete, but its folder can't be synced: "
                    + "\(describe(errno: errno)): a power cut may lose it", exitCode: ExitCode.disk)
        }
    }

    /// Removes the unfinished ledger.
    ///
    /// - Parameter error: The reason why the ledger could not be finished.
    /// - Returns: The same error, with the final path.
    func discard(_ error: BroadsideError) -> BroadsideError {
        // The ledger may have been complete already. Its remains must not look like a ledger that
        // lost files.
        try? mark()
        Self.remove(directory.path)
        return Self.named(error, directory.path, output)
    }

    private static func named(
        _ error: BroadsideError, _ temporaryPath: String, _ output: String
    ) -> BroadsideError {
        var error = error
        let option = "--ledger \(temporaryPath)"
        error.message =
            error.message.starts(withBytes: option)
            ? "--output \(output)\(error.message.dropFirst(option.count))"
            : error.message.replacing(temporaryPath, with: output)
        return error
    }

    /// The files that identify a whole ledger, removed first.
    private static let removedFirst = [LedgerDirectory.manifestName]
    /// Files removed last. The lock, which allows a campaign to start, is removed before the
    /// markers, which prevent a start.
    private static let removedLast = [
        LedgerDirectory.lockName, LedgerDirectory.originName, LedgerDirectory.unfinishedName,
    ]

    /// Removes a directory, and the directories of copies in it. If the process is killed before
    /// the end, the remains do not look like a ledger, and no campaign can start in them.
    private static func remove(_ path: String, isCopy: Bool = false) {
        let others = (SystemCall.names(inDirectory: path) ?? [])
            .filter { !removedFirst.contains($0) && !removedLast.contains($0) }
        for name in removedFirst + others + removedLast {
            let inner = "\(path)/\(name)"
            let isDirectory =
                SystemCall.linkStatus(inner).map { $0.st_mode & S_IFMT == S_IFDIR } ?? false
            if isDirectory, !isCopy {
                remove(inner, isCopy: true)
            } else {
                SystemCall.unlink(inner)
            }
        }
        SystemCall.rmdir(path)
    }
}

extension LedgerDirectory {
    /// Marker of a directory that is not yet a ledger.
    static let unfinishedName = "unfinished"

    /// Error for a directory that is not yet a ledger.
    var unfinished: BroadsideError {
        .usage(
            "ledger",
            "\(path) is not a complete ledger, because the repair or merge that "
                + "writes it was interrupted: remove it, and repair or merge again")
    }
}
