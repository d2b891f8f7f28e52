import BroadsideSupport

/// Ledgers from which `ledger forget` could not erase devices; it continues with the others.
struct ErasureFailures {
    private var paths: [String] = []
    /// Exit code of the first failure.
    private var exitCode = ExitCode.complete

    var isEmpty: Bool { paths.isEmpty }

    func contains(_ path: String) -> Bool { paths.contains(path) }

    /// Reports a ledger's error, and takes note of the ledger.
    ///
    /// - Throws: The error if it concerns not only this ledger: a stop signal came.
    mutating func add(_ error: BroadsideError, _ path: String) throws(BroadsideError) {
        guard error.exitCode != ExitCode.rowsRemain else { throw error }
        standardErrorLine("broadside: \(error.message)")
        if paths.isEmpty { exitCode = error.exitCode }
        paths.append(path)
    }

    /// Names all these ledgers.
    ///
    /// - Throws: The exit code of the first failure, if there is one.
    func finish() throws(BroadsideError) {
        guard !isEmpty else { return }
        let ledgers = paths.count == 1 ? "this ledger" : "these ledgers"
        throw BroadsideError(
            option: "ledger",
            "\(paths.joined(separator: ", ")): devices in \(ledgers) are not, or not all, erased, for "
                + "the reasons above: once the causes are gone, run the same command again",
            exitCode: exitCode)
    }
}
