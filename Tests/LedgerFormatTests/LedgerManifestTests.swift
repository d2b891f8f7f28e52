import BroadsidePolicy
import Testing

@testable import BroadsideLedgerFormat
@testable import BroadsideRows

@Suite struct LedgerManifestTests {
    func manifest() -> Manifest {
        var manifest = Manifest(
            campaign: 0xAB, identity: testIdentity, firstStartedAtMilliseconds: testTime,
            expirationSeconds: 1_790_007_200, listPath: "/data/\"list\" ü.csv")
        _ = manifest.beginEpoch(atMilliseconds: testTime)
        manifest.endEpoch(
            lengths: [SegmentLength(reactor: 0, byteCount: 4096)], isFinished: false)
        _ = manifest.beginEpoch(atMilliseconds: testTime + 5)
        manifest.counters.retries = 12
        manifest.counters.add(shortened: 3)
        return manifest
    }

    @Test func `A manifest is read back as it was saved`() throws {
        let original = manifest()
        let read = try Manifest(decoding: original.encoded())
        #expect(read == original)
        #expect(read.campaign == "00000000000000ab" && read.campaignNumber == 0xAB)
        #expect(read.recordedLengths == [1: [SegmentLength(reactor: 0, byteCount: 4096)]])
        #expect(String(decoding: original.encoded(), as: UTF8.self).contains("\"version\" : 3"))
    }

    @Test func `A flipped bit or a cut never reads as another manifest`() {
        let original = manifest()
        let bytes = original.encoded()
        for count in 0..<(bytes.count - 2) {
            #expect((try? Manifest(decoding: Array(bytes[..<count]))) == nil)
        }
        for bit in 0..<(bytes.count * 8) {
            var changed = bytes
            changed[bit / 8] ^= 1 << UInt8(bit % 8)
            if let read = try? Manifest(decoding: changed) {
                #expect(read == original, "bit \(bit)")
            }
        }
    }

    @Test(
        arguments: [
            // The rows that are known, the limit before and now; what is known of the list's end then.
            (nil, nil, nil, nil), (100, nil, nil, 100), (100, nil, 30, 30), (100, nil, 300, 100),
            (30, 30, nil, nil), (30, 30, 50, nil), (30, 30, 30, 30), (30, 30, 20, 20),
            (20, 30, nil, 20), (20, 30, 50, 20), (nil, 30, 50, nil),
        ] as [(UInt64?, UInt64?, UInt64?, UInt64?)])
    func `A run with a higher limit does not know the list's end`(
        known: UInt64?, before: UInt64?, now: UInt64?, expected: UInt64?
    ) {
        var manifest = manifest()
        manifest.look(upTo: before)
        manifest.rowCount = known
        manifest.look(upTo: now)
        #expect(manifest.rowCount == expected && manifest.rowsLimit == now)
        let endsAtLimit = now == nil ? false : expected.map { $0 >= now! }
        #expect(manifest.endsAtLimit == endsAtLimit)
    }

    /// Cause that the latest run recorded, cause that a later start found, recorded cause after it.
    @Test(
        arguments: [
            (invalid, .complete, .complete), (.tooManyBadTokens, .complete, .complete),
            (.complete, invalid, invalid), (.complete, .complete, .complete),
            (invalid, .tooManyInvalid(count: 4, rows: 9), invalid), (.signal, .complete, .signal),
            (nil, .complete, nil), (nil, invalid, nil),
        ] as [(StopCause?, StopCause, StopCause?)])
    func `A later start replaces the cause of an end only between an abort and another end`(
        known: StopCause?, found: StopCause, expected: StopCause?
    ) {
        var manifest = manifest()
        manifest.endEpoch(
            lengths: [], isFinished: true, stop: known.map { StopRecord($0, wasAnswered: true) })
        #expect(manifest.replaceStop(found) == (expected != known))
        #expect(manifest.epochs.last?.stop?.cause == expected && manifest.isFinished)
        #expect(manifest.epochs.last?.stop?.wasAnswered ?? true)
    }

    private static let invalid = StopCause.tooManyInvalid(count: 3, rows: 9)

    @Test func `A manifest of a newer version is reported as such`() {
        var bytes = manifest().encoded()
        let place = bytes.firstRange(of: Array("\"version\" : 3".utf8))!
        bytes[place.upperBound - 1] = 0x34
        do throws(LedgerError) {
            _ = try Manifest(decoding: bytes)
            Issue.record("no error")
        } catch {
            #expect(error.code == .unsupportedVersion && error.detail == "format 4")
        }
    }

    @Test func `A manifest of the first version is read and saved in today's`() throws {
        let older = manifest().encoded(version: 1)
        #expect(String(decoding: older, as: UTF8.self).contains("\"version\" : 1"))
        var read = try Manifest(decoding: older)
        #expect(read.version == 1)
        let again = try Manifest(decoding: read.encoded())
        #expect(again.version == 1)
        _ = read.beginEpoch(atMilliseconds: testTime + 9)
        #expect(try Manifest(decoding: read.encoded()).version == Manifest.currentVersion)
    }

    @Test func `A manifest with one field more has another format version`() throws {
        var manifest = manifest()
        (manifest.name, manifest.shards, manifest.canaryRowCount) = ("n", ["s"], 1)
        (manifest.rowCount, manifest.rowsLimit) = (1, 1)
        (manifest.listHash, manifest.headerHash) = ("h", "h")
        manifest.part = ListExtent(
            firstRow: 0, byteOffset: 0, firstLine: 1, endRow: 1, endByteOffset: 1)
        manifest.recordRunShape(isInListOrder: true, segmentCount: 1)
        _ = manifest.record(zones: ["UTC"])
        manifest.record(erasedRows: ErasedRows([1]))
        manifest.endEpoch(
            lengths: [], isFinished: false, stop: StopRecord(.signal, wasAnswered: true))
        let text = String(decoding: manifest.encoded(), as: UTF8.self)
        let keys = Set(
            text.split(separator: "\n").compactMap { line in
                line.split(separator: "\"", omittingEmptySubsequences: false).dropFirst().first
                    .flatMap { line.contains("\" : ") ? String($0) : nil }
            })
        // Whoever adds one raises `Manifest.currentVersion`, and writes both down here.
        #expect(Manifest.currentVersion == 3)
        #expect(
            keys == [
                "version", "campaign", "identity", "firstStartedAtMilliseconds",
                "expirationSeconds", "name", "listPath", "part", "shards", "canaryPassed",
                "canaryRowCount", "epochs", "isFinished", "rowCount", "rowsLimit", "listHash",
                "headerHash", "zones", "erasedRows", "counters", "checksum",
                // Of the identity.
                "columns", "environment", "listByteCount", "listFormat", "payloadSHA256",
                "priority", "pushType", "topic", "expiration",
                // Of a part, a run and its end.
                "firstRow", "byteOffset", "firstLine", "endRow", "endByteOffset", "number",
                "startedAtMilliseconds", "segments", "reactor", "byteCount", "segmentCount",
                "segmentsAreMade", "isInListOrder", "stop", "kind", "wasAnswered", "retries",
                "shortened", "reconnects", "connections",
            ])
    }

    @Test func `The zones of all runs are recorded once each, up to a limit`() throws {
        var manifest = manifest()
        #expect(manifest.zones == nil, "as in the manifest of an earlier version")
        let changes = [["Europe/Berlin", "Asia/Tokyo"], ["Asia/Tokyo"], ["Asia/Calcutta"]]
            .map { manifest.record(zones: $0) }
        #expect(changes == [true, false, true])
        let read = try Manifest(decoding: manifest.encoded())
        #expect(read.zones == ["Asia/Calcutta", "Asia/Tokyo", "Europe/Berlin"])
        _ = manifest.record(zones: (0...Manifest.zonesLimit).map { "Zone/\($0)" })
        #expect(manifest.zones?.count == Manifest.zonesLimit)
    }

    @Test func `A resumed run keeps the lengths found, and an ended one its own`() {
        var manifest = manifest()
        let found = [SegmentLength(reactor: 3, byteCount: 99)]
        #expect(manifest.beginEpoch(atMilliseconds: 1, previousLengths: found) == 3)
        #expect(manifest.recordedLengths[2] == found)
        #expect(manifest.recordedLengths[1] == [SegmentLength(reactor: 0, byteCount: 4096)])
        manifest.endEpoch(lengths: [], isFinished: true)
        #expect(manifest.isFinished)
        #expect(manifest.beginEpoch(atMilliseconds: 1, previousLengths: found) == 4)
        #expect(manifest.recordedLengths[3] == [] && !manifest.isFinished)
    }

    @Test func `The first difference between campaigns is named`() {
        #expect(testIdentity.firstDifference(from: testIdentity) == nil)
        func difference(_ change: (inout CampaignIdentity) -> Void) -> String? {
            var other = testIdentity
            change(&other)
            return testIdentity.firstDifference(from: other)
        }
        #expect(difference { $0.payloadSHA256 = "00" } == "the payload differs")
        #expect(
            difference { $0.wireProtocol = "binary" }
                == "the protocol was http2, now it is binary")
        #expect(difference { $0.suppressSHA256 = "00" } == "the suppression list differs")
        #expect(
            difference { $0.listByteCount = 7 }
                == "the list's size in bytes was 1000, now it is 7")
        #expect(difference { $0.listByteCount = nil } == nil)
        #expect(difference { $0.listFormat = "tsv" } == "the list's format was csv, now it is tsv")
        #expect(
            difference { $0.columns = ["t"] }
                == "the columns in use was token,name, now it is t")
        #expect(
            difference { $0.topic = nil }
                == "the topic was com.example.shop, now it is not set")
        #expect(difference { $0.pushType = "voip" } != nil)
        #expect(difference { $0.priority = 5 } == "the priority was 10, now it is 5")
        #expect(difference { $0.expiration = "0" } == "the expiration was +2h, now it is 0")
        #expect(difference { $0.collapseID = "a" } == "the collapse id was not set, now it is a")
        #expect(difference { $0.environment = "development" } != nil)
        #expect(
            difference { $0.shard = .init(index: 2, count: 3, isByRow: true) }
                == "the shard was not set, now it is 2/3 by rows")
    }

    @Test func `Verification requires all rows of a finished ledger only`() throws {
        func code(_ manifest: Manifest, _ drafts: [SegmentDraft]) -> LedgerError.Code? {
            do throws(LedgerError) {
                _ = try LedgerVerification(checking: drafts.map(\.segment), manifest: manifest)
                return nil
            } catch {
                return error.code
            }
        }
        var manifest = Manifest(
            campaign: testCampaign, identity: testIdentity, firstStartedAtMilliseconds: 0,
            listPath: nil)
        let draft = SegmentDraft(campaign: testCampaign, epoch: 1, reactor: 0)
        draft.writer.reserve(testChunk(0, 2), nowMilliseconds: testTime)
        draft.writer.accepted(row: 0, fingerprint: 0, attempts: 1, nowMilliseconds: testTime)
        draft.write()
        #expect(code(manifest, [draft]) == .strangeSegment)
        _ = manifest.beginEpoch(atMilliseconds: 0)
        #expect(code(manifest, [draft]) == nil)
        manifest.endEpoch(lengths: [draft.length], isFinished: true)
        #expect(code(manifest, [draft]) == .unsettledRow)
        draft.writer.settled(row: 1, .rejected)
        draft.write()
        // What the manifest does not know of is not read.
        #expect(code(manifest, [draft]) == .unsettledRow)
        manifest.endEpoch(lengths: [draft.length], isFinished: true)
        #expect(code(manifest, [draft]) == nil)
        manifest.rowCount = 3
        #expect(code(manifest, [draft]) == .unsettledRow)
        manifest.rowCount = 2
        #expect(code(manifest, []) == .missingSegment)
        draft.bytes.removeLast()
        #expect(code(manifest, [draft]) == .missingTail)
        draft.bytes.append(0xFF)
        #expect(code(manifest, [draft]) == .damagedBlock)

        let gap = SegmentDraft(campaign: testCampaign, epoch: 1, reactor: 0)
        gap.writer.reserve(testChunk(1, 1), nowMilliseconds: testTime)
        gap.writer.settled(row: 1, .skipped)
        gap.write()
        manifest.endEpoch(lengths: [gap.length], isFinished: true)
        #expect(code(manifest, [gap]) == .unsettledRow)
        gap.writer.settled(row: 1, .skipped)
        gap.write()
        manifest.endEpoch(lengths: [gap.length], isFinished: false)
        #expect(code(manifest, [gap]) == .settledTwice)
    }
}
