package import BroadsideLists
package import BroadsideSupport
internal import Glibc

extension ExclusionScan {
    /// The rows to be skipped: those that an earlier run found, or found now.
    ///
    /// - Parameter isNew: Whether no run has begun the campaign.
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
