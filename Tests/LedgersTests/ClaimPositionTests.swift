import BroadsideLedgerFormat
import BroadsideRows
import BroadsideSupport
import BroadsideTestSupport
import Foundation
import Testing

@testable import BroadsideLedgers

/// The ledger of a killed run with its record `epoch`, its claim and its segment in all states: what the claim
/// shows of sent rows is never lost, and no advice makes a person remove it before a repair has used it.
@Suite struct ClaimPositionTests {
    enum Record: String, CaseIterable { case intact, missing, damaged }
    enum Claim: String, CaseIterable {
        /// Unreadable: reading it fails. Foreign: a newer attempt started in another directory, which exists.
        case own, unreadable, missing, foreign
    }

    /// What becomes of a ledger.
    private struct Outcome: Equatable, CustomStringConvertible {
        /// Exit codes; a start that would make a claim is 0.
        var verify: Int32
        var start: Int32
        /// Rows in doubt after the repair; nil if the repair ends with exit code 5.
        var inDoubt: Int?
        var repairedStart: Int32?

        init(_ verify: Int32, _ start: Int32, _ inDoubt: Int?, _ repairedStart: Int32?) {
            (self.verify, self.start) = (verify, start)
            (self.inDoubt, self.repairedStart) = (inDoubt, repairedStart)
        }

        var description: String {
            "verify \(verify), start \(start), \(inDoubt ?? -1) in doubt, repaired \(repairedStart ?? -1)"
        }
    }

    private static let refused = Outcome(5, 5, nil, nil)

    /// The outcome with a whole segment, and with one that was cut at the end of its header. If the claim is missing,
    /// nothing shows that the segment was cut.
    private static func expected(
        _ record: Record, _ claim: Claim
    ) -> (whole: Outcome, cut: Outcome) {
        switch (record, claim) {
        case (_, .unreadable): (refused, refused)
        case (.intact, .own): (Outcome(0, 0, 10, 0), Outcome(5, 7, 20, 0))
        case (.missing, .own): (Outcome(0, 7, 10, 0), Outcome(5, 7, 20, 0))
        case (.damaged, .own): (Outcome(5, 5, 10, 0), Outcome(5, 5, 20, 0))
        case (.intact, .missing), (.missing, .missing):
            (Outcome(0, 0, 10, 0), Outcome(0, 0, 0, 0))
        case (.damaged, .missing): (Outcome(5, 5, 10, 0), Outcome(5, 5, 0, 0))
        case (.intact, .foreign): (Outcome(0, 7, 10, 7), Outcome(0, 7, 0, 7))
        case (.missing, .foreign): (Outcome(0, 7, 10, 7), Outcome(0, 7, 20, 7))
        case (.damaged, .foreign): (Outcome(5, 5, 10, 7), Outcome(5, 5, 20, 7))
        }
    }

    private let files = FileManager.default
    private let directory: TemporaryDirectory
    private var ledger: String { "\(directory.path)/ledger" }
    private var epoch: String { "\(ledger)/epoch" }
    private var list: String { "\(directory.path)/list.txt" }
    private static let claimPrefix = ".broadside-0123456789abcdef."

    init() throws {
        directory = try TemporaryDirectory()
        let rows = (0..<20).map { DraftedLedger.token($0) + "\n" }.joined()
        _ = try directory.write(rows, to: "list.txt")
        try files.createDirectory(
            atPath: "\(directory.path)/other", withIntermediateDirectories: false)
        try kill()
    }

    /// Writes the ledger of a run that was killed: it reserved 20 rows, and 10 of them were accepted.
    ///
    /// - Parameter reactors: 1 or 2. If there are two, the second one reserved the other 10 rows.
    private func kill(reactors: UInt16 = 1) throws {
        let run = try LedgerDirectory.openForRun(ledger, resumes: true)
        var manifest = Manifest(
            campaign: 0x0123_4567_89ab_cdef,
            identity: CampaignIdentity(
                listByteCount: 20 * 65, listFormat: "lines", columns: ["token"],
                payloadSHA256: "00", topic: nil, pushType: "alert", priority: 10,
                expiration: nil, collapseID: nil, environment: "production", shard: nil,
                part: nil, campaignID: nil, suppressSHA256: nil),
            firstStartedAtMilliseconds: DraftedLedger.time, listPath: list)
        let number = manifest.beginEpoch(atMilliseconds: DraftedLedger.time)
        manifest.recordRunShape(isInListOrder: true, segmentCount: Int(reactors))
        manifest.recordCreatedSegments()
        try run.save(manifest)
        #expect(try run.claimAttempt(manifest).isEmpty)
        for reactor in 0..<reactors {
            let segment = try run.createSegment(epoch: number, reactor: reactor)
            defer { close(segment) }
            var writer = LedgerWriter(
                campaign: manifest.segmentNumber, epoch: number, reactor: reactor)
            for chunk: UInt64 in [0, 10] where reactors == 1 || chunk == 10 * UInt64(reactor) {
                writer.reserve(
                    ChunkReservation(
                        firstRow: chunk, rowCount: 10, byteOffset: 65 * chunk, byteCount: 650,
                        firstLine: chunk + 1, lineCount: 10, hash: ChunkReservation.unknownHash),
                    nowMilliseconds: DraftedLedger.time)
            }
            if reactor == 0 {
                for row: UInt64 in 0..<10 {
                    writer.accepted(
                        row: row, fingerprint: row, attempts: 1,
                        nowMilliseconds: DraftedLedger.time)
                }
            }
            let isWritten = writer.writePending(to: segment)
            #expect(isWritten)
            try note(writer.writtenPosition, of: number, reactor: reactor, claim: claim(1))
        }
    }

    private func claim(_ number: Int) -> String {
        "\(directory.path)/\(Self.claimPrefix)\(number)"
    }

    /// Records in a claim how much of a segment is durable.
    private func note(
        _ position: UInt64, of epoch: UInt32, reactor: UInt16 = 0, claim: String
    ) throws {
        let durable = DurablePosition(epoch: epoch, reactor: reactor, position: position)
        let file = try FileHandle(forUpdating: URL(filePath: claim))
        try file.seek(toOffset: durable.offset)
        let words = [durable.words.0, durable.words.1]
        try file.write(contentsOf: words.withUnsafeBytes { Data($0) })
        try file.close()
    }

    private func change(_ record: Record, _ state: Claim, cutsSegment: Bool) throws {
        switch record {
        case .intact: break
        case .missing: try files.removeItem(atPath: epoch)
        case .damaged: try Data().write(to: URL(filePath: epoch))
        }
        switch state {
        case .own: break
        case .missing: try files.removeItem(atPath: claim(1))
        case .unreadable:
            try files.removeItem(atPath: claim(1))
            try files.createDirectory(atPath: claim(1), withIntermediateDirectories: false)
        case .foreign:
            try files.moveItem(atPath: claim(1), toPath: claim(2))
            let file = try FileHandle(forUpdating: URL(filePath: claim(2)))
            try file.write(
                contentsOf: Data("fedcba9876543210 \(directory.path)/other\n\0".utf8))
            try file.close()
            try note(4_711, of: 2, claim: claim(2))
        }
        if cutsSegment { try cut(0) }
    }

    /// Cuts the segment of a reactor at the end of its header.
    private func cut(_ reactor: UInt16) throws {
        let segment = "\(ledger)/\(LedgerFormat.segmentName(epoch: 1, reactor: reactor))"
        let header = try Data(contentsOf: URL(filePath: segment))
            .prefix(LedgerFormat.segmentHeaderByteCount)
        try header.write(to: URL(filePath: segment))
    }

    /// Returns the exit code of a start, which ends before it changes anything.
    private func start(_ path: String) throws -> Int32 {
        let run = try LedgerDirectory.openForRun(path, resumes: true)
        let manifest = try run.readManifest()
        do throws(BroadsideError) {
            try run.refuseOldCopy(manifest)
        } catch {
            return error.exitCode
        }
        return 0
    }

    private func verify(_ path: String) throws -> (code: Int32, text: String) {
        do throws(BroadsideError) {
            return (0, try LedgerReader(path: path).verify())
        } catch {
            return (error.exitCode, error.message)
        }
    }

    private func outcome() throws -> Outcome {
        let repaired = directory.fresh("repaired")
        let text: String
        do throws(BroadsideError) {
            text = try LedgerRepair.run(ledger, output: repaired, tokens: nil)
        } catch {
            #expect(error.exitCode == 5 && !files.fileExists(atPath: repaired), "\(error)")
            return Outcome(try verify(ledger).code, try start(ledger), nil, nil)
        }
        let words = text.split(separator: "\n")[0].split(separator: " ")
        let count = words.firstIndex(of: "in").flatMap { Int(words[$0 - 2]) }
        #expect(try verify(repaired).code == 0)
        return Outcome(try verify(ledger).code, try start(ledger), count, try start(repaired))
    }

    @Test(arguments: Record.allCases, Claim.allCases)
    func `What a claim shows counts whatever else is damaged`(record: Record, claim: Claim) throws {
        let expected = Self.expected(record, claim)
        for cuts in [false, true] {
            if cuts {
                try change(.intact, .own, cutsSegment: true)
            } else {
                try change(record, claim, cutsSegment: false)
            }
            let wanted = cuts ? expected.cut : expected.whole
            #expect(try outcome() == wanted, "\(record), claim \(claim), \(cuts ? "cut" : "whole")")
        }
    }

    @Test(arguments: [Record.missing, .damaged])
    func `A claim with positions is adopted by the repaired copy, and need not be removed`(
        record: Record
    ) throws {
        try change(record, .own, cutsSegment: false)
        let manifest = try LedgerDirectory.unlocked(ledger).readManifest()
        let advice = "broadside ledger repair --ledger \(ledger) --output \(ledger)-repaired"
        let refused = #expect(throws: BroadsideError.self) {
            try LedgerDirectory.openForRun(ledger, resumes: true).refuseOldCopy(manifest)
        }
        let verified = try verify(ledger).text
        for text in [refused?.message ?? "", verified] {
            #expect(text.contains("\(epoch) is \(record)"), "\(text)")
            #expect(text.contains(advice) && !text.contains("remove"), "\(text)")
        }
        let repaired = directory.fresh("repaired")
        let done = try LedgerRepair.run(ledger, output: repaired, tokens: nil)
        #expect(done.hasPrefix("repaired \(ledger) into \(repaired): 10 rows are settled, 10 are"))
        #expect(done.contains("lost epoch: \(repaired) takes over the claim /"), "\(done)")
        let run = try LedgerDirectory.openForRun(repaired, resumes: true)
        #expect(try run.claimAttempt(manifest).isEmpty)
        #expect(try start(ledger) == (record == .missing ? 7 : 5))
        #expect(try verify(repaired).code == 0)
    }

    /// Each of these starts crashed before it wrote its claim.
    @Test(arguments: [1, 2])
    func `Unwritten claims do not prevent that a repaired copy adopts the claim before them`(
        count: Int
    ) throws {
        try change(.missing, .own, cutsSegment: true)
        for number in 2..<(2 + count) { try Data().write(to: URL(filePath: claim(number))) }
        let manifest = try LedgerDirectory.unlocked(ledger).readManifest()
        let repaired = directory.fresh("repaired")
        let done = try LedgerRepair.run(ledger, output: repaired, tokens: nil)
        #expect(done.contains(" 0 rows are settled, 20 are in doubt"), "\(done)")
        #expect(
            done.contains("\(Self.claimPrefix)1, so only \(repaired) can be resumed"), "\(done)")
        #expect(!done.contains("remove") && !done.contains("ledger repair"), "\(done)")
        // A further repaired copy adopts the same claim, but only one of both continues.
        let other = directory.fresh("repaired")
        _ = try LedgerRepair.run(ledger, output: other, tokens: nil)
        let run = try LedgerDirectory.openForRun(repaired, resumes: true)
        #expect(try run.claimAttempt(manifest).isEmpty)
        #expect(!files.fileExists(atPath: claim(1)))
        #expect(files.fileExists(atPath: claim(2 + count)))
        #expect(try start(ledger) == 7 && start(other) == 7)
        #expect(try verify(repaired).code == 0)
    }

    @Test func `Without positions the advice is to remove the claims, which show nothing`() throws {
        let claimed = "0123456789abcdef \(absolutePath(ledger))\n"
        try Data(claimed.utf8).write(to: URL(filePath: claim(1)))
        for record in [Record.missing, .damaged] {
            try change(record, .own, cutsSegment: false)
            let manifest = try LedgerDirectory.unlocked(ledger).readManifest()
            let error = #expect(throws: BroadsideError.self) {
                try LedgerDirectory.openForRun(ledger, resumes: true).refuseOldCopy(manifest)
            }
            #expect(error?.message.contains("remove ") == true, "\(error?.message ?? "")")
            if record == .missing { try Data().write(to: URL(filePath: epoch)) }
        }
    }

    @Test func `Each flipped bit of the record is noticed`() throws {
        let bytes = try [UInt8](Data(contentsOf: URL(filePath: epoch)))
        let record = try #require(AttemptRecord(bytes))
        #expect(record.encoded == bytes)
        for bit in 0..<(8 * bytes.count) {
            var flipped = bytes
            flipped[bit / 8] ^= 1 << (bit % 8)
            #expect(AttemptRecord(flipped) == nil, "bit \(bit)")
        }
        // Earlier versions wrote the first line only.
        let line = bytes.prefix { $0 != 0x0a } + [0x0a]
        #expect(AttemptRecord(Array(line)) == record)
    }

    /// Overwrites the text of a claim with zeros.
    private func damageText(_ number: Int) throws {
        let file = try FileHandle(forUpdating: URL(filePath: claim(number)))
        try file.write(contentsOf: Data(count: 200))
        try file.close()
    }

    @Test func `A repair uses the positions of a claim whose text is damaged, and takes it over`()
        throws
    {
        try damageText(1)
        #expect(try outcome() == Outcome(5, 5, 10, 0))
        let advice = "broadside ledger repair --ledger \(ledger) --output \(ledger)-repaired"
        #expect(try verify(ledger).text.contains("on the ledger is damaged: \(advice)"))
        let repaired = directory.fresh("repaired")
        let text = try LedgerRepair.run(ledger, output: repaired, tokens: nil)
        #expect(text.hasPrefix("repaired \(ledger) into \(repaired): 10 rows are"), "\(text)")
        #expect(text.contains("\nlost the text of the claim /"), "\(text)")
        try change(.intact, .own, cutsSegment: true)
        #expect(try outcome() == Outcome(5, 5, 20, 0))
        let other = directory.fresh("repaired")
        _ = try LedgerRepair.run(ledger, output: other, tokens: nil)
        do {
            // A start that crashes beside the damaged claim.
            let run = try LedgerDirectory.openForRun(repaired, resumes: true)
            let error = #expect(throws: BroadsideError.self) {
                try run.claimAttempt(try run.readManifest()) { step throws(BroadsideError) in
                    if step == .claimed { throw BroadsideError("crashed", exitCode: -1) }
                }
            }
            #expect(error?.exitCode == -1)
        }
        let run = try LedgerDirectory.openForRun(repaired, resumes: true)
        #expect(try run.claimAttempt(try run.readManifest()).isEmpty)
        #expect(!files.fileExists(atPath: claim(1)))
        #expect(try start(ledger) == 7 && start(other) == 7)
        #expect(try verify(repaired).code == 0)
    }

    @Test
    func `If a damaged claim lost one position, what that reactor may have reserved is in doubt`()
        throws
    {
        try files.removeItem(atPath: ledger)
        try files.removeItem(atPath: claim(1))
        try kill(reactors: 2)
        try damageText(1)
        try note(0, of: 1, reactor: 1, claim: claim(1))
        try cut(1)
        #expect(try outcome() == Outcome(5, 5, 10, 0))
    }

    /// Such a claim has lost the positions, too.
    @Test(arguments: [0, DurablePosition.claimByteCount])
    func `A confirmed claim that is empty or has only zeros is damaged`(byteCount: Int) throws {
        try Data(count: byteCount).write(to: URL(filePath: claim(1)))
        #expect(try outcome() == Outcome(5, 5, 10, 0))
        try change(.intact, .own, cutsSegment: true)
        #expect(try outcome() == Outcome(5, 5, 20, 0))
    }

    @Test func `If each run recorded its segments, an empty claim is not damaged`() throws {
        do {
            let run = try LedgerDirectory.openForRun(ledger, resumes: true)
            var manifest = try run.readManifest()
            let name = LedgerFormat.segmentName(epoch: 1, reactor: 0)
            let byteCount = try #require(try run.byteCount(of: name))
            manifest.endEpoch(
                lengths: [SegmentLength(reactor: 0, byteCount: byteCount)], isFinished: false)
            try run.save(manifest)
        }
        try Data().write(to: URL(filePath: claim(1)))
        #expect(try outcome() == Outcome(0, 0, 10, 0))
    }

    @Test func `An empty claim that is unwritten, or that a newer claim replaces, is not damaged`()
        throws
    {
        let record = try #require(
            AttemptRecord([UInt8](Data(contentsOf: URL(filePath: epoch)))))
        // The first of two starts crashed before it wrote its claim, the second before it made one.
        let first = record.next(2, nonce: "00112233445566ff", after: 1)
        let second = first.next(3, nonce: "0123456789abcdef", after: 2)
        try Data(second.encoded).write(to: URL(filePath: epoch))
        try Data().write(to: URL(filePath: claim(2)))
        #expect(try outcome() == Outcome(0, 0, 10, 0))
        // A newer attempt empties a claim before it removes it.
        try Data(record.encoded).write(to: URL(filePath: epoch))
        try Data().write(to: URL(filePath: claim(1)))
        #expect(try verify(ledger).code == 0)
        #expect(try start(ledger) == 7)
    }

    /// Of such a claim, nothing shows which copy made it.
    @Test(arguments: ["no record", "intended", "elsewhere"])
    func `A damaged claim that may be that of another copy is refused, also after a repair`(
        state: String
    ) throws {
        let record = try #require(
            AttemptRecord([UInt8](Data(contentsOf: URL(filePath: epoch)))))
        switch state {
        case "no record": try files.removeItem(atPath: epoch)
        case "intended":
            let next = record.next(2, nonce: "00112233445566ff", after: 1)
            try Data(next.encoded).write(to: URL(filePath: epoch))
            try files.moveItem(atPath: claim(1), toPath: claim(2))
        default:
            let moved = AttemptRecord(
                confirmed: 1, claimed: 1, nonce: record.nonce, parent: "\(directory.path)/other")
            try Data(moved.encoded).write(to: URL(filePath: epoch))
        }
        try damageText(state == "intended" ? 2 : 1)
        for isRepaired in [false, true] {
            if isRepaired { try Data().write(to: URL(filePath: "\(ledger)/repaired")) }
            let run = try LedgerDirectory.openForRun(ledger, resumes: true)
            let error = #expect(throws: BroadsideError.self) {
                try run.refuseOldCopy(try run.readManifest())
            }
            #expect(error?.exitCode == 5)
            #expect(error?.message.hasSuffix("made it: put a backup of this file back") == true)
        }
        try files.removeItem(atPath: "\(ledger)/repaired")
        #expect(try outcome().inDoubt == nil)
    }

    @Test func `An attempt that crashed before it wrote its claim hides no positions`() throws {
        let record = try #require(
            AttemptRecord([UInt8](Data(contentsOf: URL(filePath: epoch)))))
        let next = record.next(2, nonce: "00112233445566ff", after: 1)
        try Data(next.encoded).write(to: URL(filePath: epoch))
        try Data().write(to: URL(filePath: claim(2)))
        #expect(try outcome() == Outcome(0, 0, 10, 0))
        try change(.intact, .own, cutsSegment: true)
        #expect(try outcome() == Outcome(5, 7, 20, 0))
    }

    /// A newer attempt may remove a claim after a reader's attempt to open it.
    @Test func `A claim without permissions or without a name is gone`() throws {
        let run = try LedgerDirectory.openForRun(ledger, resumes: true)
        let folder = try #require(try run.parentFolder(try run.readManifest()))
        func gone() -> [Bool] { [EACCES, EIO, ENOENT].map { folder.isGone(1, $0) } }
        #expect(gone() == [false, false, true])
        #expect(chmod(claim(1), 0) == 0)
        #expect(gone() == [true, false, true])
        try files.removeItem(atPath: claim(1))
        #expect(gone() == [true, false, true])
    }

    @Test func `The advice about a claim without permission depends on the ledger's owner`() throws
    {
        let run = try LedgerDirectory.openForRun(ledger, resumes: true)
        let folder = try #require(try run.parentFolder(try run.readManifest()))
        func message(_ code: Int32) -> String { run.unreadableClaim(folder, 1, code).message }
        #expect(
            message(EACCES).hasSuffix(
                "denied: the claim on the ledger must be readable for the ledger's owner"))
        #expect(message(EIO).hasSuffix("file system failed: try again, or name another place"))
        guard geteuid() == 0 else { return }
        #expect(chown(ledger, 61_235, 61_235) == 0)
        #expect(message(EACCES).hasSuffix("denied: run the same command as the ledger's owner"))
    }

    @Test(arguments: [nil, "{"])
    func `A repair that used a copy of the manifest does not call the ledger sound`(
        rest: String?
    ) throws {
        let manifest = "\(ledger)/manifest.json"
        try files.removeItem(atPath: manifest)
        if let rest { try Data(rest.utf8).write(to: URL(filePath: manifest)) }
        let repaired = directory.fresh("repaired")
        let text = try LedgerRepair.run(ledger, output: repaired, tokens: nil)
        #expect(text.hasPrefix("repaired \(ledger) into \(repaired): 10 rows are settled, 10 are"))
        #expect(text.contains("\nlost manifest.json: a copy of it was used"), "\(text)")
        #expect(try start(repaired) == 0)
    }

    /// The record still names the earlier folder, in which there is no claim.
    @Test func `A repair uses a claim that was moved together with its ledger`() throws {
        try change(.intact, .own, cutsSegment: true)
        let moved = "\(directory.path)/other/moved"
        try files.createDirectory(atPath: moved, withIntermediateDirectories: false)
        try files.moveItem(atPath: ledger, toPath: "\(moved)/ledger")
        try files.moveItem(atPath: claim(1), toPath: "\(moved)/\(Self.claimPrefix)1")
        let text = try LedgerRepair.run(
            "\(moved)/ledger", output: "\(moved)/repaired", tokens: nil)
        #expect(text.contains(" 0 rows are settled, 20 are in doubt"), "\(text)")
    }
}
