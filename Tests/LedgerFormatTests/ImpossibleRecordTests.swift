import BroadsideSupport
import Testing

@testable import BroadsideAPNs
@testable import BroadsideHygiene
@testable import BroadsideLedgerFormat
@testable import BroadsideRows

/// Segments whose checksums fit, with records that no run can have written.
@Suite struct ImpossibleRecordTests {
    /// A segment of run 1 with a block of records, sealed.
    private func segment(_ words: [UInt64]) -> LedgerSegment {
        let header = LedgerFormat.segmentHeader(campaign: testCampaign, epoch: 1, reactor: 0)
        let block = UInt64(words.count / 2) << 32 | LedgerFormat.blockMarker << 48
        var bytes: [UInt8] = []
        for word in [header.0, header.1, header.2, header.3, block] + words {
            for byte in 0..<8 { bytes.append(UInt8(truncatingIfNeeded: word >> UInt64(8 * byte))) }
        }
        sealSegment(&bytes)
        return LedgerSegment(epoch: 1, reactor: 0, bytes: LedgerMemory(bytes))
    }

    private static func first(_ kind: RecordKind, _ small: UInt64, row: UInt64 = 0) -> UInt64 {
        FirstWord(kind: kind, small: small, delta: 0, row: row).bits
    }

    /// A settled row with texts of so many bytes.
    private static func settled(
        _ state: RowState, flags: UInt64 = 0, attempts: UInt16 = 1, token: Int, text: Int = 0
    ) -> [UInt64] {
        let second = SettledWord(
            status: 410, reason: 57, flags: flags, attempts: attempts, tokenCount: token,
            reasonTextCount: text)
        return [first(.settled, UInt64(state.rawValue)), second.bits]
            + [UInt64](repeating: 0, count: (second.slotCount - 1) * 2)
    }

    private static func reserve(
        _ row: UInt64 = 0, rows: UInt64 = 10, offset: UInt64 = 0, count: UInt64 = 650,
        line: UInt64 = 1
    ) -> [UInt64] {
        [first(.reserve, 0, row: row), rows | 10 << 32, offset, count, line, 0]
    }

    private static let half = UInt64(Int64.max) / 2

    static let impossible: [(String, [UInt64])] = [
        ("a time behind the year 9999", [first(.clock, 0), 253_402_300_800_000]),
        ("a time behind all", [first(.clock, 0), .max]),
        ("a token of 101 bytes", settled(.rejected, token: 101)),
        ("a token of 255 bytes", settled(.rejected, token: 255)),
        ("a text of 201 bytes", settled(.invalid, flags: SettledWord.tokenIsText, token: 201)),
        ("a reason of 65 bytes", settled(.rejected, token: 32, text: 65)),
        (
            "a fingerprint of a dead token",
            settled(.rejected, flags: SettledWord.tokenIsFingerprint, token: 8)
        ),
        (
            "a fingerprint that was never sent",
            settled(.accepted, flags: SettledWord.tokenIsFingerprint, attempts: 0, token: 8)
        ),
        ("a chunk without rows", reserve(10, rows: 0, offset: 650)),
        ("a chunk behind all bytes", reserve(offset: half + 1)),
        ("a chunk of more than all bytes", reserve(count: .max)),
        ("a chunk behind all lines", reserve(line: .max)),
        ("chunks that go back in the list", reserve(offset: 650) + reserve(10, offset: 0)),
        ("chunks that share bytes", reserve() + reserve(10, offset: 649)),
    ]

    @Test(arguments: impossible)
    func `An impossible record is a fault to each reader`(
        name: String, words: [UInt64]
    ) throws {
        let isOfPlaces = name.hasPrefix("chunks")
        let segment = segment((isOfPlaces ? [] : Self.reserve()) + words)
        var manifest = Manifest(
            campaign: testCampaign, identity: testIdentity, firstStartedAtMilliseconds: testTime,
            listPath: nil)
        _ = manifest.beginEpoch(atMilliseconds: testTime)
        let expected = LedgerError.Code.malformedRecord
        #expect(
            errorCode { _ = try LedgerIndex(segments: [segment], manifest: manifest) } == expected)
        #expect(
            errorCode { _ = try LedgerVerification(checking: [segment], manifest: manifest) }
                == expected)
        guard !isOfPlaces else {
            #expect(
                errorCode { _ = try LedgerSalvage([segment], manifest: manifest) } == .changedChunk)
            return
        }
        var ledger = VerdictLedger(manifest: manifest, segments: [segment])
        var dead = DeadTokens()
        #expect(
            errorCode {
                try dead.insertDead(of: &ledger, reasons: [.unregistered, .badDeviceToken])
            } == expected)
        // A repair takes the block for lost, and what it said is in doubt.
        let salvage = try LedgerSalvage([segment], manifest: manifest)
        #expect(salvage.losses.map(\.segment) == ["segment-0001-00"])
    }

    @Test func `The largest values that a run can write are read`() throws {
        let token = Array(repeating: UInt8(ascii: "a"), count: 200)
        let draft = testDraft()
        draft.writer.reserve(testChunk(0, 4), nowMilliseconds: testTime)
        draft.writer.settled(
            row: 0, state: .rejected, status: 400, reason: 0,
            reasonText: [UInt8](repeating: 0x41, count: 300).span.bytes, attempts: 70_000,
            timestamp: .max, token: token.span.bytes, tokenIsText: false,
            nowMilliseconds: 253_402_300_799_999)
        draft.writer.settled(
            row: 1, state: .invalid, status: 0, reason: 130, attempts: 0,
            token: [UInt8](repeating: 0x7A, count: 300).span.bytes, tokenIsText: true,
            nowMilliseconds: 253_402_300_799_999)
        accept(draft, 2, attempts: 70_000)
        draft.write()
        #expect(try allStates(testIndex([draft])).count == 4)
    }

    @Test func `The highest segment number leaves one for a repair`() throws {
        var manifest = Manifest(
            campaign: testCampaign, identity: testIdentity, firstStartedAtMilliseconds: testTime,
            listPath: nil)
        _ = manifest.beginEpoch(atMilliseconds: testTime)
        let draft = testDraft(1, .max)
        draft.writer.reserve(testChunk(0, 10), nowMilliseconds: testTime)
        draft.write()
        let salvage = try LedgerSalvage([draft.segment], manifest: manifest)
        let parts = salvage.parts(gapChunks: [testChunk(10, 10)])
        #expect(parts.map(\.reactor) == [.max, 0])
    }
}
