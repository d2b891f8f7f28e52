import Foundation
import Testing

@testable import BroadsideLedgerFormat
@testable import BroadsideRows

/// What a repair makes of a damaged ledger: what is left means what it meant, what was lost is in doubt,
/// and nothing else changes.
@Suite struct LedgerRepairTests {
    /// A block of a segment, and the chunk whose reservation and verdicts it has.
    private struct Block {
        var segment: Int
        var bytes: Range<Int>
        var chunk: Int
    }

    /// Two orderly runs over 100 rows in chunks of 10: the first, of two reactors, gets through 75 rows,
    /// and the second through the others.
    private final class Ledger {
        var manifest = Manifest(
            campaign: testCampaign, identity: testIdentity,
            firstStartedAtMilliseconds: testTime - 5_000, listPath: nil)
        let segments = [testDraft(1, 0), testDraft(1, 1), testDraft(2, 0)]
        var blocks: [Block] = []
        /// From one chunk's verdicts to the next.
        let spacing: UInt64

        init(spacing: UInt64) {
            self.spacing = spacing
            _ = manifest.beginEpoch(atMilliseconds: testTime)
            manifest.recordRunShape(isInListOrder: true, segmentCount: 2)
            for chunk in 0..<8 {
                write(chunk, segment: chunk % 2, settles: 0..<(chunk == 7 ? 5 : 10))
            }
            manifest.endEpoch(lengths: segments[..<2].map(\.length), isFinished: false)
            _ = manifest.beginEpoch(atMilliseconds: testTime + 1)
            manifest.recordRunShape(isInListOrder: true, segmentCount: 1)
            for chunk in 7..<10 { write(chunk, segment: 2, settles: (chunk == 7 ? 5 : 0)..<10) }
            manifest.endEpoch(lengths: [segments[2].length], isFinished: true)
            manifest.rowCount = 100
        }

        /// When the verdicts of a chunk were made.
        func time(_ chunk: Int) -> UInt64 { testTime + 10 + UInt64(chunk) * spacing }

        private func write(_ chunk: Int, segment: Int, settles: Range<Int>) {
            let draft = segments[segment]
            let start = max(draft.bytes.count, LedgerFormat.segmentHeaderByteCount)
            let time = time(chunk)
            let first = UInt64(chunk * 10)
            draft.writer.reserve(testChunk(first, 10), nowMilliseconds: time)
            for place in settles { settle(first + UInt64(place), draft, time) }
            if settles.upperBound < 10 {
                draft.writer.release(
                    row: first + UInt64(settles.upperBound), count: 10 - settles.upperBound,
                    attempts: 2, nowMilliseconds: time)
            }
            draft.write()
            blocks.append(Block(segment: segment, bytes: start..<draft.bytes.count, chunk: chunk))
        }

        private func settle(_ row: UInt64, _ draft: SegmentDraft, _ time: UInt64) {
            let digits = Array(testToken(Int(row)).utf8).span.bytes
            switch row % 10 {
            case 0, 8, 9:
                draft.writer.accepted(
                    row: row, fingerprint: row &* 77, attempts: 1, nowMilliseconds: time)
            case 1:
                // More attempts than the short form has room for.
                draft.writer.accepted(
                    row: row, fingerprint: row, attempts: 400, nowMilliseconds: time)
            case 2:
                draft.writer.settled(
                    row: row, state: .rejected, status: 410, reason: 7, attempts: 1,
                    timestamp: row + 5, token: digits, tokenIsText: false, nowMilliseconds: time)
            case 3:
                draft.writer.settled(
                    row: row, state: .rejected, status: 400, reason: 0,
                    reasonText: Array("Odd\(row)".utf8).span.bytes, attempts: 3, token: digits,
                    tokenIsText: false, nowMilliseconds: time)
            case 4:
                draft.writer.settled(
                    row: row, state: .invalid, status: 0, reason: 3, attempts: 0,
                    token: Array("no token".utf8).span.bytes, tokenIsText: true,
                    nowMilliseconds: time)
            case 5: draft.writer.settled(row: row, .failed, attempts: 5, at: time)
            case 6: draft.writer.settled(row: row, .unknown, token: Array("ab".utf8), at: time)
            default: draft.writer.settled(row: row, .skipped, attempts: 0, at: time)
            }
        }

        /// The segments with some bytes flipped, or cut off, or without one of them.
        func damaged(_ segment: Int, at place: Int?) -> [LedgerSegment] {
            var left = segments.map(\.segment)
            guard let place else {
                left.remove(at: segment)
                return left
            }
            var bytes = segments[segment].bytes
            bytes[place] ^= 0x10
            left[segment] = LedgerSegment(
                epoch: left[segment].epoch, reactor: left[segment].reactor,
                bytes: LedgerMemory(bytes))
            return left
        }
    }

    /// Writes the repaired ledger and reads it.
    private func repair(
        _ salvage: LedgerSalvage, of segments: [LedgerSegment]
    ) throws -> (meanings: [UInt64: String], undated: UInt64, manifest: Manifest) {
        let gapChunks = salvage.gaps.flatMap { gap in
            stride(from: gap.firstRow, to: gap.endRow ?? 100, by: 10).map { testChunk($0, 10) }
        }
        var lengths: [UInt32: [SegmentLength]] = [:]
        var repaired: [LedgerSegment] = []
        var undated: UInt64 = 0
        for (epoch, reactor, part) in salvage.parts(gapChunks: gapChunks) {
            var bytes: [UInt8] = []
            var writer = LedgerWriter(campaign: testCampaign, epoch: epoch, reactor: reactor)
            func flush(_ writer: inout LedgerWriter) {
                while let (pending, _) = writer.nextWrite() {
                    bytes.append(contentsOf: pending)
                    writer.writeCompleted(pending.count)
                }
            }
            switch part {
            case .copy(let name, let count):
                let segment = try #require(segments.first { $0.name == name })
                bytes = [UInt8](repeating: 0, count: Int(count))
                let read = try bytes.withUnsafeMutableBytes {
                    try segment.bytes.read(at: 0, into: $0)
                }
                #expect(read == Int(count))
            case .records(let index):
                undated += try salvage.write(index, into: &writer) { flush(&$0) }
            case .reservations(let chunks):
                let time = salvage.startMilliseconds(of: epoch)
                for chunk in chunks { writer.reserve(chunk, nowMilliseconds: time) }
                flush(&writer)
            }
            lengths[epoch, default: []].append(
                SegmentLength(reactor: reactor, byteCount: UInt64(bytes.count)))
            repaired.append(
                LedgerSegment(epoch: epoch, reactor: reactor, bytes: LedgerMemory(bytes)))
        }
        let manifest = salvage.repairedManifest(lengths: lengths, isFinished: false)
        let index = try LedgerIndex(segments: repaired, manifest: manifest)
        return (try allMeanings(index), undated, manifest)
    }

    /// Rows of which the second run may have had the last word, and all others.
    private func isOfSecondRun(_ row: UInt64) -> Bool { row >= 75 }

    @Test(arguments: [100_000 as UInt64, 10], 0..<11)
    func `Rows of a lost block are in doubt, and all others mean what they meant`(
        spacing: UInt64, number: Int
    ) throws {
        let ledger = Ledger(spacing: spacing)
        let whole = try allMeanings(testIndex(ledger.segments))
        let block = ledger.blocks[number]
        let draft = ledger.segments[block.segment]
        for place in [
            block.bytes.lowerBound, block.bytes.lowerBound + 5, block.bytes.upperBound - 1,
        ] {
            let left = ledger.damaged(block.segment, at: place)
            let salvage = try LedgerSalvage(left, manifest: ledger.manifest)
            #expect(
                salvage.losses == [
                    .init(
                        segment: draft.segment.name,
                        bytes: UInt64(block.bytes.lowerBound)..<UInt64(block.bytes.upperBound))
                ])
            #expect(!salvage.isSound && salvage.foreignSegments.isEmpty)
            let isKnown = block.chunk == 7
            let chunk = UInt64(block.chunk * 10)
            #expect(salvage.gaps.map(\.firstRow) == (isKnown ? [] : [chunk]))
            // Where the list ends is nobody's word but the list's.
            let end: UInt64? = chunk == 90 ? nil : chunk + 10
            #expect(salvage.gaps.map(\.endRow) == (isKnown ? [] : [end]))
            #expect(salvage.gaps.map(\.byteOffset) == (isKnown ? [] : [chunk * 65]))
            let repaired = try repair(salvage, of: left)
            // Behind the loss no time is known until a record says it in full.
            let before = ledger.blocks[..<number].last { $0.segment == block.segment }
            let behind = ledger.blocks[(number + 1)...].filter { $0.segment == block.segment }
            let started = testTime + (block.segment == 2 ? 1 : 0)
            let known = before.map { ledger.time($0.chunk) } ?? started
            let isDated = spacing > 0xffff
            for (row, meaning) in whole {
                let isInChunk = row / 10 == UInt64(block.chunk)
                let isLost =
                    isInChunk && (!isKnown || isOfSecondRun(row) == (block.segment == 2))
                let isUndated =
                    !isDated
                    && behind.contains {
                        $0.chunk == Int(row / 10) && isOfSecondRun(row) == (block.segment == 2)
                    }
                var expected = meaning
                if isUndated {
                    expected = meaning.replacingOccurrences(
                        of: " \(ledger.time(Int(row / 10))) ", with: " \(known) ")
                    #expect(expected != meaning)
                }
                let found = try #require(repaired.meanings[row])
                // It may have opened others again before that, too.
                let isReopened =
                    number == 8 && row < 70
                    && (meaning.hasPrefix("failed") || meaning.hasPrefix("unknown"))
                if isReopened
                    || (isLost && !(isKnown && block.segment == 1 && isOfSecondRun(row)))
                {
                    #expect(found.hasPrefix(RowState.inDoubt.name), "row \(row)")
                } else {
                    #expect(found == expected, "row \(row)")
                }
            }
            #expect(repaired.meanings.count == 100)
            let verdicts = behind.reduce(0) { $0 + ($1.chunk == 7 ? 5 : 10) }
            #expect(repaired.undated == (isDated ? 0 : UInt64(verdicts)))
            #expect(repaired.manifest.epochs.map(\.number) == [1, 2])
            #expect(!repaired.manifest.isFinished && repaired.manifest.rowCount == 100)
        }
    }

    @Test func `Rows of a lost segment are in doubt unless another settles them`() throws {
        for segment in 0..<3 {
            let ledger = Ledger(spacing: 1_000)
            let whole = try allMeanings(testIndex(ledger.segments))
            let left = ledger.damaged(segment, at: nil)
            let salvage = try LedgerSalvage(left, manifest: ledger.manifest)
            #expect(
                salvage.losses == [
                    .init(segment: ledger.segments[segment].segment.name, bytes: nil)
                ])
            let repaired = try repair(salvage, of: left)
            for (row, meaning) in whole {
                let reactor = row < 75 ? Int(row / 10 % 2) : 2
                let isReopened =
                    segment == 2 && (meaning.hasPrefix("failed") || meaning.hasPrefix("unknown"))
                let found = try #require(repaired.meanings[row])
                if reactor == segment || isReopened {
                    // What a run may have opened again, and sent, it may have.
                    #expect(found.hasPrefix(RowState.inDoubt.name), "row \(row)")
                } else {
                    #expect(found == meaning, "row \(row) without segment \(segment)")
                }
            }
        }
    }

    @Test func `A damaged header alone loses nothing`() throws {
        let ledger = Ledger(spacing: 10)
        let whole = try allMeanings(testIndex(ledger.segments))
        for place in [0, 9, 17, 31] {
            let left = ledger.damaged(1, at: place)
            guard let salvage = try? LedgerSalvage(left, manifest: ledger.manifest),
                salvage.foreignSegments.isEmpty
            else { continue }
            #expect(salvage.losses.map(\.bytes) == [0..<32] && !salvage.isSound)
            let repaired = try repair(salvage, of: left)
            #expect(repaired.meanings == whole && repaired.undated == 0)
        }
    }

    @Test func `Rows given up unsent remain if their segment is rewritten`()
        throws
    {
        var manifest = Manifest(
            campaign: testCampaign, identity: testIdentity,
            firstStartedAtMilliseconds: testTime, listPath: nil)
        _ = manifest.beginEpoch(atMilliseconds: testTime)
        manifest.recordRunShape(isInListOrder: true, segmentCount: 1)
        let draft = testDraft(1, 0)
        draft.writer.reserve(testChunk(0, 10), nowMilliseconds: testTime)
        for row in 0..<4 as Range<UInt64> { draft.writer.settled(row: row, .failed) }
        draft.writer.release(row: 4, count: 6, attempts: 2, nowMilliseconds: testTime)
        draft.write()
        draft.writer.reserve(testChunk(10, 10), nowMilliseconds: testTime)
        draft.write()
        manifest.endEpoch(lengths: [draft.length], isFinished: false)
        manifest.rowCount = 20
        let whole = try allMeanings(testIndex([draft]))
        #expect((4..<10).allSatisfy { whole[$0]?.hasPrefix(RowState.remaining.name) == true })

        draft.bytes[draft.bytes.count - 1] ^= 1
        let salvage = try LedgerSalvage([draft.segment], manifest: manifest)
        let repaired = try repair(salvage, of: [draft.segment])
        #expect(!salvage.isSound)
        for row in 0..<10 as Range<UInt64> { #expect(repaired.meanings[row] == whole[row]) }
    }

    /// Rows 9 and 19 fail in run 1. A process reopens them in two waves: in run 2, row 9 is not due yet,
    /// and run 3 sends both.
    @Test(arguments: [false, true])
    func `A failed row of a later wave is in doubt without its reservation, unless it is settled`(
        keepsVerdict: Bool
    ) throws {
        var identity = testIdentity
        identity.delivery = DeliveryRules()
        var manifest = Manifest(
            campaign: testCampaign, identity: identity, firstStartedAtMilliseconds: testTime,
            listPath: nil)
        let drafts = [testDraft(1), testDraft(2), testDraft(3)]
        for first in [0, 10] as [UInt64] {
            drafts[0].writer.reserve(testChunk(first, 10), nowMilliseconds: testTime)
            for row in first..<first + 9 { accept(drafts[0], row) }
            drafts[0].writer.settled(row: first + 9, .failed)
        }
        drafts[1].writer.reserve(testChunk(0, 10, reopens: .failed), nowMilliseconds: testTime)
        drafts[1].writer.release(row: 9, count: 1, attempts: 0, nowMilliseconds: testTime)
        // The process has reserved this chunk before, so it reopens nothing there.
        drafts[2].writer.reserve(testChunk(0, 10), nowMilliseconds: testTime)
        accept(drafts[2], 9)
        drafts[2].write()
        let lost = drafts[2].bytes.count
        drafts[2].writer.reserve(testChunk(10, 10, reopens: .failed), nowMilliseconds: testTime)
        if keepsVerdict { drafts[2].write() }
        accept(drafts[2], 19)
        for draft in drafts {
            draft.write()
            _ = manifest.beginEpoch(atMilliseconds: testTime)
            manifest.recordRunShape(isInListOrder: true, segmentCount: 1)
            manifest.endEpoch(lengths: [draft.length], isFinished: false)
        }
        manifest.rowCount = 20

        drafts[2].bytes[lost] ^= 1
        let segments = drafts.map(\.segment)
        let repaired = try repair(LedgerSalvage(segments, manifest: manifest), of: segments)
        let expected = keepsVerdict ? RowState.accepted : .inDoubt
        #expect(repaired.meanings[19]?.hasPrefix(expected.name) == true)
        for row in 0..<19 as Range<UInt64> {
            #expect(repaired.meanings[row]?.hasPrefix(RowState.accepted.name) == true, "row \(row)")
        }
    }

    @Test func `A repair of a sound ledger changes nothing`() throws {
        let ledger = Ledger(spacing: 10)
        let segments = ledger.segments.map(\.segment)
        let salvage = try LedgerSalvage(segments, manifest: ledger.manifest)
        #expect(salvage.isSound && salvage.gaps.isEmpty && !salvage.isOfFeedback)
        #expect(salvage.knownChunks.map(\.firstRow) == stride(from: 0, to: 100, by: 10).map { $0 })
        #expect(salvage.startMilliseconds(of: 1) == testTime)
        #expect(salvage.startMilliseconds(of: 2) == testTime + 1)
        #expect(salvage.startMilliseconds(of: 3) == 0)
        #expect(salvage.parts(gapChunks: []).count == 3)
        let whole = try allMeanings(testIndex(ledger.segments))
        #expect(try repair(salvage, of: segments).meanings == whole)
    }

    @Test func `A segment of another campaign is named and its rows ignored`() throws {
        let ledger = Ledger(spacing: 10)
        let other = SegmentDraft(campaign: 99, epoch: 1, reactor: 1)
        other.writer.reserve(testChunk(500, 10), nowMilliseconds: testTime)
        other.sync()
        var left = ledger.segments.map(\.segment)
        left[1] = other.segment
        let salvage = try LedgerSalvage(left, manifest: ledger.manifest)
        #expect(salvage.foreignSegments == [other.segment.name] && !salvage.isSound)
        #expect(!salvage.knownChunks.contains { $0.firstRow == 500 })
    }

    @Test func `Runs that a copied manifest does not know are reported`() throws {
        let ledger = Ledger(spacing: 10)
        var manifest = Manifest(
            campaign: testCampaign, identity: testIdentity,
            firstStartedAtMilliseconds: testTime - 5_000, listPath: nil)
        _ = manifest.beginEpoch(atMilliseconds: testTime)
        manifest.recordRunShape(isInListOrder: true, segmentCount: 2)
        manifest.endEpoch(lengths: ledger.segments[..<2].map(\.length), isFinished: false)
        manifest.rowCount = 100
        let segments = ledger.segments.map(\.segment)
        let salvage = try LedgerSalvage(segments, manifest: manifest)
        #expect(salvage.losses == [.init(segment: "manifest.json: run 2", bytes: nil)])
        // It began no earlier than the run before it.
        #expect(salvage.startMilliseconds(of: 2) == testTime)
        let repaired = try repair(salvage, of: segments)
        #expect(repaired.manifest.epochs.map(\.number) == [1, 2])
        // Nobody knows whether more segments of it are missing, and what they opened again.
        let whole = try allMeanings(testIndex(ledger.segments))
        for (row, meaning) in whole { #expect(repaired.meanings[row] == meaning, "row \(row)") }
        // With the second run's manifest and without the first one's, the first comes before it.
        var later = manifest
        later.replaceEpochs(
            [Manifest.Epoch(number: 2, startedAtMilliseconds: testTime + 7)], isFinished: false)
        let earlier = try LedgerSalvage(segments, manifest: later)
        #expect(earlier.losses.contains(.init(segment: "manifest.json: run 1", bytes: nil)))
        #expect(earlier.runs.map(\.number) == [1, 2])
        #expect(earlier.startMilliseconds(of: 1) == testTime - 5_000)
    }

    @Test func `Rows of a feedback service are put into chunks without a list`() throws {
        var identity = testIdentity
        identity.wireProtocol = CampaignIdentity.feedbackProtocol
        var manifest = Manifest(
            campaign: testCampaign, identity: identity, firstStartedAtMilliseconds: 0,
            listPath: nil)
        manifest.rowCount = 150_000
        let salvage = try LedgerSalvage([], manifest: manifest)
        #expect(salvage.isOfFeedback)
        func gap(_ first: UInt64, _ end: UInt64?) -> ListExtent {
            ListExtent(
                firstRow: first, byteOffset: 3, firstLine: 1, endRow: end, endByteOffset: nil)
        }
        let chunks = salvage.feedbackChunks(in: [gap(5, 9), gap(10_000, nil)])
        #expect(chunks.map(\.firstRow) == [5, 10_000, 75_536, 141_072])
        #expect(chunks.map(\.rowCount) == [4, 65_536, 65_536, 8_928])
        #expect(chunks.allSatisfy { $0.firstLine == $0.firstRow + 1 && $0.byteCount == 0 })
        #expect(chunks.allSatisfy { $0.lineCount == UInt64($0.rowCount) && $0.byteOffset == 3 })
    }
}
