package import BroadsideLedgerFormat
import BroadsideSupport

/// Finding that a ledger is an old copy, because its campaign continued in another copy of it.
package struct OldCopy {
    /// The path of the old copy, where the newer attempt started, and the path of its claim.
    package let problem: String
    /// Directory in which the newer attempt started; nil if it is the old copy's own path, is
    /// unknown, or no longer exists.
    let newer: String?
    /// Whether `ledger merge` made the old copy.
    let isMerged: Bool

    /// - Parameters:
    ///   - path: The old copy.
    ///   - claims: Folder with the claim of the newer attempt.
    ///   - number: Number of that claim.
    ///   - isMerged: Whether `ledger merge` made the old copy.
    init(of path: String, _ claims: ClaimFolder, _ number: UInt32, isMerged: Bool = false) {
        self.isMerged = isMerged
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
    package var warning: String { warning(others: []) }

    /// Warning for a command that reads the old copy.
    ///
    /// - Parameter others: Paths of further old copies in the same merged ledger.
    func warning(others: [String]) -> String {
        let advice =
            isMerged
            ? "merge the originals again"
            : newer == nil ? "put the newest copy back, if it still exists" : "read the newer copy"
        let also =
            others.isEmpty
            ? ""
            : "; \(LedgerDirectory.listed(others)) \(others.count == 1 ? "is" : "are") old, too"
        return "\(problem), so rows that it sent are missing here\(also): \(advice)"
    }

    /// What to do instead of a resume of the old copy.
    var resumeAdvice: String {
        newer != nil
            ? "resume the newer copy"
            : "resume the newer copy; if that copy is lost, each row that is not settled here may "
                + "have been sent: do not send these rows, or send them in a new campaign, in "
                + "which some devices get the notification twice"
    }
}

extension LedgerDirectory {
    /// Returns the finding that claims show this ledger to be an old copy; nil if they do not show
    /// it, or can't be read. Changes nothing.
    ///
    /// No run claims a merged ledger, so the result for its own manifest is nil. The copies in it
    /// have the records of their originals, and so has a ledger that `ledger repair` made.
    package func oldCopy(_ manifest: Manifest) -> OldCopy? {
        guard manifest.shards == nil else { return nil }
        return try? withFolder { () throws(BroadsideError) -> OldCopy? in
            let isMerged = try origin() != nil
            guard let (claims, number) = try newerClaim(manifest, isMerged: isMerged)
            else { return nil }
            // If this process has the lock, the ledger would seem to be in use.
            guard lockDescriptor >= 0 || !isInUse else { return nil }
            return OldCopy(of: path, claims, number, isMerged: isMerged)
        }
    }

    /// Returns a claim that a newer copy of this ledger made; nil if there is none.
    ///
    /// - Parameter isMerged: Whether `ledger merge` made this ledger, so that no run makes a claim
    ///   beside it.
    private func newerClaim(
        _ manifest: Manifest, isMerged: Bool
    ) throws(BroadsideError) -> (claims: ClaimFolder, number: UInt32)? {
        let own = try recordState().record
        var folders: [ClaimFolder] = []
        if !isMerged {
            guard let here = try parentFolder(manifest) else { return nil }
            folders.append(here)
        }
        if let own, own.parent != folders.first?.path,
            let before = try folder(at: own.parent, manifest),
            folders.first?.isSame(as: before) != true
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
        guard let own = try recordState().record else {
            // A repaired ledger without a record was made from a ledger that had lost its record.
            guard try !isRepaired, try belongsToOther(claims, newest) else { return nil }
            return newest
        }
        if let foreign = numbers.filter(own.isForeign).max() { return foreign }
        guard let nonce = own.nonce(of: newest),
            case .claim(let other, _, _) = claims.read(newest), other != nonce
        else { return nil }
        return newest
    }
}

extension LedgerReader {
    /// Warning that this ledger, or copies in this merged ledger, are old copies; nil if claims do
    /// not show it.
    package var oldCopyWarning: String? {
        var first: OldCopy?
        var others: [String] = []
        for ledger in ledgers {
            guard let copy = ledger.directory.oldCopy(ledger.manifest) else { continue }
            if first == nil { first = copy } else { others.append(ledger.directory.path) }
        }
        return first?.warning(others: others)
    }

    /// Prints a warning if claims show that this ledger is an old copy.
    package func warnIfOldCopy() {
        if let oldCopyWarning { standardErrorLine("broadside: warning: \(oldCopyWarning)") }
    }
}
