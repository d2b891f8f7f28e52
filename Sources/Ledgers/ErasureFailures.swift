import BroadsideSupport

/// Ledgers from which `ledger forget` could not erase devices, or not all. It continues with the
/// others.
struct ErasureFailures {
    private var failures: [(path: String, error: BroadsideError, isPartial: Bool)] = []
    /// Whether there is only one ledger, whose error is then the error of the command.
    private let isAlone: Bool

    /// - Parameter ledgerCount: Number of ledgers that the command is to erase devices from.
    init(ledgerCount: Int) { isAlone = ledgerCount == 1 }

    var isEmpty: Bool { failures.isEmpty }

    /// Whether devices were erased from each of these ledgers, although not completely.
    var areAllPartial: Bool { failures.allSatisfy(\.isPartial) }

    func contains(_ path: String) -> Bool { failures.contains { $0.path == path } }

    /// Reports a ledger's error, and takes note of the ledger.
    ///
    /// - Throws: The error if it concerns not only this ledger: a stop signal came.
    mutating func add(_ error: BroadsideError, _ path: String) throws(BroadsideError) {
        guard error.exitCode != ExitCode.rowsRemain else { throw error }
        add(error, path, isPartial: false)
    }

    /// Reports why a ledger's devices were not all erased, and takes note of the ledger.
    mutating func add(partial error: BroadsideError, _ path: String) {
        add(error, path, isPartial: true)
    }

    private mutating func add(_ error: BroadsideError, _ path: String, isPartial: Bool) {
        if !isAlone { standardErrorLine("broadside: \(error.message)") }
        failures.append((path, error, isPartial))
    }

    /// Names all these ledgers.
    ///
    /// - Throws: If there are any, an error with the exit code of the first one.
    func finish() throws(BroadsideError) {
        guard let first = failures.first else { return }
        guard !isAlone else { throw first.error }
        let ledgers = failures.count == 1 ? "this ledger" : "these ledgers"
        throw BroadsideError(
            option: "ledger",
            "\(failures.map(\.path).joined(separator: ", ")): devices in \(ledgers) are not, or not all, "
                + "erased, for the reasons above: once the causes are gone, run the same command again",
            exitCode: first.error.exitCode)
    }
}
