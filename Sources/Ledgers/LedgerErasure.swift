internal import BroadsideAPNs
import BroadsideLedgerFormat
public import BroadsideLists
import BroadsideRows
public import BroadsideSupport
internal import Glibc

/// Implementation of `ledger forget`: erases devices from ledgers.
public enum LedgerErasure {
    /// Erases the devices of a list from ledgers, one ledger after the other.
    ///
    /// - Parameters:
    ///   - tokens: List of the devices, or one device.
    ///   - tokenColumn: Column of the list with the tokens; nil: `token`.
    ///   - directories: Directories of ledgers, or with ledgers below them.
    ///   - isDryRun: Whether to report what would be erased, and to change nothing.
    ///   - isConfirmed: Whether to erase without a question. Only a person at a terminal is asked.
    ///   - report: Receives a line about each ledger once its erasure is durable, and a final line
    ///     about all ledgers.
    /// - Throws: Exit code 2 if the list or a directory is wrong, the person does not confirm or a
    ///   ledger can't record all rows that a resume could send, 5 if a disk fails, a ledger is
    ///   damaged or this user has no permission to read it, or the list of a ledger with rows to send
    ///   can't be read, 7 if another process uses a ledger. If a ledger is the cause, the erasure from
    ///   all other ledgers is complete, and the error names all ledgers from which devices were not,
    ///   or not all, erased.
    public static func run(
        tokens: TokenSource, tokenColumn: String? = nil, ledgers directories: [String],
        isDryRun: Bool = false, isConfirmed: Bool = true, report: (String) -> Void
    ) throws(BroadsideError) {
        let collection = try LedgerCollection(directories, option: "ledger", findsPrepared: true)
        var devices = DeviceSet()
        try read(tokens, tokenColumn, into: &devices)
        collection.warn(option: "ledger")
        let closed = collection.closedLedgers + collection.paths.filter(LedgerDirectory.isClosed)
        let ledgers = collection.paths.filter { !closed.contains($0) }
        let paths = ledgers + collection.prepared
        let asks = !isConfirmed && isatty(STDIN_FILENO) == 1
        var failures = ErasureFailures(ledgerCount: paths.count)
        if isDryRun || asks {
            let affectedCount = try preview(
                ledgers, prepared: collection.prepared, &devices, &failures, isDryRun: isDryRun
            ) { if isDryRun { report($0) } else { standardError($0) } }
            guard !isDryRun else {
                report(
                    "\(found(devices)) in \(counted(affectedCount, "ledger")); "
                        + "dry run: nothing was changed")
                return try finish(failures, closed)
            }
            if affectedCount > 0 { try confirm(devices, affectedCount) }
        }
        for path in collection.prepared where !failures.contains(path) {
            try eachLedger(path, of: paths, &failures) { () throws(BroadsideError) in
                report("\(path): \(try PreparationErasure(path).write())")
                return nil
            }
        }
        for path in ledgers where !failures.contains(path) {
            try eachLedger(path, of: paths, &failures) { () throws(BroadsideError) in
                devices.beginLedger()
                let erasure = try Erasure(path, &devices)
                report("\(path): \(try erasure.write(&devices))")
                return erasure.failure
            }
        }
        let scope = closed.isEmpty ? "" : " in the ledgers that this user may read"
        report(
            "\(found(devices))\(failures.areAllPartial ? scope : " in the other ledgers"); lists, exports, summaries and backups elsewhere are "
                + "unchanged")
        try finish(failures, closed)
    }

    /// Does something with one of several ledgers. If it fails, the other ledgers follow.
    ///
    /// - Parameter body: Returns the reason why a resume would send to some of the devices; nil if
    ///   there is none.
    private static func eachLedger(
        _ path: String, of paths: [String], _ failures: inout ErasureFailures,
        _ body: () throws(BroadsideError) -> BroadsideError?
    ) throws(BroadsideError) {
        try SignalWatch.stopIfRequested()
        do throws(BroadsideError) {
            if let rest = try body() { failures.add(partial: rest, path) }
        } catch {
            guard paths.count > 1 else { throw error }
            try failures.add(error, path)
        }
    }

    /// Reports the ledgers from which devices were not erased.
    private static func finish(
        _ failures: ErasureFailures, _ closed: [String]
    ) throws(BroadsideError) {
        guard !failures.isEmpty, !closed.isEmpty else {
            try failures.finish()
            return try refuseClosed(closed)
        }
        do throws(BroadsideError) {
            try refuseClosed(closed)
        } catch {
            standardErrorLine("broadside: \(error.message)")
        }
        try failures.finish()
    }

    /// Reports ledgers from which nothing was erased, because this user has no permission to read
    /// them.
    ///
    /// - Throws: Exit code 5 if there are such ledgers.
    private static func refuseClosed(_ paths: [String]) throws(BroadsideError) {
        guard !paths.isEmpty else { return }
        throw BroadsideError(
            option: "ledger",
            "\(LedgerDirectory.listed(paths)): \(describe(errno: EACCES)), so devices in "
                + "\(paths.count == 1 ? "this ledger" : "these ledgers") are not erased: run the same "
                + "command as \(paths.count == 1 ? "its" : "their") owner",
            exitCode: ExitCode.disk)
    }

    private static func found(_ devices: borrowing DeviceSet) -> String {
        "\(grouped(devices.foundAnywhereCount)) of "
            + "\(counted(devices.count, "device")) found"
    }

    /// Reads all ledgers, and describes what an erasure would change.
    ///
    /// - Parameters:
    ///   - prepared: Directories of runs that ended before their campaign began.
    ///   - isDryRun: Whether no erasure follows, which would report the same failures.
    ///   - report: Receives a line about each ledger.
    /// - Returns: Number of ledgers that would change.
    private static func preview(
        _ ledgers: [String], prepared: [String], _ devices: inout DeviceSet,
        _ failures: inout ErasureFailures, isDryRun: Bool, report: (String) -> Void
    ) throws(BroadsideError) -> Int {
        var affectedCount = 0
        let paths = ledgers + prepared
        for path in prepared {
            try eachLedger(path, of: paths, &failures) { () throws(BroadsideError) in
                let erasure = try PreparationErasure(path)
                if erasure.isAffected { affectedCount += 1 }
                report("\(path): \(erasure.preview)")
                return nil
            }
        }
        for path in ledgers {
            try eachLedger(path, of: paths, &failures) { () throws(BroadsideError) in
                devices.beginLedger()
                let erasure = try Erasure(path, &devices)
                if erasure.isAffected { affectedCount += 1 }
                report("\(path): \(erasure.preview(devices))")
                return isDryRun ? erasure.failure : nil
            }
        }
        return affectedCount
    }

    /// Asks a person at a terminal to confirm the erasure.
    private static func confirm(
        _ devices: borrowing DeviceSet, _ ledgerCount: Int
    ) throws(BroadsideError) {
        standardError(
            "\(found(devices)) in \(counted(ledgerCount, "ledger")). Erased devices can't be "
                + "restored. Type yes to erase them:")
        guard readLine() == "yes" else {
            throw .request("not confirmed: nothing was erased; in a script, confirm with --yes")
        }
    }
}
