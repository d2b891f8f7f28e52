import BroadsideSupport
import Testing

@testable import BroadsideLedgerFormat
@testable import BroadsideRows

/// What makes a segment whole, torn, damaged or another's.
@Suite struct LedgerSegmentTests {
    @Test func `A torn tail ends a segment, and damage below a sync is a fault`() throws {
        let first = testDraft()
        first.writer.reserve(testChunk(0, 100), nowMilliseconds: testTime)
        first.sync()
        let synced = first.bytes.count
        accept(first, 1)
        first.write()
        let second = first.bytes.count
        accept(first, 2)
        first.write()

        // The third block is torn: a power cut lost it, though a later one came to the disk.
        var bytes = first.bytes
        accept(first, 3)
        first.write()
        let whole = first.bytes
        bytes = whole
        for index in second..<(second + 24) { bytes[index] = 0 }
        first.bytes = bytes
        let index = try testIndex([first])
        #expect(
            index.tornTails == [LedgerLocation(segment: "segment-0001-00", offset: UInt64(second))])
        let states = try allStates(index)
        #expect(states[1] == .accepted && states[2] == .inDoubt && states[3] == .inDoubt)

        // The reservation was synced, and the second block says so: no power cut did this.
        for place in 32..<synced {
            bytes = whole
            bytes[place] ^= 1
            first.bytes = bytes
            #expect(errorCode { _ = try testIndex([first]) } == .damagedBlock)
        }
        // The header was synced, too.
        for place in 0..<32 {
            bytes = whole
            bytes[place] ^= 4
            first.bytes = bytes
            #expect(errorCode { _ = try testIndex([first]) } == .badSegmentHeader)
        }
    }

    @Test func `A segment of another campaign or run, or of a newer version, is refused`() throws {
        let first = testDraft()
        first.writer.reserve(testChunk(0, 100), nowMilliseconds: testTime)
        first.write()
        let moved = LedgerSegment(epoch: 2, reactor: 0, bytes: LedgerMemory(first.bytes))
        #expect(
            errorCode { _ = try LedgerIndex(segments: [moved], campaign: testCampaign) }
                == .badSegmentHeader)
        #expect(
            errorCode { _ = try LedgerIndex(segments: [first.segment], campaign: 1) }
                == .badSegmentHeader)
        let header = LedgerFormat.segmentHeader(
            version: 2, campaign: testCampaign, epoch: 1, reactor: 0)
        var bytes = first.bytes
        for place in 0..<32 {
            let word = [header.0, header.1, header.2, header.3][place / 8]
            bytes[place] = UInt8(truncatingIfNeeded: word >> UInt64(place % 8 * 8))
        }
        first.bytes = bytes
        #expect(errorCode { _ = try testIndex([first]) } == .unsupportedVersion)
    }

    @Test func `A row of another shard is remaining`() throws {
        let first = testDraft()
        first.writer.reserve(testChunk(0, 10), nowMilliseconds: testTime)
        for row in [1, 4, 7] as [UInt64] { accept(first, row) }
        first.write()
        let selection = RowSelection(divisor: 3, remainder: 1)
        let index = try LedgerIndex(
            segments: [first.segment], campaign: testCampaign,
            rows: CampaignRows(selection: selection))
        let summary = try LedgerSummary(index)
        #expect(summary.reservedRowCount == 3 && summary.count(.accepted) == 3)
        #expect(summary.count(.inDoubt) == 0)
        var plan = ResumePlan(index: index, lostRows: .resend, reopens: [])
        let work = try plan.next()
        guard case .gap(let gap) = work else {
            Issue.record("\(String(describing: work))")
            return
        }
        #expect(gap.firstRow == 10)
    }

    @Test func `A segment's name is parsed into its run and number`() {
        #expect(LedgerFormat.segmentName(epoch: 3, reactor: 7) == "segment-0003-07")
        #expect(LedgerFormat.segmentName(epoch: 12_345, reactor: 123) == "segment-12345-123")
        for name in ["segment-0003-07", "segment-12345-123"] {
            let parts = LedgerFormat.parseSegmentName(name)!
            #expect(LedgerFormat.segmentName(epoch: parts.epoch, reactor: parts.reactor) == name)
        }
        for name in ["segment-3-7", "segment-0003", "lock", "segment-0003-07-", "segment-0x03-07"] {
            #expect(LedgerFormat.parseSegmentName(name) == nil)
        }
    }

    /// Records that a good checksum covers and that still make no sense, after a sound reservation
    /// of rows 0 to 9: each is a list of words.
    static let nonsense: [[UInt64]] = [
        [0, 0],
        [7 << 60, 0],
        [15 << 60, 0],
        // Accepted without an attempt.
        [1 << 60 | 3, 0],
        // Settled as remaining, in doubt, or in a state that does not exist.
        [2 << 60 | 3, 0],
        [2 << 60 | 7 << 56 | 3, 0],
        [2 << 60 | 9 << 56 | 3, 0],
        // Settled with a token longer than the block, and with a fingerprint of 7 bytes.
        [2 << 60 | 2 << 56 | 3, 17 << 48, 0, 0],
        [2 << 60 | 1 << 56 | 3, 4 << 24 | 7 << 48, 0, 0],
        // Reservations cut short, of no rows, of too many, beyond the last row, of bytes beyond
        // 2^64.
        [3 << 60 | 20, 5, 0, 0],
        [3 << 60 | 20, 0, 0, 0, 0, 0],
        [3 << 60 | 20, 65_537, 0, 0, 0, 0],
        [3 << 60 | (1 << 40 - 1), 2, 0, 0, 0, 0],
        [3 << 60 | 20, 2, 1 << 63, 1 << 63, 0, 0],
        [3 << 60 | 20, 2 | 1 << 32, 0, 0, .max, 0],
        // Releases of no rows, and of too many.
        [4 << 60 | 3, 0],
        [4 << 60 | 3, 65_537],
        // Synced before it was written.
        [5 << 60, 33],
    ]

    @Test(arguments: nonsense)
    func `Records that make no sense are a fault`(words: [UInt64]) throws {
        let first = testDraft()
        first.writer.reserve(testChunk(0, 10), nowMilliseconds: testTime)
        first.write()
        first.bytes[36] += UInt8(words.count / 2)
        for word in words {
            for place in 0..<8 {
                first.bytes.append(UInt8(truncatingIfNeeded: word >> UInt64(8 * place)))
            }
        }
        sealSegment(&first.bytes)
        do throws(LedgerError) {
            _ = try LedgerIndex(segments: [first.segment], campaign: testCampaign)
            Issue.record("no fault")
        } catch {
            #expect(error.code == .malformedRecord)
            #expect(error.offset >= 32 + 8 + 16 + 48 && error.segment == "segment-0001-00")
        }
    }
}
