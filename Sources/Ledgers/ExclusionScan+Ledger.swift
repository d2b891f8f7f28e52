package import BroadsideLists
package import BroadsideSupport
internal import Glibc

extension ExclusionScan {
    /// Returns the rows to be skipped, from the file of an earlier run or from a new scan.
    ///
    /// - Parameter isNew: Whether no run has started the campaign.
    package func list(
        in directory: LedgerDirectory, of list: TokenList, isNew: Bool
    ) throws(BroadsideError) -> ExclusionIndex {
        let name = LedgerDirectory.skipsName
        let path = "\(directory.path)/\(name)"
        if !isNew {
            if try fileExists(path),
                let known = try ExclusionIndex(
                    descriptor: directory.openFile(name), name: path, search: self)
            {
                return known
            }
        }
        let descriptor = try directory.createFile(name)
        do throws(BroadsideError) {
            _ = try run(list, to: descriptor, name: path)
            try directory.putInPlace(name, descriptor)
        } catch {
            close(descriptor)
            throw error
        }
        return try taken(descriptor, name: path)
    }
}
