import BroadsideLists
package import BroadsideSupport
internal import Glibc

extension SpooledInput {
    /// Copies standard input, decoded, to a ledger's directory. If an earlier run did so, only
    /// checks that the input is the same list.
    ///
    /// - Returns: The path of the copy.
    package static func spool(into directory: LedgerDirectory) throws(BroadsideError) -> String {
        if try directory.hasManifest {
            guard let spool = try directory.spool() else {
                throw .usage(
                    "tokens",
                    "-: the campaign of --ledger \(directory.path) began with a "
                        + "file: name that file")
            }
            try checkSame(directory)
            return spool
        }
        let input = try ListBytes(opening: ListBytes.standardInput, option: "tokens")
        return try write(into: directory) { (descriptor, name) throws(BroadsideError) in
            try copy(input, to: descriptor, name: name)
        }
    }

    /// Stores a list in a ledger's directory, unless an earlier run has stored it.
    ///
    /// - Parameters:
    ///   - directory: Directory of the ledger, locked.
    ///   - write: Writes the list to the given descriptor. The given text is the file's name for
    ///     messages.
    /// - Returns: The path of the list.
    package static func spool(
        into directory: LedgerDirectory, by write: (Int32, String) throws(BroadsideError) -> Void
    ) throws(BroadsideError) -> String {
        guard try directory.hasManifest else { return try Self.write(into: directory, write) }
        guard let spool = try directory.spool() else {
            throw .usage(
                "tokens",
                "are a sequence, and the campaign of \(directory.path) began with a file: name "
                    + "that file"
            )
        }
        return spool
    }

    private static func write(
        into directory: LedgerDirectory, _ write: (Int32, String) throws(BroadsideError) -> Void
    ) throws(BroadsideError) -> String {
        let descriptor = try directory.createFile(LedgerDirectory.spoolName)
        defer { close(descriptor) }
        do throws(BroadsideError) {
            try write(descriptor, directory.spoolPath)
            try directory.putInPlace(LedgerDirectory.spoolName, descriptor)
        } catch {
            directory.discardFile(LedgerDirectory.spoolName)
            throw error
        }
        return directory.spoolPath
    }

    /// Checks that standard input is the list with which the campaign started. A resume does not
    /// need the input, so an empty or closed input, a terminal and `/dev/null` are accepted.
    private static func checkSame(_ directory: LedgerDirectory) throws(BroadsideError) {
        do throws(BroadsideError) {
            guard try hasInput() else { return }
            let input = try ListBytes(opening: ListBytes.standardInput, option: "tokens")
            let list = try ListBytes(opening: directory.spoolPath, option: "tokens")
            guard let difference = try difference(of: input, from: list) else { return }
            throw .usage(
                "tokens",
                "-: standard input is not the list with which the campaign in "
                    + "--ledger \(directory.path) began (\(difference)): name another "
                    + "ledger for this list, or add </dev/null to continue with the "
                    + "original list")
        } catch {
            guard error.exitCode == ExitCode.rowsRemain else { throw error }
            throw BroadsideError(
                "stopped by a signal before standard input was compared with the "
                    + "campaign's list: nothing was sent; start again",
                exitCode: ExitCode.rowsRemain)
        }
    }
}
