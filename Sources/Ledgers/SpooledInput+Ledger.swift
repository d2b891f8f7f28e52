internal import BroadsideLedgerFormat
import BroadsideLists
package import BroadsideSupport
internal import Glibc

extension SpooledInput {
    /// Copies standard input, decoded, to a ledger's directory. If an earlier run did so, only
    /// checks that the input is the same list.
    ///
    /// - Parameters:
    ///   - directory: Directory of the ledger, locked.
    ///   - advice: Returns the advice for another list, which follows that on continuing with the
    ///     original list.
    /// - Returns: The path of the copy.
    package static func spool(
        into directory: LedgerDirectory, otherwise advice: () -> String
    ) throws(BroadsideError) -> String {
        if try directory.hasManifest {
            guard let spool = try directory.spool() else {
                throw .usage(
                    "tokens",
                    "-: the campaign of --ledger \(directory.path) began with a "
                        + "file: name that file")
            }
            try checkSame(directory, advice)
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
    /// Rows that `ledger forget` erased from the ledger's copy are not compared.
    private static func checkSame(
        _ directory: LedgerDirectory, _ advice: () -> String
    ) throws(BroadsideError) {
        do throws(BroadsideError) {
            guard try hasInput() else { return }
            let input = try ListBytes(opening: ListBytes.standardInput, option: "tokens")
            let list = try ListBytes(opening: directory.spoolPath, option: "tokens")
            let difference = try difference(of: input, from: list, isErased: isErased)
            guard let difference else { return }
            throw .usage(
                "tokens",
                "-: standard input is not the list with which the campaign in "
                    + "--ledger \(directory.path) began (\(difference)): add </dev/null to "
                    + "continue with the original list, or \(advice())")
        } catch {
            guard error.exitCode == ExitCode.rowsRemain else { throw error }
            throw BroadsideError(
                "stopped by a signal before standard input was compared with the "
                    + "campaign's list: nothing was sent; start again",
                exitCode: ExitCode.rowsRemain)
        }
    }

    /// Whether a byte of a ledger's copy of the list may be a mask in place of another byte. The
    /// original list may contain the mask, too, in text that does not belong to a token.
    static func isErased(_ kept: UInt8, _ given: UInt8) -> Bool {
        // An erasure replaces letters, digits and bytes that are not ASCII.
        kept == DeviceSet.mask
            && (given >= 0x80 || (0x30...0x39).contains(given)
                || (0x61...0x7A).contains(given | 0x20))
    }
}
