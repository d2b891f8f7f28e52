import BroadsideLedgerFormat
import BroadsideRows
import BroadsideSupport
import BroadsideTestSupport
import Foundation
import Testing

@testable import BroadsideLedgers

/// Advice about a night's ledger, which `night` continues: it has no option for a ledger.
struct NightLedgerTests {
    private let directory: TemporaryDirectory
    private var path: String { "\(directory.path)/2026-11-20" }

    init() throws { directory = try TemporaryDirectory() }

    private func noteNights() throws { try directory.write("", to: "nights") }

    /// Writes the ledger of a run that was killed after it reserved the list's only row.
    private func kill() throws {
        let list = try directory.write(DraftedLedger.token(0) + "\n", to: "list.txt")
        let run = try LedgerDirectory.openForRun(path, resumes: true)
        var manifest = Manifest(
            campaign: 7,
            identity: CampaignIdentity(
                listByteCount: 65, listFormat: "lines", columns: ["token"], payloadSHA256: "",
                topic: nil, pushType: "alert", priority: 10, expiration: nil, collapseID: nil,
                environment: "production", shard: nil, suppressSHA256: nil),
            firstStartedAtMilliseconds: DraftedLedger.time, listPath: list)
        let epoch = manifest.beginEpoch(atMilliseconds: DraftedLedger.time)
        manifest.recordRunShape(isInListOrder: true, segmentCount: 1)
        manifest.recordCreatedSegments()
        try run.save(manifest)
        #expect(try run.claimAttempt(manifest).isEmpty)
        let segment = try run.createSegment(epoch: epoch, reactor: 0)
        defer { close(segment) }
        var writer = LedgerWriter(campaign: manifest.segmentNumber, epoch: epoch, reactor: 0)
        writer.reserve(
            ChunkReservation(
                firstRow: 0, rowCount: 1, byteOffset: 0, byteCount: 65, firstLine: 1, lineCount: 1,
                hash: ChunkReservation.unknownHash),
            nowMilliseconds: DraftedLedger.time)
        let isWritten = writer.writePending(to: segment)
        #expect(isWritten)
    }

    /// Without `--date`, a start on a later day would begin another night.
    @Test(arguments: ["2026-11-20", "tonight"], [false, true])
    func `After its repair, a night's ledger is continued by its date, and any other is resumed`(
        name: String, isBesideNotes: Bool
    ) throws {
        if isBesideNotes { try noteNights() }
        let isNight = isBesideNotes && name != "tonight"
        let ledger = "\(directory.path)/\(name)"
        try FileManager.default.createDirectory(atPath: ledger, withIntermediateDirectories: false)
        let advice = LedgerDirectory(path: ledger).repairAdvice
        #expect(advice.contains("which you then resume") != isNight, "\(advice)")
        #expect(
            advice.hasSuffix(
                "rename the new one to 2026-11-20, and run the night's command with --date "
                    + "2026-11-20") == isNight, "\(advice)")
    }

    @Test(arguments: [false, true])
    func `For rows in doubt, a repair names the date of a night's ledger, not --resume`(
        isNight: Bool
    ) throws {
        if isNight { try noteNights() }
        try kill()
        let text = try LedgerRepair.run(
            path, output: "\(directory.path)/repaired", tokens: nil)
        #expect(text.contains("1 are in doubt"), "\(text)")
        let again = isNight ? "broadside night --date 2026-11-20" : "--resume"
        #expect(text.contains("\(again) --retry unknown sends them again"), "\(text)")
        #expect(text.contains("--resume") != isNight, "\(text)")
    }
}
