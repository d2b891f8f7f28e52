internal import BroadsideLedgerFormat
import BroadsideSupport
internal import Glibc

// What the claims on a ledger show: how many bytes of each segment were durable before rows were
// sent. If these bytes are missing, nothing else shows that the rows may have been sent. So a claim
// that can't be read never counts as a claim without positions, and the positions count even if the
// file `epoch` is missing or damaged.
//
// The remedy for a ledger without its record depends on the claims:
//
//     no positions ──> a person decides that this is the newest copy, and removes the claims
//     positions ─────> `ledger repair` puts in doubt what may have been sent, and adopts the claim
//
// A repair needs no such decision: whichever copy is repaired, the rows that the last run may have
// sent are in doubt, and a claim still belongs to one ledger only.

extension LedgerDirectory {
    /// Maximum number of times that positions are read again because another attempt has started.
    private static let newerRecordsLimit = 8

    /// Whether `ledger repair` wrote the segments. They may then be shorter than the positions.
    var isRepaired: Bool {
        get throws(BroadsideError) { try fileExists("\(path)/\(Self.repairedName)") }
    }

    /// Returns the positions that were durable before rows were sent, without making a claim. Empty
    /// if no claim that may be the ledger's own has positions.
    ///
    /// - Parameter forRepair: Whether to consider also the ledger's previous folder and, if the
    ///   ledger has no record of its attempts, the claims of other copies.
    /// - Throws: Exit code 5 if a claim or the record can't be read.
    func durablePositions(
        _ manifest: Manifest, forRepair: Bool = false
    ) throws(BroadsideError) -> [DurablePosition] {
        try withFolder { () throws(BroadsideError) -> [DurablePosition] in
            guard try !isRepaired else { return [] }
            // Another user may read a ledger whose claim belongs to its owner. If each run ended,
            // the manifest records all lengths.
            let mayBeClosed = !forRepair && manifest.epochs.allSatisfy { $0.segments != nil }
            var state = try recordState()
            for _ in 0..<Self.newerRecordsLimit {
                let found =
                    if case .intact(let own) = state {
                        try ownPositions(
                            own, manifest, isMoved: forRepair, mayBeClosed: mayBeClosed)
                    } else {
                        try positionsWithoutRecord(
                            manifest, ofOthers: forRepair, mayBeClosed: mayBeClosed)
                    }
                // An attempt that starts meanwhile writes its record before it makes its claim and
                // removes older ones.
                let newer = try recordState()
                if newer == state { return found }
                state = newer
            }
            throw BroadsideError(
                option: "ledger", "\(path) was resumed during the read: read it again",
                exitCode: ExitCode.disk)
        }
    }

    /// Returns the path of the ledger's own claim if its text is damaged, so that only a repair uses
    /// its positions; otherwise nil.
    func pathOfDamagedClaim(_ manifest: Manifest) throws(BroadsideError) -> String? {
        try withFolder { () throws(BroadsideError) -> String? in
            guard try !isRepaired, let own = try recordState().record,
                let claims = try folder(at: own.parent, manifest),
                case .damaged = try content(of: own.confirmed, in: claims, own, manifest)
            else { return nil }
            return claims.claimPath(own.confirmed)
        }
    }

    /// Returns the positions in the claims that a record shows to be the ledger's own.
    ///
    /// - Parameter isMoved: Whether to consider a claim in another folder than the recorded one,
    ///   because the ledger, or both, were moved. A reader of a copy does not: a copy that was made
    ///   during a run lacks the end of its segments.
    private func ownPositions(
        _ own: AttemptRecord, _ manifest: Manifest, isMoved: Bool, mayBeClosed: Bool
    ) throws(BroadsideError) -> [DurablePosition] {
        let here = try parentFolder(manifest)
        if let here, here.path == own.parent {
            return try positions(
                in: here, of: own, manifest, forRepair: isMoved, mayBeClosed: mayBeClosed)
        }
        guard isMoved else {
            // A reader of a copy does not depend on the folder of the original.
            guard let here, let last = try? folder(at: own.parent, manifest),
                last.isSame(as: here)
            else { return [] }
            return try positions(in: here, of: own, manifest, mayBeClosed: mayBeClosed)
        }
        let last = try folder(at: own.parent, manifest)
        guard let here else {
            guard let last else { return [] }
            return try positions(in: last, of: own, manifest, forRepair: true)
        }
        let found = try positions(in: here, of: own, manifest, forRepair: true)
        guard let last, !last.isSame(as: here) else { return found }
        return try found + positions(in: last, of: own, manifest, forRepair: true)
    }

    /// Returns the positions in the ledger's own claims in a folder: the confirmed claim, and the
    /// claim of an attempt that did not confirm it.
    ///
    /// - Parameters:
    ///   - forRepair: Whether the positions of a claim count even if its text is damaged.
    ///   - mayBeClosed: Whether a claim that this user may not read counts as a claim without
    ///     positions.
    func positions(
        in claims: ClaimFolder, of own: AttemptRecord, _ manifest: Manifest,
        forRepair: Bool = false, mayBeClosed: Bool = false
    ) throws(BroadsideError) -> [DurablePosition] {
        var positions: [DurablePosition] = []
        for number in Set([own.confirmed, own.claimed]).sorted() where number > 0 {
            guard let nonce = own.nonce(of: number) else { continue }
            switch try content(of: number, in: claims, own, manifest) {
            case .claim(nonce, _, let found): positions += found
            case .claim, .unfinished, .foreign: break
            case .damaged(let found):
                guard forRepair, isConfirmed(number, in: claims, own) else {
                    throw damagedClaim(claims, number, own)
                }
                positions += found
            case .unreadable(let code):
                guard claims.isGone(number, code) || mayBeClosed && code == EACCES else {
                    throw unreadableClaim(claims, number, code)
                }
            }
        }
        return positions
    }

    /// Returns the positions in all claims that may be the ledger's own, if it has no record of its
    /// attempts.
    ///
    /// - Parameters:
    ///   - manifest: Manifest of the ledger.
    ///   - ofOthers: Whether to include claims of other directories that still exist.
    ///   - mayBeClosed: Whether a claim that this user may not read counts as a claim without
    ///     positions.
    private func positionsWithoutRecord(
        _ manifest: Manifest, ofOthers: Bool = false, mayBeClosed: Bool = false
    ) throws(BroadsideError) -> [DurablePosition] {
        guard let claims = try parentFolder(manifest) else { return [] }
        var positions: [DurablePosition] = []
        for number in try claims.numbers().sorted() {
            switch claims.read(number) {
            case .claim(_, let ledger, let found):
                guard !found.isEmpty else { break }
                if !ofOthers, try isOther(ledger) { break }
                positions += found
            case .unfinished, .foreign: break
            case .damaged: throw damagedClaim(claims, number, nil)
            case .unreadable(let code):
                guard claims.isGone(number, code) || mayBeClosed && code == EACCES else {
                    throw unreadableClaim(claims, number, code)
                }
            }
        }
        return positions
    }

    /// Whether a path in a claim leads to another directory, which still exists.
    private func isOther(_ ledger: String) throws(BroadsideError) -> Bool {
        guard ledger != absolutePath(path) else { return false }
        return try isDirectoryPath(ledger)
    }

    /// Checks that the segments have all bytes that were durable before the last attempt sent rows,
    /// and that these bytes are sound. A copy made during sending has fewer bytes, and a damaged
    /// ledger has other bytes. A run in such a copy, or in a damaged ledger, would send rows again.
    func checkSegments(
        _ positions: [DurablePosition], _ claim: String, _ manifest: Manifest
    ) throws(BroadsideError) {
        guard try !isRepaired else { return }
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

    /// Returns the size of a file in the directory; nil if it does not exist.
    ///
    /// - Throws: An error if the size is unknown, because the file may contain rows that were sent.
    func byteCount(of name: String) throws(BroadsideError) -> UInt64? {
        let file = "\(path)/\(name)"
        if let information = SystemCall.linkStatus(file) { return UInt64(information.st_size) }
        guard errno != ENOENT else { return nil }
        throw .file(InputName(file), errno: errno, "name a path that you may use")
    }

    // MARK: Ledgers without a record of their attempts

    /// Returns the error for a ledger that has a claim beside it, but no record of its attempts.
    ///
    /// - Throws: An error if the claim proves that this is an old copy, or damaged.
    func refusal(
        withoutRecord claims: ClaimFolder, _ number: UInt32, _ manifest: Manifest
    ) throws(BroadsideError) -> BroadsideError {
        guard let text = try lostRecord(claims, number, manifest) else {
            return oldCopy(claims, number)
        }
        try checkSegments(
            try positionsWithoutRecord(manifest), claims.claimPath(number), manifest)
        return BroadsideError(option: "ledger", text, exitCode: ExitCode.inUse)
    }

    /// Returns the error for a ledger whose record of its attempts is damaged.
    func damagedRecord(_ manifest: Manifest) throws(BroadsideError) -> BroadsideError {
        try withFolder { () throws(BroadsideError) -> BroadsideError in
            let names = "\(ClaimFolder.prefix(of: manifest))*"
            guard let claims = try parentFolder(manifest), case let number = try claims.newest(),
                number > 0
            else {
                return damagedRecord(
                    "move the ledger back to the folder with its claims (\(names)), or, if "
                        + "there are none, and no other copy of this ledger was resumed, remove "
                        + "this file")
            }
            guard try !belongsToOther(claims, number) else {
                let copy = OldCopy(of: path, claims, number)
                return damagedRecord("\(copy.problem): \(copy.resumeAdvice)")
            }
            if try !isRepaired, try !positionsWithoutRecord(manifest).isEmpty {
                return damagedRecord(
                    "resume the newest copy of this ledger; if this is the newest, \(repairAdvice)")
            }
            return damagedRecord(
                "if no other copy of this ledger was resumed, remove this file and the ledger's "
                    + "claims, \(path)/../\(names)")
        }
    }

    private func damagedRecord(_ advice: String) -> BroadsideError {
        BroadsideError(
            option: "ledger", "\(path)/\(Self.epochName) is damaged: \(advice)",
            exitCode: ExitCode.disk)
    }

    /// Whether a claim belongs to another directory, which still exists.
    ///
    /// - Throws: Exit code 5 if the claim can't be read.
    func belongsToOther(
        _ claims: ClaimFolder, _ number: UInt32
    ) throws(BroadsideError) -> Bool {
        switch claims.read(number) {
        case .claim(_, let ledger, _): return try isOther(ledger)
        case .unfinished, .foreign: return false
        case .damaged: throw damagedClaim(claims, number, nil)
        case .unreadable(let code):
            guard claims.isGone(number, code) else { throw unreadableClaim(claims, number, code) }
            return false
        }
    }

    /// Returns a message about a missing or damaged record of attempts; nil if the claim belongs to
    /// another directory, which still exists.
    ///
    /// The remedy is up to a person: nothing proves that this directory is the newest copy.
    private func lostRecord(
        _ claims: ClaimFolder, _ number: UInt32, _ manifest: Manifest, isDamaged: Bool = false
    ) throws(BroadsideError) -> String? {
        guard try !belongsToOther(claims, number) else { return nil }
        let problem =
            "\(path)/\(Self.epochName) is \(isDamaged ? "damaged" : "missing"), so this may be an old "
            + "copy of the ledger: resume the newest copy"
        // A claim with positions is not removed before a repair has put in doubt what they show.
        if try !isRepaired, try !positionsWithoutRecord(manifest).isEmpty {
            return "\(problem); if this is the newest, \(repairAdvice)"
        }
        return "\(problem), or, if no other copy of this ledger was or will be resumed, remove "
            + claims.claimPath(number)
    }

    /// Returns a message if this ledger can't be resumed because its record of attempts is missing
    /// or damaged; nil if it has a record, or if there is no claim.
    ///
    /// - Throws: Exit code 5 if the record or a claim can't be read.
    func lostRecord(_ manifest: Manifest) throws(BroadsideError) -> String? {
        try withFolder { () throws(BroadsideError) -> String? in
            // The claim is looked for before the record, because a new ledger gets its record
            // before its claim.
            guard let claims = try parentFolder(manifest), case let number = try claims.newest(),
                number > 0
            else { return nil }
            let state = try recordState()
            if case .intact = state { return nil }
            return try lostRecord(claims, number, manifest, isDamaged: state == .damaged)
        }
    }

    /// Returns a record with which a repaired copy of this ledger, whose own record is lost, takes
    /// over the newest claim that has a text; nil if nothing shows what may have been sent under
    /// the claims.
    ///
    /// The attempts of newer claims, which have no text, sent nothing. The record counts such
    /// claims as the ledger's own.
    func adoptedRecord(
        _ manifest: Manifest
    ) throws(BroadsideError) -> (record: AttemptRecord, claim: String)? {
        try withFolder {
            () throws(BroadsideError) -> (record: AttemptRecord, claim: String)? in
            guard try !isRepaired, let claims = try parentFolder(manifest),
                case let newest = try claims.newest(), newest > 0,
                let (number, nonce, ledger) = try newestText(in: claims),
                AttemptRecord.isNonce(nonce), try !isOther(ledger),
                try !positionsWithoutRecord(manifest).isEmpty
            else { return nil }
            let record = AttemptRecord(
                confirmed: newest, claimed: newest, nonce: nonce, parent: claims.path)
            return (record, claims.claimPath(number))
        }
    }

    /// Returns the newest claim that has a text; nil if there is none, or if a newer claim can't be
    /// read or is not a claim.
    private func newestText(
        in claims: ClaimFolder
    ) throws(BroadsideError) -> (number: UInt32, nonce: String, ledger: String)? {
        for number in try claims.numbers().sorted().reversed() {
            switch claims.read(number) {
            case .claim(let nonce, let ledger, _): return (number, nonce, ledger)
            case .unfinished: break
            case .foreign, .damaged: return nil
            case .unreadable(let code):
                guard claims.isGone(number, code) else { return nil }
            }
        }
        return nil
    }
}
