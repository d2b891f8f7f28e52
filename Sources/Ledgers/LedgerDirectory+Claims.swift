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

    func attemptRecord(_ manifest: Manifest) throws(BroadsideError) -> AttemptRecord? {
        guard try fileExists("\(path)/\(Self.epochName)") else { return nil }
        let bytes = try readSmallFile(Self.epochName, limit: Self.epochLimit)
        guard let record = AttemptRecord(bytes) else {
            throw BroadsideError(
                option: "ledger",
                "\(path)/\(Self.epochName) is damaged: if no other copy of this ledger was resumed, "
                    + "remove this file and the ledger's claims, "
                    + "\(path)/../\(ClaimFolder.prefix(of: manifest))*",
                exitCode: ExitCode.disk)
        }
        return record
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
        switch claims.read(number) {
        case .unfinished: return number
        case .claim(nonce, _, let positions):
            try checkSegments(positions, claims.claimPath(number), manifest)
            return number
        case .claim, .foreign: throw oldCopy(claims, number)
        case .unreadable(let code):
            throw BroadsideError(
                option: "ledger",
                "\(claims.claimPath(number)): \(describe(errno: code)): the claim on the ledger must be "
                    + "readable for the ledger's owner",
                exitCode: 5)
        }
    }

    /// Checks that the segments have all bytes that were durable before the last attempt sent rows,
    /// and that these bytes are sound. A copy made during sending has fewer bytes, and a damaged
    /// ledger has other bytes. A run in such a copy, or in a damaged ledger, would send rows again.
    private func checkSegments(
        _ positions: [DurablePosition], _ claim: String, _ manifest: Manifest
    ) throws(BroadsideError) {
        guard try !fileExists("\(path)/\(Self.repairedName)") else { return }
        // In these runs, a segment that is missing or has no header was lost. The code that reads
        // segments reports that.
        let made = Set(manifest.epochs.filter { !$0.hasReservedNothing }.map(\.number))
        let header = UInt64(LedgerFormat.segmentHeaderByteCount)
        for durable in positions {
            let name = LedgerFormat.segmentName(epoch: durable.epoch, reactor: durable.reactor)
            let found = try byteCount(of: name)
            if found ?? 0 < header, made.contains(durable.epoch) { continue }
            guard found ?? 0 < durable.position else { continue }
            throw BroadsideError(
                option: "ledger",
                "\(path) is an old copy, or damaged: \(name) "
                    + (found.map { "has \($0) bytes" } ?? "is missing")
                    + ", but \(durable.position) bytes were on disk (\(claim)) when rows were "
                    + "sent: resume the newest copy; if that copy is lost, \(repairAdvice); rows "
                    + "that may have been sent after this copy was made are then in doubt",
                exitCode: ExitCode.inUse)
        }
        guard !positions.isEmpty else { return }
        for segment in try segments() {
            let durable = positions.first {
                $0.epoch == segment.epoch && $0.reactor == segment.reactor
            }
            guard let durable, segment.bytes.byteCount >= header else { continue }
            do throws(LedgerError) {
                try segment.checkDurable(durable.position, campaign: manifest.segmentNumber)
            } catch {
                throw LedgerReader.unreadable(error, self)
            }
        }
    }

    /// Returns the positions that were durable before rows were sent, without making a claim. Empty
    /// if the newest claim can't be read or is not the ledger's own.
    ///
    /// - Parameter isMoved: Whether to check the ledger's previous location, too.
    func durablePositions(_ manifest: Manifest, isMoved: Bool = false) -> [DurablePosition] {
        let found = try? withFolder { () throws(BroadsideError) -> [DurablePosition]? in
            guard try !fileExists("\(path)/\(Self.repairedName)"),
                let own = try attemptRecord(manifest), let here = try parentFolder(manifest)
            else { return nil }
            let last = here.path == own.parent ? nil : try folder(at: own.parent, manifest)
            let isHere = here.path == own.parent || last?.isSame(as: here) ?? false
            guard isHere || isMoved, let claims = isHere ? here : last,
                case let number = try claims.newest(), let nonce = own.nonce(of: number),
                case .claim(nonce, _, let positions) = claims.read(number)
            else { return nil }
            return positions
        }
        return found ?? []
    }

    /// Returns the size of a file in the directory; nil if it does not exist.
    ///
    /// - Throws: An error if the size is unknown, because the file may contain rows that were sent.
    private func byteCount(of name: String) throws(BroadsideError) -> UInt64? {
        let file = "\(path)/\(name)"
        guard try fileExists(file), let information = SystemCall.linkStatus(file) else {
            return nil
        }
        return UInt64(information.st_size)
    }

    /// Returns the error for a ledger that has a claim beside it, but no record of its attempts.
    ///
    /// - Throws: An error if the claim proves that this is an old copy, or damaged.
    private func refusal(
        withoutRecord claims: ClaimFolder, _ number: UInt32, _ manifest: Manifest
    ) throws(BroadsideError) -> BroadsideError {
        guard let text = missingRecord(claims, number) else { return oldCopy(claims, number) }
        if case .claim(_, _, let positions) = claims.read(number) {
            try checkSegments(positions, claims.claimPath(number), manifest)
        }
        return BroadsideError(option: "ledger", text, exitCode: ExitCode.inUse)
    }

    /// Returns a message about the missing record of attempts; nil if the claim belongs to another
    /// directory, which still exists.
    ///
    /// The remedy is up to a person: nothing proves that this directory is the newest copy.
    func missingRecord(_ claims: ClaimFolder, _ number: UInt32) -> String? {
        if case .claim(_, let ledger, _) = claims.read(number), ledger != absolutePath(path),
            (try? isDirectoryPath(ledger)) != false
        {
            return nil
        }
        let claim = claims.claimPath(number)
        return "\(path)/\(Self.epochName) is missing, so this may be an old copy of the ledger: "
            + "resume the newest copy, or, if no other copy of this ledger was or will be resumed, "
            + "remove \(claim)"
    }

    /// Returns a message if this ledger can't be resumed because its record of attempts is missing.
    /// Otherwise, or if the claims can't be read, returns nil.
    func missingRecord(_ manifest: Manifest) -> String? {
        try? withFolder { () throws(BroadsideError) -> String? in
            // The claim is looked for before the record, because a new ledger gets its record
            // before its claim.
            guard let claims = try parentFolder(manifest), case let number = try claims.newest(),
                number > 0, try !fileExists("\(path)/\(Self.epochName)")
            else { return nil }
            return missingRecord(claims, number)
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
