internal import BroadsideLedgerFormat
import BroadsideLists
internal import BroadsideRows
public import BroadsideSupport
internal import Glibc

/// Implementation of `ledger repair`: writes the provably sound part of a damaged ledger as a new
/// ledger. In the new ledger, rows are in doubt if they may have been sent and are not provably
/// settled.
public enum LedgerRepair {
    /// Reads a damaged ledger, and writes its sound part into a new directory.
    ///
    /// - Parameters:
    ///   - path: The damaged ledger's directory, which is not changed.
    ///   - output: The new directory.
    ///   - tokens: Path of the list that was sent; nil: the path from which the run read it.
    /// - Returns: A human-readable description of what was kept and what was lost. A warning about
    ///   an old copy is printed.
    public static func run(
        _ path: String, output: String, tokens: String?
    ) throws(BroadsideError) -> String {
        guard try !fileExists(output) else {
            throw .usage("output", "\(output) exists: name a new directory")
        }
        let (directory, manifest) = try LedgerDirectory.openToRepair(path)
        try refuseMerged(directory, manifest)
        let copy = directory.oldCopy(manifest)
        let durable = try directory.durablePositions(manifest, forRepair: true)
        let damagedClaim = try directory.pathOfDamagedClaim(manifest)
        let (segments, unreadable) = try directory.damagedSegments()
        var salvage: LedgerSalvage
        do {
            salvage = try LedgerSalvage(
                segments, manifest: manifest, durable: durable,
                hasAllPositions: damagedClaim == nil)
        } catch {
            throw LedgerReader.unreadable(error, directory)
        }
        let repair = Repair(
            directory: directory, manifest: manifest, damagedClaim: damagedClaim, output: output,
            tokens: tokens)
        defer {
            if let copy { standardErrorLine("broadside: warning: \(copy.warning)") }
        }
        do throws(BroadsideError) {
            return try repair.write(salvage, unreadable: unreadable)
        } catch {
            // A run did not reserve rows in list order after all. Its order therefore proves
            // nothing.
            guard error.exitCode == Repair.disorder, salvage.reliesOnOrder else { throw error }
            salvage.reliesOnOrder = false
            return try repair.write(salvage, unreadable: unreadable)
        }
    }

    /// Refuses a merged ledger. The ledgers of its shards have to be repaired one by one.
    private static func refuseMerged(
        _ directory: LedgerDirectory, _ manifest: Manifest
    ) throws(BroadsideError) {
        guard let shards = manifest.shards else { return }
        var damaged: [String] = []
        for name in shards {
            let path = "\(directory.path)/\(name)"
            let finding = Result { () throws(BroadsideError) in
                try LedgerReader(path: path).verify()
            }
            if case .failure = finding { damaged.append(path) }
        }
        throw .usage(
            "ledger",
            "\(directory.path) was merged from several ledgers: "
                + (damaged.isEmpty
                    ? "each of them is sound: merge them again"
                    : "repair \(damaged.joined(separator: ", ")), then merge them again"))
    }
}

/// Writer of a repaired ledger.
private struct Repair {
    let directory: LedgerDirectory
    /// Manifest of the damaged ledger.
    let manifest: Manifest
    /// Path of the ledger's claim if its text is damaged.
    let damagedClaim: String?
    let output: String
    let tokens: String?

    /// Internal error code: a run reserved rows out of sequence. The process never exits with this
    /// code.
    static let disorder: Int32 = -1

    func write(
        _ salvage: LedgerSalvage, unreadable: [String]
    ) throws(BroadsideError) -> String {
        let gapChunks = try cutGaps(salvage)
        let unfinished = try UnfinishedLedger(at: output)
        let target = unfinished.directory
        do throws(BroadsideError) {
            var lengths: [UInt32: [SegmentLength]] = [:]
            var undatedCount: UInt64 = 0
            for (epoch, reactor, part) in salvage.parts(gapChunks: gapChunks) {
                let byteCount = try write(
                    part, of: salvage, epoch: epoch, reactor: reactor, to: target, &undatedCount)
                lengths[epoch, default: []].append(
                    SegmentLength(reactor: reactor, byteCount: byteCount))
            }
            var words: [String] = []
            if !directory.hasSoundManifest {
                words.append("lost manifest.json: a copy of it was used")
            }
            if let damagedClaim {
                words.append(
                    "lost the text of the claim \(damagedClaim): \(output) takes it over, so only "
                        + "\(output) can be resumed")
            }
            words += try copyOthers(to: target)
            words += try copyRecord(to: target)
            var manifest = salvage.repairedManifest(lengths: lengths, isFinished: false)
            let summary = try check(manifest, in: target, relies: salvage.reliesOnOrder)
            let open = summary.count(.inDoubt) + summary.count(.remaining)
            if salvage.isSound || open == 0, manifest.rowCount != nil {
                manifest = salvage.repairedManifest(lengths: lengths, isFinished: true)
                _ = try check(manifest, in: target, relies: salvage.reliesOnOrder)
            }
            // Written before the manifest, because a run can continue the ledger as soon as it has
            // a manifest.
            try target.replace(
                LedgerDirectory.repairedName, with: Array("by ledger repair\n".utf8))
            try target.save(manifest)
            try unfinished.finish()
            words += unreadable
            return text(salvage, summary, undatedCount: undatedCount, others: words)
        } catch {
            throw unfinished.discard(error)
        }
    }

    // MARK: The list

    /// Divides the rows without a surviving reservation into chunks, in the same way as a run.
    private func cutGaps(_ salvage: LedgerSalvage) throws(BroadsideError) -> [ChunkReservation] {
        let gaps = salvage.gaps
        guard !gaps.isEmpty else { return [] }
        if salvage.isOfFeedback { return salvage.feedbackChunks(in: gaps) }
        if salvage.isOfBroadcast { return [.broadcast] }
        let list = try openList(salvage)
        var reader = ListPartReader(list: list)
        for chunk in salvage.knownChunks {
            do {
                try reader.check(chunk)
            } catch {
                throw otherList(list, error)
            }
        }
        let cursor = ListCursor(list)
        var chunks: [ChunkReservation] = []
        for gap in gaps {
            cursor.begin(gap)
            var row = gap.firstRow
            while row < gap.endRow ?? .max {
                let left = (gap.endRow ?? .max) - row
                guard let chunk = try cursor.cutRows(atMost: Int(min(left, 1 << 40))) else { break }
                assert(chunk.start.row == row, "a gap is cut without a hole")
                chunks.append(chunk.reservation)
                assert(chunk.end.row > row, "each chunk ends after the last one")
                row = chunk.end.row
                cursor.giveBack(chunk)
            }
            // The list or the gap must end at the row that the ledger records.
            if let end = gap.endRow, row != end, gap.endByteOffset != nil {
                throw otherList(
                    list,
                    LedgerError(
                        .badList, detail: "from line \(gap.firstLine) on, its rows differ"))
            }
        }
        return chunks
    }

    private func openList(_ salvage: LedgerSalvage) throws(BroadsideError) -> TokenList {
        let manifest = salvage.repairedManifest(lengths: [:], isFinished: false)
        let spool = try directory.spool()
        guard let path = tokens ?? spool ?? manifest.listPath, try fileCanBeSeen(path) else {
            throw .usage(
                "ledger",
                "\(directory.path): only the list shows which rows may have been "
                    + "sent: name it with --tokens")
        }
        let list = try manifest.openList(at: path)
        guard let known = manifest.identity.listByteCount else { return list }
        let found = try list.bytes.measure()
        guard found == known else {
            throw otherList(
                list,
                LedgerError(
                    .badList,
                    detail: "it has \(found) bytes, but the list that was sent had \(known)"))
        }
        return list
    }

    private func otherList(_ list: TokenList, _ error: LedgerError) -> BroadsideError {
        error.code == .badList
            ? .request(list.name, ": \(error.detail): use --tokens to name the list that was sent")
            : LedgerReader.unreadable(error, directory)
    }

    // MARK: Files

    /// - Returns: The length of the segment.
    private func write(
        _ part: LedgerSalvage.Part, of salvage: LedgerSalvage, epoch: UInt32, reactor: UInt16,
        to target: LedgerDirectory, _ undatedCount: inout UInt64
    ) throws(BroadsideError) -> UInt64 {
        if case .copy(let name, let byteCount) = part {
            try directory.copyFile(name, to: target.path, byteCount: byteCount)
            return byteCount
        }
        let name = LedgerFormat.segmentName(epoch: epoch, reactor: reactor)
        let descriptor = try target.createSegment(epoch: epoch, reactor: reactor)
        defer { close(descriptor) }
        var writer = LedgerWriter(
            campaign: salvage.segmentNumber, epoch: epoch, reactor: reactor,
            keepsTokens: salvage.keepsTokens)
        func flush(_ writer: inout LedgerWriter) throws(LedgerError) {
            guard writer.writePending(to: descriptor) else {
                throw LedgerError(
                    .inputOutput, detail: "\(target.path)/\(name): \(describe(errno: errno))")
            }
        }
        do throws(LedgerError) {
            switch part {
            case .copy: break
            case .records(let index):
                undatedCount += try salvage.write(index, into: &writer, flush: flush)
            case .reservations(let chunks):
                for chunk in chunks {
                    writer.reserve(chunk, nowMilliseconds: salvage.startMilliseconds(of: epoch))
                    if writer.backlogIsHigh { try flush(&writer) }
                }
                try flush(&writer)
            }
        } catch {
            throw BroadsideError("\(error.detail)", exitCode: 5)
        }
        guard fsync(descriptor) == 0 else {
            throw BroadsideError("\(target.path)/\(name): \(describe(errno: errno))", exitCode: 5)
        }
        return writer.writtenPosition
    }

    /// Copies all files except the manifest, the segments and the record of attempts. The list is
    /// the only copied file that a run needs.
    ///
    /// - Returns: A line about each file that could not be copied.
    private func copyOthers(to target: LedgerDirectory) throws(BroadsideError) -> [String] {
        var lost: [String] = []
        for name in try directory.names().sorted() {
            let isKnown =
                LedgerFormat.parseSegmentName(name) != nil || name.hasPrefix(".")
                || [
                    LedgerDirectory.lockName, LedgerDirectory.manifestName,
                    LedgerDirectory.manifestCopyName, LedgerDirectory.unfinishedName,
                    LedgerDirectory.epochName,
                ]
                .contains(name)
            guard !isKnown, FileIdentity(path: "\(directory.path)/\(name)")?.isRegular == true
            else { continue }
            do throws(BroadsideError) {
                try directory.copyFile(name, to: target.path)
            } catch {
                if name == LedgerDirectory.spoolName { throw error }
                SystemCall.unlink("\(target.path)/\(name)")
                lost.append("lost \(name): \(error.message)")
            }
        }
        return lost
    }

    /// Copies the ledger's record of its attempts, so that only one of the two ledgers can be
    /// resumed. If the record is lost, the repaired ledger takes over the newest claim, if its
    /// positions show what may have been sent.
    ///
    /// - Returns: Lines about a lost record.
    private func copyRecord(to target: LedgerDirectory) throws(BroadsideError) -> [String] {
        let state = try directory.recordState()
        let adopted = try state.record == nil ? directory.adoptedRecord(manifest) : nil
        if let record = state.record ?? adopted?.record {
            try target.replace(LedgerDirectory.epochName, with: record.encoded)
        }
        if let claim = adopted?.claim {
            return [
                "lost epoch: \(output) takes over the claim \(claim), so only \(output) can be resumed"
            ]
        }
        let lost = state == .damaged ? ["lost epoch: it is damaged"] : []
        guard let note = try directory.lostRecord(manifest) else { return lost }
        return lost + [note]
    }

    /// Verifies the written ledger as any command would.
    private func check(
        _ manifest: Manifest, in target: LedgerDirectory, relies: Bool
    ) throws(BroadsideError) -> LedgerSummary {
        let segments = try target.segments()
        do throws(LedgerError) {
            return try LedgerVerification(checking: segments, manifest: manifest).summary
        } catch {
            if error.code == .unreservedRow, relies {
                throw BroadsideError("\(error)", exitCode: Self.disorder)
            }
            throw BroadsideError(
                option:
                    "ledger",
                "\(directory.path): its sound part contradicts itself, and no "
                    + "disk damage explains that: \(error)", exitCode: 5)
        }
    }

    // MARK: Messages

    private func text(
        _ salvage: LedgerSalvage, _ summary: LedgerSummary, undatedCount: UInt64, others: [String]
    ) -> String {
        let open = summary.count(.remaining) + summary.count(.inDoubt)
        let settled = summary.reservedRowCount - open
        var lines = [
            "repaired \(directory.path) into \(output): \(settled) rows are settled, "
                + "\(summary.count(.inDoubt)) are in doubt"
        ]
        if salvage.isSound, others.isEmpty {
            lines = [
                "\(directory.path) is sound: \(output) is a copy, \(settled) rows are settled, "
                    + "\(summary.count(.inDoubt)) are in doubt"
            ]
        }
        for loss in salvage.losses {
            let bytes = loss.bytes.map { "\($0.count) bytes from byte \($0.lowerBound) on" }
            lines.append("lost \(loss.segment): \(bytes ?? "missing")")
        }
        for name in salvage.foreignSegments {
            lines.append("lost \(name): another run's file is in its place")
        }
        lines += others
        if undatedCount > 0 {
            lines.append(
                "\(undatedCount) rows have the time of the last record before the damage, because "
                    + "the time of their verdict is lost")
        }
        if summary.count(.inDoubt) > 0 {
            let again = directory.nightDate.map { "broadside night --date \($0)" } ?? "--resume"
            lines.append(
                salvage.isOfBroadcast
                    ? "the broadcast may have been sent: broadside broadcast only records it as "
                        + "unknown, and broadside broadcast --retry unknown sends it again"
                    : "rows in doubt may have been sent: \(again) only records them as unknown, "
                        + "and \(again) --retry unknown sends them again")
        }
        return lines.joined(separator: "\n")
    }
}
