package import BroadsideLedgerFormat
package import BroadsideSupport
internal import Glibc

// A ledger belongs to one attempt at a time, see
// docs/decisions/0012-a-ledger-belongs-to-one-attempt.md.

extension LedgerDirectory {
    /// Name of the ledger's own record of its attempts.
    static let epochName = "epoch"
    /// File that marks segments written by `ledger repair`. Such segments may be shorter than the
    /// positions in the claim of the last attempt.
    static let repairedName = "repaired"
    /// Maximum size of the file `epoch` in bytes.
    private static let epochLimit = 1 << 14

    /// Continues without a claim, because none can be made in the folder that contains the ledger.
    ///
    /// - Returns: Warnings; none if the ledger is a mount point that has its last claim.
    /// - Throws: Exit code 7 if a newer copy has a claim in the folder of the last claim; 2 for a
    ///   part of a campaign.
    func claimNothing(
        _ own: AttemptRecord?, _ manifest: Manifest
    ) throws(BroadsideError) -> [String] {
        let number = parentFailure
        if manifest.identity.part != nil {
            guard let number else { throw Self.mountPoint(path) }
            throw .usage(
                "ledger",
                "\(path)/..: \(describe(errno: number)): give this user read and write access to "
                    + "that folder, in which the claim of a part's ledger is made")
        }
        var warnings: [String] = []
        if let own, let before = try folder(at: own.parent, manifest),
            try newestClaim(before, own, manifest) < own.confirmed
        {
            warnings.append(continuedWithoutClaim(before, own))
        }
        if let number { warnings.append(unnoticed("\(path)/..", errno: number)) }
        return warnings
    }

    /// Checks that a new ledger of a part can get a claim, before its list is read and anything is
    /// created.
    ///
    /// - Parameter path: The ledger's directory, which may exist already.
    /// - Throws: Exit code 2 if the directory is a mount point.
    package static func checkForPart(_ path: String) throws(BroadsideError) {
        // The claim on a ledger that exists may be elsewhere.
        guard try !unlocked(path).hasManifest, let own = SystemCall.status("\(path)/."),
            let parent = SystemCall.status("\(path)/.."),
            own.st_dev != parent.st_dev || own.st_ino == parent.st_ino
        else { return }
        throw mountPoint(path)
    }

    private static func mountPoint(_ path: String) -> BroadsideError {
        .usage(
            "ledger",
            "\(path) is a mount point, but the claim of a part's ledger must be beside the ledger: "
                + "name a directory inside, such as \(path)/ledger")
    }

    /// Warning about a ledger whose last claim is in no folder that can be read.
    func continuedWithoutClaim(_ folder: ClaimFolder, _ own: AttemptRecord) -> String {
        "\(path) was copied or restored without its claim "
            + "(\(own.parent)/\(folder.name(own.confirmed))): the run continues here, but if the "
            + "original also continues, rows are sent twice"
    }

    /// Warning about a folder in which no claim can be made.
    func unnoticed(_ folder: String, errno number: Int32) -> String {
        "\(folder): \(describe(errno: number)): broadside can't make a claim there, so it will not "
            + "notice if an old copy of the ledger is resumed"
    }

    /// Refuses to start the ledger of a part if a claim shows that the part had a ledger, or that
    /// the campaign was divided into another number of parts.
    ///
    /// - Parameter manifest: Manifest of the new ledger.
    /// - Throws: Exit code 7; 2 if the number of parts differs.
    package func refuseLostPart(_ manifest: Manifest) throws(BroadsideError) {
        guard let part = manifest.identity.part, let here = try parentFolder(manifest) else {
            return
        }
        try here.refuseOtherDivision()
        let number = try here.newest()
        guard number > 0 else { return }
        var begun = "a ledger"
        if case .claim(_, let ledger, _) = here.read(number) { begun = ledger }
        throw BroadsideError(
            option: "ledger",
            "\(path): the ledger of part \(part.text) of campaign "
                + "\(manifest.campaign) was lost or moved (\(here.claimPath(number)) "
                + "shows that \(begun) was started), so a new ledger would send rows "
                + "again: put the lost ledger back and resume it, or remove the claim if "
                + "no row of this part was sent",
            exitCode: ExitCode.inUse)
    }

    /// Checks that no newer attempt has started. Called before this process replaces a file, which
    /// a newer attempt may have replaced already.
    ///
    /// - Throws: Exit code 7 if the claim was replaced; 5 if the claim can't be read, which does
    ///   not prove that there is a newer attempt.
    package func checkClaim() throws(BroadsideError) {
        guard let claim else { return }
        switch claim.standing {
        case .newest: return
        case .unknown(let number):
            throw BroadsideError(
                option: "ledger",
                "\(path): it is not known whether its claim "
                    + "\(claim.folder.claimPath(claim.number)) still exists: "
                    + "\(FileFailure.message(errno: number, Self.claimAdvice))",
                exitCode: ExitCode.disk)
        case .replaced: break
        }
        throw BroadsideError(
            option: "ledger",
            "\(path): a newer attempt has taken over this ledger "
                + "(\(claim.folder.claimPath(claim.number)) is gone): wait until it ends",
            exitCode: ExitCode.inUse)
    }

    /// Removes the claim, because the campaign was not started after all.
    func discardClaim() {
        guard let held = claim else { return }
        SystemCall.unlink(held.folder.name(held.number), in: held.folder.descriptor)
        claim = nil
    }

    /// Whether an error means that a folder is not writable. A failing disk, or too many open
    /// files, do not mean that.
    static func isClosedToClaims(_ number: Int32) -> Bool {
        number == EROFS || FileFailure(errno: number) == .unusable
    }

    /// Returns the ledger's record of its attempts; nil if it has none.
    ///
    /// - Throws: Exit code 5 if the record is damaged.
    func attemptRecord(_ manifest: Manifest) throws(BroadsideError) -> AttemptRecord? {
        switch try recordState() {
        case .intact(let record): return record
        case .missing: return nil
        case .damaged: throw try damagedRecord(manifest)
        }
    }

    /// Reads the file `epoch`.
    func recordState() throws(BroadsideError) -> AttemptRecord.State {
        guard let byteCount = try byteCount(of: Self.epochName) else { return .missing }
        guard byteCount <= Self.epochLimit else { return .damaged }
        let bytes = try readSmallFile(Self.epochName, limit: Self.epochLimit)
        return AttemptRecord(bytes).map { .intact($0) } ?? .damaged
    }

    /// Refuses a ledger that is not the newest copy, without making a claim.
    ///
    /// - Throws: Exit code 7.
    package func refuseOldCopy(_ manifest: Manifest) throws(BroadsideError) {
        try withFolder { () throws(BroadsideError) in
            guard let here = try parentFolder(manifest) else { return }
            _ = try newestClaim(here: here, try attemptRecord(manifest), manifest)
        }
    }

    /// Returns the number of the newest claim; 0 if there is none.
    ///
    /// - Returns: `before` is the ledger's previous folder, and `inBefore` is the newest number in
    ///   that folder. If the ledger has no previous folder with claims, `before` is nil, and
    ///   `inBefore` is 0.
    func newestClaim(
        here: ClaimFolder, _ own: AttemptRecord?, _ manifest: Manifest
    ) throws(BroadsideError) -> (number: UInt32, before: ClaimFolder?, inBefore: UInt32) {
        var inBefore: UInt32 = 0
        var before: ClaimFolder?
        if let own, own.parent != here.path { before = try folder(at: own.parent, manifest) }
        // The previous path may lead here, by a link or a mount.
        if let folder = before, folder.isSame(as: here) { before = nil }
        if let before { inBefore = try newestClaim(before, own, manifest) }
        let inHere = try newestClaim(here, own, manifest)
        // If the ledger's previous folder has no claims, it is on a different file system, or no
        // longer in use.
        return (max(inHere, inBefore), inBefore == 0 ? nil : before, inBefore)
    }

    /// Returns the number of the newest claim in a folder; 0 if there is none.
    private func newestClaim(
        _ claims: ClaimFolder, _ own: AttemptRecord?, _ manifest: Manifest
    ) throws(BroadsideError) -> UInt32 {
        let numbers = try claims.numbers()
        guard let number = numbers.max() else { return 0 }
        guard let own else { throw try refusal(withoutRecord: claims, number, manifest) }
        // Not only the newest claim is compared: a copy may have claimed another attempt, and
        // ended before it wrote that claim's text.
        if let foreign = numbers.first(where: own.isForeign) { throw oldCopy(claims, foreign) }
        guard let nonce = own.nonce(of: number) else { return number }
        switch try content(of: number, in: claims, own, manifest) {
        case .claim(nonce, _, _), .unfinished:
            // An attempt that ended before it wrote its claim sent nothing, so the claim before it
            // still shows what was durable.
            guard try !isRepaired else { return number }
            try checkSegments(
                try positions(in: claims, of: own, manifest), claims.claimPath(number), manifest)
            return number
        case .damaged:
            // The repair put in doubt what may have been sent under this claim.
            guard try isRepaired, isConfirmed(number, in: claims, own) else {
                throw damagedClaim(claims, number, own)
            }
            return number
        case .claim, .foreign: throw oldCopy(claims, number)
        case .unreadable(let code): throw unreadableClaim(claims, number, code)
        }
    }

    func oldCopy(_ claims: ClaimFolder, _ number: UInt32) -> BroadsideError {
        let copy = OldCopy(of: path, claims, number)
        return BroadsideError(
            option: "ledger",
            "\(copy.problem), so a resume here would send rows again: \(copy.resumeAdvice)",
            exitCode: ExitCode.inUse)
    }

    func missingClaim(_ claims: ClaimFolder, _ own: AttemptRecord) -> BroadsideError {
        BroadsideError(
            option: "ledger",
            "\(path) was copied or restored without its claim, so it may be an old copy: put "
                + "\(own.parent)/\(claims.name(own.confirmed)) beside it, or remove "
                + "\(path)/\(Self.epochName) if no other copy was or will be resumed",
            exitCode: ExitCode.inUse)
    }

    /// Returns the error for a claim that exists and can't be read.
    func unreadableClaim(
        _ claims: ClaimFolder, _ number: UInt32, _ code: Int32
    ) -> BroadsideError {
        // Only its owner may read a claim.
        let isOwn = SystemCall.status("\(path)/.")?.st_uid == geteuid()
        let advice =
            isOwn
            ? "the claim on the ledger must be readable for the ledger's owner"
            : "run the same command as the ledger's owner"
        return BroadsideError(
            option: "ledger",
            "\(claims.claimPath(number)): \(FileFailure.message(errno: code, advice))",
            exitCode: ExitCode.disk)
    }

    /// Returns the error for a claim whose text is damaged.
    ///
    /// - Parameter own: The ledger's record of its attempts; nil if it has none.
    func damagedClaim(
        _ claims: ClaimFolder, _ number: UInt32, _ own: AttemptRecord?
    ) -> BroadsideError {
        let isOwn = own.map { isConfirmed(number, in: claims, $0) } ?? false
        return BroadsideError(
            option: "ledger",
            "\(claims.claimPath(number)): the text of this claim on the ledger is damaged"
                + (isOwn
                    ? ": \(repairAdvice)"
                    : ", so it does not show which copy of the ledger made it: put a backup of this "
                        + "file back"),
            exitCode: ExitCode.disk)
    }

    /// Whether a record shows that the ledger made the claim with this number in this folder. While
    /// the claim exists, no copy of the ledger can make another one of the same name there.
    func isConfirmed(
        _ number: UInt32, in claims: ClaimFolder, _ own: AttemptRecord
    ) -> Bool {
        number > 0 && number == own.confirmed && claims.path == own.parent
    }

    /// Reads one of the ledger's claims.
    ///
    /// An attempt writes its claim's text before it confirms the claim in `epoch`. So if the ledger's
    /// last claim is confirmed, and has neither a text nor positions, it is damaged, and its
    /// positions are lost. They matter only if a run did not record the lengths of its segments.
    func content(
        of number: UInt32, in claims: ClaimFolder, _ own: AttemptRecord, _ manifest: Manifest
    ) throws(BroadsideError) -> ClaimFolder.Content {
        let content = claims.read(number)
        guard content == .unfinished, number == own.claimed,
            isConfirmed(number, in: claims, own),
            manifest.epochs.contains(where: { $0.segments == nil }),
            // A newer attempt empties this claim before it removes it.
            try claims.newest() == number
        else { return content }
        return .damaged([])
    }

    func claimFailure(
        _ claims: ClaimFolder, _ number: UInt32, _ code: Int32
    ) -> BroadsideError {
        guard code != EEXIST else { return oldCopy(claims, number) }
        return BroadsideError(
            option: "ledger",
            "\(claims.claimPath(number)): \(FileFailure.message(errno: code, Self.claimAdvice))",
            exitCode: 5)
    }
}
