import BroadsideSupport
internal import Glibc

/// A ledger that is made from others. It appears in its place whole, by rename, or not at all: what a
/// killed process leaves beside it says that it is no ledger, so that no run begins in it.
final class UnfinishedLedger {
    /// What is made; it has another name until it is finished.
    let directory: LedgerDirectory
    private let output: String

    /// - Parameter output: Where it will be; nothing is there.
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

    /// Puts it in its place, where it survives a power cut.
    func finish() throws(BroadsideError) {
        directory.removeFile(LedgerDirectory.unfinishedName)
        try directory.syncDirectory()
        guard try !fileExists(output) else {
            throw .usage(
                "output",
                "\(output) was made by another process meanwhile: name a new directory")
        }
        guard SystemCall.rename(directory.path, output) == 0 else {
            throw BroadsideError(
                option: "output", "\(output): \(describe(errno: errno))", exitCode: ExitCode.disk)
        }
        guard syncFolder(OutputRule.parent(of: output)) else {
            throw BroadsideError(
                "\(output) is made, but its folder can't be synced: \(describe(errno: errno)): a power cut "
                    + "may take it away", exitCode: ExitCode.disk)
        }
    }

    /// Takes away what was made.
    ///
    /// - Parameter error: Why it could not be finished.
    /// - Returns: The same, with the name that the ledger was to have.
    func discard(_ error: BroadsideError) -> BroadsideError {
        // It may have been whole already: a part of it must not be taken for a ledger that lost its files.
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

    /// What says that a directory is a whole ledger.
    private static let removedFirst = [LedgerDirectory.manifestName]
    /// What says that it is no place for a campaign, and before that the lock, which says that it is one.
    private static let removedLast = [
        LedgerDirectory.lockName, LedgerDirectory.originName, LedgerDirectory.unfinishedName,
    ]

    /// Removes a directory, and those in it that hold copies, so that a kill in the middle leaves no ledger in
    /// parts, and no prepared one.
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
    /// Says that a directory is not yet a ledger.
    static let unfinishedName = "unfinished"

    /// What is said of such a directory.
    var unfinished: BroadsideError {
        .usage(
            "ledger",
            "\(path) is not a ledger, the repair or merge that was to make it was interrupted: remove it, "
                + "and repair or merge again")
    }
}
