import BroadsideSupport
import BroadsideTestSupport
import Testing

@testable import BroadsideLedgerFormat
@testable import BroadsideRows

/// Topics in a ledger whose rows name them: recorded with each verdict, complete in each block, kept
/// by a repair and an erasure, exported and counted.
@Suite struct LedgerTopicTests {
    private static let names = ["com.example.shop", "com.example.news", "a", "com.example.voip"]
    private static var long: String { String(repeating: "long.", count: 51) }

    private static func name(_ topic: UInt16) -> String {
        switch topic {
        case 0: ""
        case 1...4: names[Int(topic) - 1]
        case 5: long
        default: "com.example.app\(topic)"
        }
    }

    /// Settles rows with topics in a form that depends on the row; the topic of each.
    private final class Draft {
        let segment: SegmentDraft
        var topics: [UInt16] = []

        init(keepsTokens: Bool = true, chunks: Int = 1, rows: Int) {
            segment = testDraft(keepsTokens: keepsTokens)
            for chunk in 0..<chunks {
                segment.writer.reserve(
                    testChunk(UInt64(chunk * rows), rows), nowMilliseconds: testTime)
            }
        }

        func settle(_ topic: UInt16) {
            let row = UInt64(topics.count)
            topics.append(topic)
            if topic > 0, !segment.writer.knows(topic: topic) {
                segment.writer.name(topic: topic, Array(LedgerTopicTests.name(topic).utf8))
            }
            let time = testTime + row * 300
            let token = Array(testToken(Int(row)).utf8)
            switch row % 7 {
            case 3:
                segment.writer.accepted(
                    row: row, fingerprint: row, attempts: 20, topic: topic, nowMilliseconds: time)
            case 4:
                let id = Array("1b4e28ba-2fa1-11d2-883f-0016d3cca427".utf8)
                segment.writer.accepted(
                    row: row, fingerprint: row, attempts: 1, arm: 2, uniqueID: id.span.bytes,
                    topic: topic, nowMilliseconds: time)
            case 5:
                segment.writer.settled(
                    row: row, state: .rejected, status: 410, reason: 57, attempts: 1,
                    timestamp: row % 2 == 0 ? testTime : nil, token: token.span.bytes,
                    tokenIsText: false, topic: topic, nowMilliseconds: time)
            case 6:
                segment.writer.settled(
                    row: row, state: .invalid, status: 0, reason: 3, attempts: 0,
                    token: Array("?".utf8).span.bytes, tokenIsText: true, topic: topic,
                    nowMilliseconds: time)
            default:
                segment.writer.accepted(
                    row: row, fingerprint: row, attempts: 1, topic: topic, nowMilliseconds: time)
            }
        }
    }

    private func topics(_ index: LedgerIndex) throws -> [String] {
        var verdicts = ChunkVerdicts(of: index)
        var found: [String] = []
        for chunk in 0..<index.chunkCount {
            try verdicts.load(chunk: chunk)
            found += verdicts.rows.indices.map {
                String(decoding: verdicts.topic(ofRow: $0), as: UTF8.self)
            }
        }
        return found
    }

    /// Rows with random topics; blocks end at random, and where they are full.
    private func randomDraft(
        seed: UInt64, rows: Int, topics: UInt16, keepsTokens: Bool = true, flushes: Bool = true
    ) -> Draft {
        var random = SeededRandom(seed: seed)
        let draft = Draft(keepsTokens: keepsTokens, rows: rows)
        var topic: UInt16 = 0
        for _ in 0..<rows {
            if Int.random(in: 0..<3, using: &random) == 0 {
                topic = UInt16.random(in: 0...topics, using: &random)
            }
            draft.settle(topic)
            if flushes, Int.random(in: 0..<20, using: &random) == 0 { draft.segment.write() }
        }
        draft.segment.sync()
        return draft
    }

    @Test(arguments: 0..<12)
    func `A verdict has the topic with which it was recorded, whatever its form and block`(
        seed: Int
    ) throws {
        let draft = randomDraft(
            seed: UInt64(seed), rows: seed < 6 ? 700 : 9_000, topics: seed % 2 == 0 ? 5 : 256,
            keepsTokens: seed % 3 != 0, flushes: seed % 4 != 3)
        let index = try testIndex([draft.segment])
        #expect(try topics(index) == draft.topics.map(Self.name))
        let plain = try allVerdicts(index)
        #expect(plain.values.allSatisfy { $0.state.isSettled })
    }

    @Test func `A row without a topic has the bytes that it always had`() {
        let (plain, other) = (testDraft(), testDraft())
        for draft in [plain, other] {
            draft.writer.reserve(testChunk(0, 3), nowMilliseconds: testTime)
        }
        accept(plain, 0)
        other.writer.accepted(
            row: 0, fingerprint: 0, attempts: 1, topic: 0, nowMilliseconds: testTime)
        accept(plain, 1, attempts: 77)
        other.writer.accepted(
            row: 1, fingerprint: 1, attempts: 77, topic: 0, nowMilliseconds: testTime)
        for draft in [plain, other] { draft.writer.settled(row: 2, .rejected) }
        plain.write()
        other.write()
        #expect(plain.bytes == other.bytes)
    }

    @Test
    func `A topic takes one slot and its text where a block first has it, and one slot later`() {
        let draft = Draft(rows: 10)
        var slots: [Int] = []
        for topic in [1, 1, 2, 1, 2, 0, 1] as [UInt16] {
            if topic > 0, !draft.segment.writer.knows(topic: topic) {
                draft.segment.writer.name(topic: topic, Array(Self.name(topic).utf8))
            }
            draft.segment.writer.accepted(
                row: 0, fingerprint: 0, attempts: 1, topic: 0, nowMilliseconds: testTime)
            let start = draft.segment.writer.appendedPosition
            draft.segment.writer.accepted(
                row: 0, fingerprint: 0, attempts: 1, topic: topic, nowMilliseconds: testTime)
            slots.append(Int(draft.segment.writer.appendedPosition - start) / 16)
        }
        // Each of them follows a row without a topic.
        #expect(slots == [3, 2, 3, 2, 2, 1, 2])
    }

    /// The blocks of a segment: their offsets.
    private func blocks(_ bytes: [UInt8]) -> [Range<Int>] {
        var found: [Range<Int>] = []
        var offset = 32
        while offset < bytes.count {
            let end = offset + 8 + 16 * (Int(bytes[offset + 4]) | Int(bytes[offset + 5]) << 8)
            found.append(offset..<end)
            offset = end
        }
        return found
    }

    private func manifest(_ draft: SegmentDraft) -> Manifest {
        var manifest = Manifest(
            campaign: testCampaign, identity: testIdentity, firstStartedAtMilliseconds: testTime,
            listPath: nil)
        _ = manifest.beginEpoch(atMilliseconds: testTime)
        manifest.endEpoch(lengths: [draft.length], isFinished: false)
        return manifest
    }

    @Test func `A repair gives no verdict another topic, whichever blocks are lost`() throws {
        let draft = Draft(rows: 40)
        draft.segment.sync()
        // Blocks of 5 rows; some begin without a topic, some with the last one's.
        let order: [UInt16] = [1, 1, 2, 0, 2, 2, 3, 3, 1, 1, 0, 0, 1, 2, 5, 5, 5, 4, 4, 1]
        for (row, topic) in (order + order.reversed()).enumerated() {
            draft.settle(topic)
            if row % 5 == 4 { draft.segment.sync() }
        }
        let whole = draft.segment.bytes
        let blocks = blocks(whole)
        #expect(blocks.count == 9)
        let expected = draft.topics.map(Self.name)
        for lost in 0...blocks.count {
            draft.segment.bytes = whole
            if lost < blocks.count { draft.segment.bytes[blocks[lost].lowerBound + 30] ^= 1 }
            let salvage = try LedgerSalvage(
                [draft.segment.segment], manifest: manifest(draft.segment))
            let copy = testDraft()
            if lost == 0 { copy.writer.reserve(testChunk(0, 40), nowMilliseconds: testTime) }
            _ = try salvage.write(0, into: &copy.writer) { _ in }
            copy.write()
            let found = try topics(testIndex([copy]))
            for row in 0..<40 {
                let isLost = lost > 0 && row / 5 == lost - 1
                #expect(found[row] == (isLost ? "" : expected[row]), "row \(row) without \(lost)")
            }
        }
    }

    @Test(
        arguments: [
            ("a number before its text", [8 << 60, 1]),
            ("the second number first", [8 << 60, 2 | 1 << 16, 0x61, 0]),
            ("a number twice", [8 << 60, 1 | 1 << 16, 0x61, 0, 8 << 60, 1 | 1 << 16, 0x62, 0]),
            ("a text without a number", [8 << 60, 1 << 16, 0x61, 0]),
            ("a text beyond the block", [8 << 60, 1 | 40 << 16, 0x61, 0]),
        ] as [(String, [UInt64])])
    func `A topic that no run can have written is damage`(_ name: String, _ words: [UInt64]) {
        let header = LedgerFormat.segmentHeader(campaign: testCampaign, epoch: 1, reactor: 0)
        let block = UInt64(words.count / 2) << 32 | LedgerFormat.blockMarker << 48
        var bytes: [UInt8] = []
        for word in [header.0, header.1, header.2, header.3, block] + words {
            for byte in 0..<8 { bytes.append(UInt8(truncatingIfNeeded: word >> UInt64(8 * byte))) }
        }
        sealSegment(&bytes)
        let segment = LedgerSegment(epoch: 1, reactor: 0, bytes: LedgerMemory(bytes))
        #expect(
            errorCode { _ = try LedgerIndex(segments: [segment], campaign: testCampaign) }
                == .malformedRecord)
    }

    // MARK: Readers

    private func export(_ index: LedgerIndex, _ format: ExportFormat) throws -> [String] {
        var export = LedgerExport(
            of: index, states: Set(RowState.allCases), format: format, campaign: nil,
            hasTopics: true, reasonText: { "r\($0)" })
        var (bytes, list) = ([UInt8](), NoLedgerList())
        while try export.next(list: &list, into: &bytes) {}
        return String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
    }

    @Test func `An export names the topic of each row in its last column`() throws {
        let draft = randomDraft(seed: 3, rows: 300, topics: 6)
        let index = try testIndex([draft.segment])
        let lines = try export(index, .csv)
        #expect(lines[0].hasSuffix(",settled_at_ms,topic"))
        let columns = lines.dropFirst().map {
            $0.split(separator: ",", omittingEmptySubsequences: false).last.map(String.init)
        }
        #expect(columns == draft.topics.map(Self.name))
        for (line, topic) in zip(try export(index, .jsonl), draft.topics) {
            let value = topic == 0 ? "null" : "\"\(Self.name(topic))\""
            #expect(line.hasSuffix(",\"topic\":\(value)}"))
        }
    }

    @Test func `A follower writes what an export writes`() throws {
        let draft = randomDraft(seed: 4, rows: 300, topics: 6)
        var rows = SettledRows(
            states: [], reasons: [], format: .jsonl, segmentNumber: testCampaign, campaign: nil,
            part: 0, acceptsBySilence: false, hasTopics: true, reasonText: { "r\($0)" })
        var tail = SegmentTail(epoch: 1, reactor: 0)
        try rows.scan(
            &tail, draft.segment.segment, upTo: UInt64(draft.segment.bytes.count))
        tail.noteSynced()
        tail.release()
        var text: [UInt8] = []
        // A few rows at a time.
        while try rows.read(
            &tail, draft.segment.segment, of: CampaignRows(), startedAtMilliseconds: testTime,
            atMost: 1)
        {
            rows.takeBatch(into: &text)
        }
        let lines = String(decoding: text, as: UTF8.self).split(separator: "\n").map(String.init)
        #expect(try lines == export(testIndex([draft.segment]), .jsonl))
    }

    @Test func `Settled rows are counted by topic, over ledgers with other numbers, too`() throws {
        let (one, two) = (Draft(rows: 21), Draft(rows: 21))
        for row in 0..<21 {
            one.settle(row < 14 ? 1 : 2)
            two.settle(row < 7 ? 3 : row < 14 ? 2 : 1)
        }
        for draft in [one, two] { draft.segment.write() }
        var summary = try LedgerSummary(testIndex([one.segment]))
        summary.add(try LedgerSummary(testIndex([two.segment])))
        let topics = summary.topics
        #expect(
            topics.topics.map { String(decoding: $0, as: UTF8.self) }
                == ["a", "com.example.news", "com.example.shop"])
        func count(_ topic: UInt16, _ state: RowState) -> UInt64 {
            topics[Array(Self.name(topic).utf8), state]
        }
        #expect(count(1, .accepted) == 15 && count(1, .rejected) == 3 && count(1, .invalid) == 3)
        #expect(count(2, .accepted) == 10 && count(3, .accepted) == 5)
        let none = try LedgerSummary(testIndex([testDraft()]))
        #expect(none.topics == TopicCounts())
    }

    @Test func `An erasure keeps the topics, and erases a token from one`() throws {
        let draft = Draft(rows: 14)
        let device = testToken(5)
        draft.segment.writer.name(topic: 9, Array("com.\(device).a".utf8))
        for row in 0..<14 { draft.settle(row == 8 ? 9 : UInt16(row % 4)) }
        draft.segment.sync()
        var devices = DeviceSet()
        _ = devices.insert(Array(device.utf8).span.bytes)
        devices.beginLedger()
        let erasure = try SegmentErasure(
            of: draft.segment.segment, manifest: manifest(draft.segment), devices: &devices,
            changedPages: PageSet())
        #expect(erasure.isAffected)
        let after = testDraft()
        try erasure.write(key: (1, 2), devices: &devices) { bytes in
            for offset in 0..<bytes.byteCount { after.bytes.append(bytes.byte(at: offset)) }
        }
        var expected = draft.topics.map(Self.name)
        expected[8] = "com.\(String(repeating: "*", count: 64)).a"
        #expect(try topics(testIndex([after])) == expected)
        let text = String(decoding: after.bytes, as: UTF8.self)
        #expect(!text.contains(device))
    }
}
