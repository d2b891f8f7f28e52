package import BroadsideLedgerFormat
package import BroadsideSupport
import BroadsideTLS
internal import Glibc

// The claim of an attempt, see docs/decisions/0012-a-ledger-belongs-to-one-attempt.md.

extension LedgerDirectory {
    /// The steps of a claim. Each step is named for what is durable after it. A test can stop after
    /// any step.
    package enum ClaimStep: CaseIterable {
        case recorded, claimed, claimedBefore, confirmed, removed
    }

    /// Claims the next attempt for this copy of the ledger. When this returns, the segments have
    /// all reservations that a concurrent attempt made so far. If that attempt reserves more rows
    /// later, it does not send these rows.
    ///
    /// - Parameters:
    ///   - manifest: Manifest of the ledger.
    ///   - step: Called after each step.
    /// - Returns: Warnings; none if this is known to be the newest copy, or a new ledger.
    /// - Throws: Exit code 7 if this is not the newest copy, or if that is unknown for a part of a
    ///   campaign; 2 if a claim shows that the campaign was divided into another number of parts.
    package func claimAttempt(
        _ manifest: Manifest, behind step: (ClaimStep) throws(BroadsideError) -> Void = { _ in }
    ) throws(BroadsideError) -> [String] {
        let own = try attemptRecord(manifest)
        guard let here = try parentFolder(manifest) else {
            return try claimNothing(own, manifest)
        }
        try here.refuseOtherDivision()
        var attempt = try attempt(after: own, here, manifest)
        try replace(Self.epochName, with: attempt.record.encoded)
        try step(.recorded)
        guard let held = try makeClaim(&attempt) else { return attempt.warnings }
        try step(.claimed)
        try makeClaimBefore(&attempt)
        try step(.claimedBefore)
        try refuseOthers(attempt)
        try confirm(attempt)
        try step(.confirmed)
        try removeOlderClaims(attempt)
        try step(.removed)
        assert(claim.map { $0.number < held.number } ?? true, "the numbers of claims only grow")
        claim = held
        return attempt.warnings
    }

    /// A claim that is being made.
    private struct Attempt {
        /// The ledger's record before this attempt; nil if there was none.
        let own: AttemptRecord?
        /// The folder that contains the ledger.
        let here: ClaimFolder
        /// The ledger's previous folder, if it has claims.
        var before: ClaimFolder?
        /// Number of the newest claim of earlier attempts; 0 if there is none.
        let newest: UInt32
        let isPart: Bool
        /// The ledger's record until the claim is confirmed.
        let record: AttemptRecord
        var warnings: [String]

        var number: UInt32 { record.claimed }
        /// The folders in which the claim is made.
        var folders: [ClaimFolder] { [here, before].compactMap { $0 } }
    }

    /// Chooses the number of an attempt, unless this is not the newest copy.
    private func attempt(
        after own: AttemptRecord?, _ here: ClaimFolder, _ manifest: Manifest
    ) throws(BroadsideError) -> Attempt {
        let isPart = manifest.identity.part != nil
        let last = try newestClaim(here: here, own, manifest)
        if let own, let before = last.before, last.inBefore < last.number {
            try repeatClaim(last.number, of: own, in: before, isPart: isPart)
        }
        var warnings: [String] = []
        if let own, own.confirmed > last.number {
            guard !isPart else { throw missingClaim(here, own) }
            warnings.append(continuedWithoutClaim(here, own))
        }
        let next = max(own?.claimed ?? 0, last.number) + 1
        // Until the new claim is confirmed, the record keeps the previous claim's folder. After a
        // crash, the ledger then checks that folder again.
        let nonce = hexadecimal(randomBytes(8))
        let record =
            own?.next(next, nonce: nonce, after: last.number)
            ?? AttemptRecord(confirmed: 0, claimed: next, nonce: nonce, parent: here.path)
        return Attempt(
            own: own, here: here, before: last.before, newest: last.number, isPart: isPart,
            record: record, warnings: warnings)
    }

    /// Makes the claim in the folder that contains the ledger.
    ///
    /// - Returns: The claim; nil if none can be made there, which adds a warning.
    private func makeClaim(_ attempt: inout Attempt) throws(BroadsideError) -> HeldClaim? {
        let (here, number) = (attempt.here, attempt.number)
        let made = here.make(number, nonce: attempt.record.nonce, ledger: absolutePath(path))
        if made >= 0 { return HeldClaim(made, in: here, number: number) }
        guard made != -EEXIST, attempt.newest == 0, !attempt.isPart, Self.isClosedToClaims(-made)
        else { throw claimFailure(here, number, -made) }
        if let own = attempt.own {
            try replace(Self.epochName, with: own.encoded)
        } else {
            removeFile(Self.epochName)
        }
        attempt.warnings.append(unnoticed(here.path, errno: -made))
        return nil
    }

    /// Makes the claim in the ledger's previous folder, too. A copy of the ledger at its previous
    /// location has to notice it.
    private func makeClaimBefore(_ attempt: inout Attempt) throws(BroadsideError) {
        guard let folder = attempt.before else { return }
        let made = folder.make(
            attempt.number, nonce: attempt.record.nonce, ledger: absolutePath(path))
        guard made < 0 else {
            close(made)
            return
        }
        guard !attempt.isPart, made != -EEXIST else {
            remove(attempt.number, from: [attempt.here])
            throw claimFailure(folder, attempt.number, -made)
        }
        attempt.before = nil
        attempt.warnings.append(
            "\(folder.path): \(describe(errno: -made)): if a copy of the ledger is still there "
                + "and is resumed, rows are sent twice")
    }

    /// Gives up the attempt if a copy has claimed one, or another division has begun, meanwhile.
    private func refuseOthers(_ attempt: Attempt) throws(BroadsideError) {
        do throws(BroadsideError) {
            // Of two divisions that begin at the same time, at least one finds the other's claim.
            try attempt.here.refuseOtherDivision()
        } catch {
            remove(attempt.number, from: attempt.folders)
            throw error
        }
        // If the number of a copy's claim is higher, the copy has removed older claims.
        for folder in attempt.folders {
            let others = try folder.numbers().filter { $0 > attempt.newest && $0 != attempt.number }
            guard let other = others.max() else { continue }
            remove(attempt.number, from: attempt.folders)
            throw oldCopy(folder, other)
        }
    }

    /// Records that the claim is the ledger's newest.
    private func confirm(_ attempt: Attempt) throws(BroadsideError) {
        let record = AttemptRecord(
            confirmed: attempt.number, claimed: attempt.number, nonce: attempt.record.nonce,
            parent: attempt.here.path)
        // At a start within the same folder, the record's name becomes durable later, together with
        // the names of the run's segments and before the first row is sent. A power cut before that
        // restores the old record. Its nonce proves that the new claim is the ledger's own.
        let isStartHere =
            claim == nil && (attempt.own == nil || attempt.own?.parent == attempt.here.path)
        try replace(Self.epochName, with: record.encoded, syncsName: !isStartHere)
        // The new claim has no positions of segments yet.
        removeFile(Self.repairedName)
    }

    /// Removes older claims. Segments are read only after this: an older attempt that still found
    /// its claim has already reserved the rows that it sends.
    private func removeOlderClaims(_ attempt: Attempt) throws(BroadsideError) {
        for folder in attempt.folders {
            let ended = claim.flatMap { $0.folder.path == folder.path ? $0.number : nil }
            let code = try folder.remove(below: attempt.number, own: ended)
            guard code == 0 else { throw claimFailure(folder, attempt.number, code) }
        }
    }

    /// Makes the ledger's newest claim in the ledger's previous folder, where a crash prevented the
    /// claim. A copy of the ledger in that folder has to notice this claim before the ledger
    /// records a higher number.
    private func repeatClaim(
        _ number: UInt32, of own: AttemptRecord, in before: ClaimFolder, isPart: Bool
    ) throws(BroadsideError) {
        guard let nonce = own.nonce(of: number) else { return }
        let made = before.make(number, nonce: nonce, ledger: absolutePath(path))
        if made >= 0 { close(made) }
        guard made >= 0 || !isPart && made != -EEXIST else {
            throw claimFailure(before, number, -made)
        }
    }

    /// Removes the claim of an attempt that is not made after all. Nothing was sent under it.
    private func remove(_ number: UInt32, from folders: [ClaimFolder]) {
        for folder in folders {
            SystemCall.unlink(folder.name(number), in: folder.descriptor)
        }
    }
}
