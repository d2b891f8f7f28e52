import BroadsideLedgerFormat
import BroadsideLists
import BroadsideRows
import BroadsideSupport
import BroadsideTestSupport
import Foundation
import Testing

@testable import BroadsideLedgers

/// `ledger forget` in a ledger of a list file, with rows that no run has settled: the ledger has no
/// data of these devices, but a resume could send to them.
@Suite(.timeLimit(.minutes(60)))
struct UnsettledErasureTests {
    private let directory: TemporaryDirectory
    private let list: String
    private var ledger: String { "\(directory.path)/ledger" }

    /// Writes a ledger of a list of eight rows. Of these, 0 is accepted, 1 is failed, 2 is in doubt
    /// and 3 was released; no run reserved the others.
    init() throws {
        directory = try TemporaryDirectory()
        let text = (0..<8).map { DraftedLedger.token($0 + 0x10) + "\n" }.joined()
        list = try directory.write(text, to: "list.txt")
    }

    /// - Parameter hasVerdicts: false: no row of the chunk has a verdict, so all of them are in doubt.
    private func write(
        keepsTokens: Bool = true, isFinished: Bool = false, hasVerdicts: Bool = true,
        erased: ErasedRows = ErasedRows()
    ) throws {
        let reserved = try TokenList(.file(list), format: nil, tokenColumn: nil)
        let chunk = try #require(try ListSource(reserved).next(rowLimit: 4))
        let folder = try LedgerDirectory.create(ledger)
        var identity = CampaignIdentity(
            listByteCount: 65 * 8, listFormat: "lines", columns: ["token"], payloadSHA256: "00",
            topic: nil, pushType: "alert", priority: 10, expiration: nil, collapseID: nil,
            environment: "production", shard: nil, suppressSHA256: nil)
        identity.keepTokens = keepsTokens ? nil : "no"
        var manifest = Manifest(
            campaign: 0x0123_4567_89ab_cdef, identity: identity,
            firstStartedAtMilliseconds: DraftedLedger.time, listPath: list)
        let epoch = manifest.beginEpoch(atMilliseconds: DraftedLedger.time)
        let segment = try folder.createSegment(epoch: epoch, reactor: 0)
        defer { close(segment) }
        var writer = LedgerWriter(
            campaign: manifest.segmentNumber, epoch: epoch, reactor: 0, keepsTokens: keepsTokens)
        writer.reserve(chunk.reservation, nowMilliseconds: DraftedLedger.time)
        if hasVerdicts {
            writer.accepted(
                row: 0, fingerprint: 7, attempts: 1, nowMilliseconds: DraftedLedger.time)
            let token = Array(DraftedLedger.token(0x11).utf8)
            writer.settled(
                row: 1, state: .failed, status: 503, reason: 0, attempts: 5,
                token: token.span.bytes, tokenIsText: false, nowMilliseconds: DraftedLedger.time)
            writer.release(row: 3, count: 1, attempts: 0, nowMilliseconds: DraftedLedger.time)
        }
        let isWritten = writer.writePending(to: segment)
        #expect(isWritten)
        manifest.endEpoch(
            lengths: [SegmentLength(reactor: 0, byteCount: writer.writtenPosition)],
            isFinished: isFinished)
        manifest.record(erasedRows: erased)
        try folder.save(manifest)
    }

    private func forget(_ rows: [UInt64], isDryRun: Bool = false) throws -> [String] {
        let (lines, error) = try failure(of: rows, isDryRun: isDryRun)
        if let error { throw error }
        return lines
    }

    private func failure(
        of rows: [UInt64], isDryRun: Bool = false, ledgers: [String]? = nil
    ) throws -> (lines: [String], error: BroadsideError?) {
        let devices = try directory.write(
            rows.map { DraftedLedger.token($0 + 0x10) + "\n" }.joined(), to: "erase.txt")
        var lines: [String] = []
        var failure: BroadsideError?
        do throws(BroadsideError) {
            try LedgerErasure.run(
                tokens: .file(devices), ledgers: ledgers ?? [ledger], isDryRun: isDryRun
            ) { lines.append($0) }
        } catch {
            failure = error
        }
        return (
            lines.map { $0.replacingOccurrences(of: "\(directory.path)/", with: "") }, failure
        )
    }

    private func erasedRows() throws -> [UInt64]? {
        try LedgerDirectory.openToRead(ledger).readManifest().erasedRows.map(Array.init)
    }

    private func find(_ row: UInt64) throws -> [String] {
        try LedgerReader(path: ledger).find(
            notificationID: nil, token: DraftedLedger.token(row + 0x10), tokens: nil
        ).map(\.text)
    }

    @Test func `Unsettled rows are found in the list, recorded once, and not found any more`()
        throws
    {
        try write()
        #expect(try find(2).count == 1 && find(3).count == 1 && find(6).count == 1)
        let words = "forget 3 devices, 3 rows that a resume will not send"
        #expect(try forget([2, 3, 6], isDryRun: true).first == "ledger: would \(words)")
        #expect(try erasedRows() == nil)
        #expect(
            try forget([2, 3, 6]) == [
                "ledger: \(words.replacing("forget", with: "forgot"))",
                "3 of 3 devices found; lists, exports, summaries and backups elsewhere are unchanged",
            ])
        #expect(try erasedRows() == [2, 3, 6])
        for row: UInt64 in [2, 3, 6] { #expect(try find(row).isEmpty, "row \(row)") }
        #expect(try find(7).count == 1)
        #expect(
            try forget([2, 3, 6]) == [
                "ledger: contains none of the devices: nothing changed",
                "0 of 3 devices found; lists, exports, summaries and backups elsewhere are unchanged",
            ])
        let more = try forget([1, 2, 7])
        #expect(
            more.first
                == "ledger: forgot 2 devices, 1 record (1 failed), 1 row that a resume will not send",
            "\(more)")
        #expect(try erasedRows() == [2, 3, 6, 7])
    }

    @Test
    func `If another list is in the place of the one that was sent, the ledger's line says so`()
        throws
    {
        try write()
        let end = "put the list back and run ledger forget again before a resume"
        let other = (0..<8).map { DraftedLedger.token($0 + 0x99) + "\n" }.joined()
        try directory.write(other, to: "list.txt")
        #expect(
            try forget([6]).first
                == "ledger: contains none of the devices: nothing changed; rows that a resume could "
                + "send were not searched, because list.txt is not the list that was sent: \(end)")
        try directory.write("x\n", to: "list.txt")
        #expect(
            try forget([1]).first
                == "ledger: forgot 1 device, 1 record (1 failed); rows that a resume could send were "
                + "not searched, because list.txt is not the list that was sent: \(end)")
        #expect(try erasedRows() == nil)
    }

    @Test(arguments: [true, false])
    func `A list that can't be read is exit 5 with the cause, and the rest is erased`(
        isMissing: Bool
    ) throws {
        try write()
        try FileManager.default.removeItem(atPath: list)
        // Root may read every file, but no file through a link to itself.
        if !isMissing {
            try FileManager.default.createSymbolicLink(
                atPath: list, withDestinationPath: "list.txt")
        }
        let cause =
            isMissing
            ? "is missing: put the list back, then run the same command again; or, if you will "
                + "not resume its campaign, delete the ledger"
            : ": \(describe(errno: ELOOP)): make the list readable, then run the same command again"
        let message =
            "--ledger \(ledger): rows that a resume could send were not searched: \(list)"
            + (isMissing ? " " : "") + cause
        for isDryRun in [true, false] {
            let (lines, error) = try failure(of: [1, 6], isDryRun: isDryRun)
            #expect(
                error?.exitCode == ExitCode.disk && error?.message == message,
                "\(String(describing: error))")
            #expect(
                lines.first
                    == "ledger: \(isDryRun ? "would forget" : "forgot") 1 device, 1 record (1 failed); "
                    + "rows that a resume could send were not searched")
            #expect(lines.last?.hasPrefix("1 of 2 devices found") == true, "\(lines)")
        }
        #expect(try erasedRows() == nil)
    }

    @Test func `Of several ledgers, one whose list can't be read is named, and loses its verdicts`()
        throws
    {
        try write()
        try FileManager.default.removeItem(atPath: list)
        let other = "\(directory.path)/other"
        try DraftedLedger.write(other, firstRow: 0x16)
        let (lines, error) = try failure(of: [1, 6], ledgers: [ledger, other])
        #expect(lines.count == 3 && lines[1].hasPrefix("other: forgot 1 device, "), "\(lines)")
        #expect(lines.last?.hasPrefix("2 of 2 devices found; ") == true, "\(lines)")
        #expect(error?.exitCode == ExitCode.disk)
        #expect(
            error?.message.hasPrefix(
                "--ledger \(ledger): devices in this ledger are not, or not all, ")
                == true, "\(String(describing: error))")
    }

    /// The ledger has all ranges but one, of rows that the list does not have.
    @Test func `A ledger erases as many rows as it can record, and the error says what is left`()
        throws
    {
        let others = (0..<ErasedRows.rangesLimit - 1).map { 1_000 + 2 * UInt64($0) }
        try write(erased: ErasedRows(others))
        let end = "devices found; lists, exports, summaries and backups elsewhere are unchanged"
        let full = try failure(of: [1, 2, 3, 5, 7])
        #expect(
            full.lines == [
                "ledger: forgot 3 devices, 1 record (1 failed), 2 rows that a resume will not send",
                "3 of 5 \(end)",
            ])
        #expect(full.error?.exitCode == ExitCode.badRequest)
        #expect(
            full.error?.message
                == "--ledger \(ledger): a resume would still send to 2 rows of these devices, because a "
                + "ledger has at most 100,000 ranges of erased rows: resume it only with --limit 5, "
                + "which sends to none of them, or delete the ledger")
        // Rows beside those of a range need no other range.
        let next = try failure(of: [4, 7])
        #expect(
            next.lines == [
                "ledger: forgot 1 device, 1 row that a resume will not send", "1 of 2 \(end)",
            ])
        #expect(next.error?.message.contains("send to 1 row of") == true, "\(next)")
        #expect(next.error?.message.contains("--limit 7,") == true, "\(next)")
        #expect(try erasedRows() == [2, 3, 4] + others)
    }

    /// `--limit 0` is not possible.
    @Test func `If the first row is left, the advice is to delete the ledger`() throws {
        let others = (0..<ErasedRows.rangesLimit).map { 1_000 + 2 * UInt64($0) }
        try write(hasVerdicts: false, erased: ErasedRows(others))
        #expect(
            try failure(of: [0, 7]).error?.message
                == "--ledger \(ledger): a resume would still send to 2 rows of these devices, because a "
                + "ledger has at most 100,000 ranges of erased rows: delete the ledger")
    }

    /// `--retry` would send to its failed row.
    @Test func `In a ledger without tokens, failed rows are found in the list, too`() throws {
        try write(keepsTokens: false)
        #expect(
            try forget([0, 1]).first
                == "ledger: forgot 1 device, 1 row that a resume will not send")
        #expect(try erasedRows() == [1])
    }

    @Test func `The list of a finished ledger is not read`() throws {
        try write(isFinished: true)
        try FileManager.default.removeItem(atPath: list)
        #expect(
            try forget([6]).first == "ledger: contains none of the devices: nothing changed")
    }

    /// Writes a ledger of `send --to` with the device of row 5. The only row was released.
    private func writeOfNamedDevice() throws {
        let token = DraftedLedger.token(0x15)
        let named = try TokenList(.single(token), format: nil, tokenColumn: nil)
        let chunk = try #require(try ListSource(named).next(rowLimit: 4))
        let folder = try LedgerDirectory.create(ledger)
        var manifest = Manifest(
            campaign: 0x0123_4567_89ab_cdef,
            identity: CampaignIdentity(
                listByteCount: 65, listFormat: "lines", columns: ["token"], payloadSHA256: "00",
                topic: nil, pushType: "alert", priority: 10, expiration: nil, collapseID: nil,
                environment: "production", shard: nil, suppressSHA256: nil),
            firstStartedAtMilliseconds: DraftedLedger.time, listPath: nil)
        let epoch = manifest.beginEpoch(atMilliseconds: DraftedLedger.time)
        let segment = try folder.createSegment(epoch: epoch, reactor: 0)
        defer { close(segment) }
        var writer = LedgerWriter(campaign: manifest.segmentNumber, epoch: epoch, reactor: 0)
        writer.reserve(chunk.reservation, nowMilliseconds: DraftedLedger.time)
        writer.release(row: 0, count: 1, attempts: 1, nowMilliseconds: DraftedLedger.time)
        let isWritten = writer.writePending(to: segment)
        #expect(isWritten)
        manifest.endEpoch(
            lengths: [SegmentLength(reactor: 0, byteCount: writer.writtenPosition)],
            isFinished: false)
        try folder.save(manifest)
        try directory.write(#"{"arguments":["--to","\#(token)"]}"#, to: "ledger/telemetry.json")
    }

    /// The ledger has no list. It has the device only in the command line.
    @Test func `The device that send --to named gets nothing from a resume`() throws {
        try writeOfNamedDevice()
        #expect(
            try forget([6]).first == "ledger: contains none of the devices: nothing changed")
        #expect(try erasedRows() == nil)
        #expect(
            try forget([5, 6]) == [
                "ledger: forgot 1 device, 1 row that a resume will not send, telemetry.json",
                "1 of 2 devices found; lists, exports, summaries and backups elsewhere are unchanged",
            ])
        #expect(try erasedRows() == [0])
        #expect(
            try forget([5]).first == "ledger: contains none of the devices: nothing changed")
    }
}
