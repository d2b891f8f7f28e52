import BroadsideRows
import BroadsideSupport
import Testing

@testable import BroadsideAPNs
@testable import BroadsideHygiene
@testable import BroadsideLedgerFormat

/// A small ledger of two runs, cut and flipped at every place.
@Suite struct LedgerFuzzTests {
    /// Two runs of ten rows, with every kind of record.
    func ledger() -> [SegmentDraft] {
        let first = SegmentDraft(campaign: testCampaign, epoch: 1, reactor: 0)
        first.writer.reserve(testChunk(0, 10), nowMilliseconds: testTime)
        first.sync()
        let token = Array("00ff".utf8)
        first.writer.accepted(row: 0, fingerprint: 1, attempts: 1, nowMilliseconds: testTime)
        first.writer.settled(row: 1, .rejected, token: token)
        first.write()
        first.writer.settled(row: 2, .failed, token: token)
        first.writer.release(row: 8, count: 2, attempts: 1, nowMilliseconds: testTime)
        first.sync()
        first.writer.accepted(row: 3, fingerprint: 2, attempts: 20, nowMilliseconds: testTime)
        first.write()
        let second = SegmentDraft(campaign: testCampaign, epoch: 2, reactor: 1)
        second.writer.reserve(testChunk(0, 10, reopens: .failed), nowMilliseconds: testTime)
        second.writer.reserve(testChunk(10, 3), nowMilliseconds: testTime)
        second.sync()
        second.writer.settled(row: 8, .skipped)
        second.writer.accepted(row: 2, fingerprint: 3, attempts: 1, nowMilliseconds: testTime)
        second.write()
        return [first, second]
    }

    /// Checks one changed ledger: it is refused, or says nothing of any row that the whole one, or
    /// the runs before, did not say: a lost verdict leaves a row open, never with another verdict.
    func check(
        _ changed: [LedgerSegment], _ whole: [UInt64: String], _ earlier: [UInt64: String],
        _ what: String
    ) {
        guard let index = try? LedgerIndex(segments: changed, campaign: testCampaign),
            let verdicts = try? allMeanings(index)
        else { return }
        #expect(
            verdicts == whole || !index.tornTails.isEmpty || what.hasPrefix("cut"),
            "\(what) went unnoticed")
        for (row, verdict) in verdicts
        where !verdict.hasPrefix("in-doubt") && !verdict.hasPrefix("remaining") {
            let isKnown = verdict == whole[row] || verdict == earlier[row]
            #expect(isKnown, "\(what): row \(row) is \(verdict)")
        }
    }

    @Test func `No cut and no flipped bit makes another verdict`() throws {
        let drafts = ledger()
        let whole = try allMeanings(testIndex(drafts))
        let earlier = try allMeanings(testIndex([drafts[0]]))
        #expect(whole[2]!.hasPrefix("accepted") && earlier[2]!.hasPrefix("failed"))
        for (which, draft) in drafts.enumerated() {
            var segments = drafts.map(\.segment)
            for count in 0..<draft.bytes.count {
                segments[which].bytes = LedgerMemory(Array(draft.bytes[..<count]))
                check(segments, whole, earlier, "cut \(which) at \(count)")
                // Lost bytes may also read as zeros.
                let zeros = [UInt8](repeating: 0, count: draft.bytes.count - count)
                segments[which].bytes = LedgerMemory(Array(draft.bytes[..<count]) + zeros)
                check(segments, whole, earlier, "cut \(which) at \(count), zeros")
            }
            for bit in 0..<(draft.bytes.count * 8) {
                var bytes = draft.bytes
                bytes[bit / 8] ^= 1 << UInt8(bit % 8)
                segments[which].bytes = LedgerMemory(bytes)
                check(segments, whole, earlier, "flip \(which) of bit \(bit)")
            }
        }
    }

    @Test func `With recorded lengths every cut and every flipped bit is a fault`() throws {
        let drafts = ledger()
        let lengths = [1: [drafts[0].length], 2: [drafts[1].length]] as [UInt32: [SegmentLength]]
        func isRefused(_ segments: [LedgerSegment]) -> Bool {
            (try? LedgerIndex(
                segments: segments, campaign: testCampaign, recordedLengths: lengths)) == nil
        }
        #expect(!isRefused(drafts.map(\.segment)))
        #expect(isRefused([drafts[0].segment]))
        for (which, draft) in drafts.enumerated() {
            var segments = drafts.map(\.segment)
            for count in 0..<draft.bytes.count {
                segments[which].bytes = LedgerMemory(Array(draft.bytes[..<count]))
                #expect(isRefused(segments), "cut at \(count)")
            }
            for bit in 0..<(draft.bytes.count * 8) {
                var bytes = draft.bytes
                bytes[bit / 8] ^= 1 << UInt8(bit % 8)
                segments[which].bytes = LedgerMemory(bytes)
                #expect(isRefused(segments), "bit \(bit)")
            }
            // What lies behind the recorded length is not read.
            segments[which].bytes = LedgerMemory(draft.bytes + [1, 2, 3])
            #expect(!isRefused(segments))
        }
    }

    @Test func `Bytes made at random are read without a crash`() {
        var random = LedgerRandom(seed: 11)
        let drafts = ledger()
        for _ in 0..<3000 {
            var bytes = drafts[0].bytes
            // Correct checksums over wrong records, so that the records' own checks are reached.
            let place = 40 + Int(random.next(below: UInt64(bytes.count - 40)))
            bytes[place] = UInt8(truncatingIfNeeded: random.next())
            sealSegment(&bytes)
            let segment = LedgerSegment(epoch: 1, reactor: 0, bytes: LedgerMemory(bytes))
            if let index = try? LedgerIndex(segments: [segment], campaign: testCampaign) {
                _ = try? allVerdicts(index)
            }
            readByOthers(segment)
        }
    }

    /// Prunes and repairs with a segment.
    private func readByOthers(_ segment: LedgerSegment) {
        var manifest = Manifest(
            campaign: testCampaign, identity: testIdentity, firstStartedAtMilliseconds: testTime,
            listPath: nil)
        _ = manifest.beginEpoch(atMilliseconds: testTime)
        var ledger = VerdictLedger(manifest: manifest, segments: [segment])
        var dead = DeadTokens()
        if (try? dead.insertDead(of: &ledger, reasons: [.badTopic])) != nil {
            dead.seal()
            try? dead.rescueLiving(of: ledger, reasons: [.badTopic])
        }
        guard let salvage = try? LedgerSalvage([segment], manifest: manifest) else { return }
        _ = salvage.parts(gapChunks: [])
        for index in salvage.segments.indices {
            var writer = LedgerWriter(campaign: testCampaign, epoch: 1, reactor: 0)
            _ = try? salvage.write(index, into: &writer) { writer in
                while let (pending, _) = writer.nextWrite() {
                    writer.writeCompleted(pending.count)
                }
            }
        }
    }
}

/// SplitMix64, so that a test's choices are the same everywhere.
struct LedgerRandom {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }

    mutating func next(below limit: UInt64) -> UInt64 { next() % limit }
}
