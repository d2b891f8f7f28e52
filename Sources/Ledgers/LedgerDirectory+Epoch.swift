internal import Glibc
package import Support
import TLS

// A ledger belongs to one attempt at a time: docs/decisions/0012-a-ledger-belongs-to-one-attempt.md.

extension LedgerDirectory {
    /// The ledger's own record of its attempts.
    static let epochName = "epoch"
    /// No such record has more bytes.
    private static let epochLimit = 1 << 14

    /// Claims the next attempt for this copy of the ledger, before anything is acted on that it says.
    ///
    /// Where the ledger is a file system of its own (a mounted volume), nothing beside it belongs to it,
    /// and no claim is made; likewise, with a warning, where nothing can be made beside a new ledger.
    ///
    /// - Parameters:
    ///   - campaign: What tells the ledger's campaign, and its part, from all others.
    ///   - runs: The number of the ledger's last run; 0: none.
    /// - Throws: Exit code 7 where this is not the newest copy.
    package func claimEpoch(
        campaign: String, runs: UInt32
    ) throws(BroadsideError) {
        guard let here = parentFolder(campaign) else { return }
        let own = epochRecord()
        let before = own.flatMap { $0.parent == here.path ? nil : folder($0.parent, campaign) }
        let last = max(own?.claimed ?? 0, runs)
        var newest: UInt32 = 0
        try check(here, own: own, last: last, newest: &newest)
        if let before { try check(before, own: own, last: last, newest: &newest) }
        if let own, own.confirmed > newest {
            throw BroadsideError(
                option: "ledger",
                "\(path): \(own.parent)/\(here.name(own.confirmed)), which shows that this is the newest "
                    + "copy of the ledger, is missing: if the ledger was moved, move that file beside it; "
                    + "if there is no other copy, remove \(path)/\(Self.epochName)",
                exitCode: ExitCode.inUse)
        }
        let next = max(last, newest) + 1
        let nonce = randomBytes(8).map { byte in
            (byte < 16 ? "0" : "") + String(byte, radix: 16)
        }.joined()
        var record = EpochRecord(
            confirmed: own?.confirmed ?? 0, claimed: next, nonce: nonce, parent: here.path)
        try replace(Self.epochName, with: record.encoded)
        let ledger = absolutePath(path)
        let code = here.make(next, nonce: nonce, ledger: ledger)
        if code != 0, code != EEXIST, newest == 0, own == nil {
            SystemCall.unlink(Self.epochName, in: self.folder)
            standardErrorLine(
                "broadside: warning: \(here.path): \(describe(errno: code)): nothing will show there "
                    + "that a copy of this ledger is older than the ledger")
            return
        }
        guard code == 0 else { throw claimFailure(here, next, code) }
        // A copy that is left where the ledger was must find out as well.
        let more = before?.make(next, nonce: nonce, ledger: ledger) ?? 0
        if let before, more != 0 {
            throw claimFailure(before, next, more)
        }
        // Whoever claimed more meanwhile has taken older claims away.
        if let newer = here.numbers().max(), newer > next { throw stale(here, newer) }
        record.confirmed = next
        try replace(Self.epochName, with: record.encoded)
        here.remove(below: next)
        before?.remove(below: next)
    }

    /// Takes away the claim of a campaign that was not begun in the end.
    ///
    /// - Parameter campaign: As `claimEpoch` had it.
    package func discardClaim(campaign: String) {
        guard let own = epochRecord(), let here = parentFolder(campaign) else { return }
        here.remove(below: own.claimed + 1)
        SystemCall.unlink(Self.epochName, in: folder)
    }

    private func epochRecord() -> EpochRecord? {
        (try? readSmallFile(Self.epochName, limit: Self.epochLimit)).flatMap { EpochRecord($0) }
    }

    private func check(
        _ claims: ClaimFolder, own: EpochRecord?, last: UInt32, newest: inout UInt32
    ) throws(BroadsideError) {
        guard let number = claims.numbers().max() else { return }
        newest = max(newest, number)
        if number > last { throw stale(claims, number) }
        guard let own, number == own.claimed, let claim = claims.read(number),
            claim.nonce != own.nonce
        else { return }
        throw stale(claims, number)
    }

    private func stale(
        _ claims: ClaimFolder, _ number: UInt32
    ) -> BroadsideError {
        let ledger = claims.read(number)?.ledger ?? "another directory"
        let other = ledger == absolutePath(path) ? "another copy of it" : ledger
        return BroadsideError(
            option: "ledger",
            "\(path) is an old copy: a newer attempt at this campaign began in \(other) "
                + "(\(claims.path)/\(claims.name(number))), and to continue here would send rows again: "
                + "resume that one",
            exitCode: ExitCode.inUse)
    }

    private func claimFailure(
        _ claims: ClaimFolder, _ number: UInt32, _ code: Int32
    ) -> BroadsideError {
        guard code != EEXIST else { return stale(claims, number) }
        return BroadsideError(
            option: "ledger",
            "\(claims.path)/\(claims.name(number)): \(describe(errno: code)): the folder of the ledger "
                + "must be writable",
            exitCode: 5)
    }

    /// The folder beside the ledger; nil where it is on another file system, or there is none.
    private func parentFolder(_ campaign: String) -> ClaimFolder? {
        let descriptor = SystemCall.open("..", in: folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        guard let own = SystemCall.status(of: folder),
            let parent = SystemCall.status(of: descriptor), own.st_dev == parent.st_dev,
            own.st_ino != parent.st_ino,
            let path = SystemCall.realPath("/proc/self/fd/\(descriptor)")
        else {
            close(descriptor)
            return nil
        }
        return ClaimFolder(descriptor, path: path, campaign: campaign)
    }

    private func folder(_ path: String, _ campaign: String) -> ClaimFolder? {
        let descriptor = SystemCall.open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        return ClaimFolder(descriptor, path: path, campaign: campaign)
    }
}
