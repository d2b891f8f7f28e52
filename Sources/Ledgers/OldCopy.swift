package import BroadsideLedgerFormat
import BroadsideSupport

/// Finding that a ledger is an old copy, because its campaign continued in another copy of it.
package struct OldCopy {
    /// The path of the old copy, where the newer attempt started, and the path of its claim.
    package let problem: String
    /// Directory in which the newer attempt started; nil if it is the old copy's own path, is
    /// unknown, or no longer exists.
    let newer: String?

    /// - Parameters:
    ///   - path: The old copy.
    ///   - claims: Folder with the claim of the newer attempt.
    ///   - number: Number of that claim.
    init(of path: String, _ claims: ClaimFolder, _ number: UInt32) {
        var other: String?
        if case .claim(_, let ledger, _) = claims.read(number) { other = ledger }
        let isHere = other == absolutePath(path)
        newer = isHere ? nil : other.flatMap { (try? isDirectoryPath($0)) == true ? $0 : nil }
        let description = isHere ? "another copy of it" : other ?? "another directory"
        problem =
            "\(path) is an old copy: a newer attempt at this campaign started in \(description) "
            + "(\(claims.claimPath(number)))"
    }

    /// Warning for a command that reads the old copy.
    package var warning: String {
        "\(problem), so rows that it sent are missing here: "
            + (newer == nil
                ? "put the newest copy back, if it still exists" : "read the newer copy")
    }
}

extension LedgerDirectory {
    /// Returns the finding that claims show this ledger to be an old copy; nil if they do not show
    /// it, or can't be read. Changes nothing.
    ///
    /// A ledger made by `ledger merge` or `ledger repair` is not checked: it is a copy on purpose.
    package func oldCopy(_ manifest: Manifest) -> OldCopy? {
        guard manifest.shards == nil else { return nil }
        return try? withFolder { () throws(BroadsideError) -> OldCopy? in
            guard let (claims, number) = try newerClaim(manifest), try origin() == nil,
                try !fileExists("\(path)/\(Self.repairedName)"), !isInUse
            else { return nil }
            return OldCopy(of: path, claims, number)
        }
    }

    /// Returns a claim that a newer copy of this ledger made; nil if there is none.
    private func newerClaim(
        _ manifest: Manifest
    ) throws(BroadsideError) -> (claims: ClaimFolder, number: UInt32)? {
        guard let here = try parentFolder(manifest) else { return nil }
        let own = try attemptRecord(manifest)
        var folders = [here]
        if let own, own.parent != here.path, let before = try folder(at: own.parent, manifest),
            !before.isSame(as: here)
        {
            folders.append(before)
        }
        for claims in folders {
            // A newer attempt removes this claim before it sends. A folder may have thousands of
            // files, so its names are read only if the claim is missing.
            if let own, own.confirmed == own.claimed,
                case .claim(let nonce, _, _) = claims.read(own.claimed), nonce == own.nonce
            {
                continue
            }
            if let number = try newerClaim(in: claims, manifest) { return (claims, number) }
        }
        return nil
    }

    /// Returns the number of a claim that a newer copy of this ledger made in a folder; nil if there
    /// is none.
    private func newerClaim(
        in claims: ClaimFolder, _ manifest: Manifest
    ) throws(BroadsideError) -> UInt32? {
        // The claims are listed before the record is read: a run that starts meanwhile records its
        // claim before it makes the claim.
        let numbers = try claims.numbers()
        guard let newest = numbers.max() else { return nil }
        guard let own = try attemptRecord(manifest) else {
            return missingRecord(claims, newest) == nil ? newest : nil
        }
        if let foreign = numbers.filter(own.isForeign).max() { return foreign }
        guard let nonce = own.nonce(of: newest),
            case .claim(let other, _, _) = claims.read(newest), other != nonce
        else { return nil }
        return newest
    }
}

extension LedgerReader {
    /// Warning that this ledger is an old copy; nil if claims do not show it.
    package var oldCopyWarning: String? { directory.oldCopy(manifest)?.warning }

    /// Prints a warning if claims show that this ledger is an old copy.
    package func warnIfOldCopy() {
        if let oldCopyWarning { standardErrorLine("broadside: warning: \(oldCopyWarning)") }
    }
}
