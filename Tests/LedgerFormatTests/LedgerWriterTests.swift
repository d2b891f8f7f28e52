import BroadsideRows
import Testing

@testable import BroadsideLedgerFormat

@Suite struct LedgerWriterTests {
    func word(_ bytes: [UInt8], _ offset: Int) -> UInt64 {
        (0..<8).reduce(0) { $0 | UInt64(bytes[offset + $1]) << UInt64(8 * $1) }
    }

    @Test func `A segment's first bytes are as documented`() {
        let draft = SegmentDraft(campaign: testCampaign, epoch: 3, reactor: 2)
        draft.writer.reserve(testChunk(5, 10, reopens: .unknown), nowMilliseconds: testTime)
        draft.writer.accepted(
            row: 6, fingerprint: 0xFEED, attempts: 2, nowMilliseconds: testTime + 9)
        draft.write()
        let bytes = draft.bytes
        #expect(Array(bytes[0..<8]) == Array("BSLEDGER".utf8))
        #expect(word(bytes, 8) == 1 | 2 << 16 | 3 << 32)
        #expect(word(bytes, 16) == testCampaign)
        #expect(word(bytes, 24) & 0xFFFF_FFFF == 0)
        // Clock, reservation of three slots, one accepted row.
        #expect(word(bytes, 32) >> 32 == 5 | 0xB10C << 16)
        #expect(word(bytes, 40) == 6 << 60)
        #expect(word(bytes, 48) == testTime)
        #expect(word(bytes, 56) == 3 << 60 | 2 << 56 | 5)
        #expect(word(bytes, 64) == 10 | 10 << 32)
        #expect(word(bytes, 72) == 5 * 65)
        #expect(word(bytes, 80) == 10 * 65)
        #expect(word(bytes, 88) == 6)
        #expect(word(bytes, 96) == testChunk(5, 10).hash)
        #expect(word(bytes, 104) == 1 << 60 | 2 << 56 | 9 << 40 | 6)
        #expect(word(bytes, 112) == 0xFEED)
        #expect(bytes.count == 120)
    }

    @Test func `Checksums are zlib's CRC-32 of the documented ranges`() {
        func crc(_ bytes: [UInt8], _ start: UInt32 = 0) -> UInt32 {
            var crc = ~start
            for byte in bytes {
                crc ^= UInt32(byte)
                for _ in 0..<8 { crc = crc & 1 == 1 ? crc >> 1 ^ 0xEDB8_8320 : crc >> 1 }
            }
            return ~crc
        }
        let draft = SegmentDraft(campaign: testCampaign, epoch: 1, reactor: 0)
        draft.writer.reserve(testChunk(0, 1), nowMilliseconds: testTime)
        draft.write()
        let header = crc(Array(draft.bytes[0..<28]))
        #expect(word(draft.bytes, 24) >> 32 == UInt64(header))
        let place: [UInt8] = [32, 0, 0, 0, 0, 0, 0, 0]
        let block = crc(place + draft.bytes[36...], header)
        #expect(word(draft.bytes, 32) & 0xFFFF_FFFF == UInt64(block))
    }

    @Test func `Positions tell when a reservation is written and synced`() {
        var writer = LedgerWriter(campaign: 1, epoch: 1, reactor: 0)
        let position = writer.reserve(testChunk(0, 100), nowMilliseconds: testTime)
        #expect(writer.appendedPosition == position)
        #expect(writer.pendingByteCount == Int(position))
        let (bytes, offset) = writer.nextWrite()!
        #expect(offset == 0 && bytes.count == Int(position))
        #expect(writer.nextWrite() == nil)
        #expect(writer.writtenPosition == 0)
        writer.accepted(row: 0, fingerprint: 1, attempts: 1, nowMilliseconds: testTime)
        // A block written in part tells a reader nothing, though the reservation may be in that
        // part.
        writer.writeCompleted(Int(position) - 1)
        #expect(writer.writtenPosition == 0)
        let (rest, restOffset) = writer.nextWrite()!
        #expect(restOffset == position - 1 && rest.count == 1)
        writer.writeCompleted(rest.count)
        #expect(writer.writtenPosition == position && writer.syncedPosition == 0)
        writer.syncCompleted(upTo: position)
        #expect(writer.syncedPosition == position)
        #expect(writer.nextWrite()!.bytes.count == 24)
        writer.writeCompleted(24)
        #expect(writer.nextWrite() == nil)
        #expect(writer.pendingByteCount == 0)
    }

    @Test func `A turn with one verdict writes 24 bytes, and a full block little over 16 for each`()
    {
        let draft = SegmentDraft(campaign: testCampaign, epoch: 1, reactor: 0)
        for chunk in 0..<10 {
            draft.writer.reserve(testChunk(UInt64(chunk) * 1000, 1000), nowMilliseconds: testTime)
        }
        draft.write()
        var before = draft.bytes.count
        for row in 0..<UInt64(1000) {
            draft.writer.accepted(
                row: row, fingerprint: row, attempts: 1, nowMilliseconds: testTime)
            draft.write()
        }
        #expect(draft.bytes.count - before == 24_000)
        before = draft.bytes.count
        for row in 1000..<UInt64(10_000) {
            draft.writer.accepted(
                row: row, fingerprint: row, attempts: 1, nowMilliseconds: testTime)
        }
        draft.write()
        #expect(draft.bytes.count - before <= 9000 * 16 + 3 * 8)
    }

    @Test(arguments: [1, 7, 4096, Int.max])
    func `Rows in many blocks are read back, whatever the size of writes`(most: Int) throws {
        let draft = SegmentDraft(campaign: testCampaign, epoch: 1, reactor: 0)
        let count: UInt64 = 20_000
        draft.writer.reserve(testChunk(0, Int(count)), nowMilliseconds: testTime)
        for row in 0..<count {
            // Now and then far apart, backwards, and often.
            let time = row % 5000 == 77 ? testTime - 1000 : testTime + row * 7
            draft.writer.accepted(
                row: row, fingerprint: ~row, attempts: Int(row % 40) + 1, nowMilliseconds: time)
            if row % 3000 == 0 { draft.write(most: most) }
        }
        draft.write(most: most)
        let verdicts = try allVerdicts(testIndex([draft]))
        for row in 0..<count {
            let verdict = verdicts[row]!
            let time = row % 5000 == 77 ? testTime - 1000 : testTime + row * 7
            guard case .fingerprint(let fingerprint) = verdict.token, fingerprint == ~row,
                verdict.state == .accepted, verdict.status == 200,
                verdict.attempts == UInt16(row % 40) + 1, verdict.settledAtMilliseconds == time
            else {
                Issue.record("row \(row): \(verdict)")
                return
            }
        }
    }

    @Test func `A segment can be continued, whatever its clock`() throws {
        for time in [3, testTime] {
            let draft = SegmentDraft(campaign: testCampaign, epoch: 1, reactor: 0)
            draft.writer.reserve(testChunk(0, 10), nowMilliseconds: testTime)
            draft.write()
            draft.writer = LedgerWriter(
                campaign: testCampaign, epoch: 1, reactor: 0,
                startOffset: UInt64(draft.bytes.count))
            draft.writer.accepted(row: 1, fingerprint: 5, attempts: 1, nowMilliseconds: time)
            draft.write()
            let verdict = try allVerdicts(testIndex([draft]))[1]
            #expect(verdict?.state == .accepted && verdict?.settledAtMilliseconds == time)
        }
    }

    @Test func `A backlog is reported, and nothing of it is lost`() throws {
        let draft = SegmentDraft(campaign: testCampaign, epoch: 1, reactor: 0)
        for chunk in 0..<UInt64(5) {
            draft.writer.reserve(testChunk(chunk * 30_000, 30_000), nowMilliseconds: testTime)
        }
        let flight = draft.writer.nextWrite()!
        #expect(!draft.isBehind)
        for row in 0..<UInt64(150_000) {
            draft.writer.accepted(
                row: row, fingerprint: row, attempts: 1, nowMilliseconds: testTime)
        }
        #expect(draft.isBehind)
        draft.bytes.append(contentsOf: flight.bytes)
        draft.writer.writeCompleted(flight.bytes.count)
        draft.write()
        #expect(!draft.isBehind)
        let summary = try LedgerSummary(testIndex([draft]))
        #expect(summary.count(.accepted) == 150_000)
    }

    /// Digits whose order tells their places apart, another one first in each row.
    private func bytes(of row: Int, count: Int) -> [UInt8] {
        (0..<count).map { 0x61 + UInt8(($0 * 5 + $0 / 6 + row) % 6) }
    }

    @Test func `An acceptance reads the same after any number of attempts`() throws {
        let attempts = [1, 2, 14, 15, 16, 17, 400, 65_535, 70_000]
        let draft = testDraft()
        draft.writer.reserve(testChunk(0, attempts.count), nowMilliseconds: testTime)
        for (row, count) in attempts.enumerated() {
            draft.writer.accepted(
                row: UInt64(row), fingerprint: UInt64(row) + 7, attempts: count,
                nowMilliseconds: testTime + UInt64(row))
        }
        draft.write()
        let verdicts = try allVerdicts(testIndex([draft]))
        for (row, count) in attempts.enumerated() {
            let verdict = try #require(verdicts[UInt64(row)])
            #expect(verdict.state == .accepted && verdict.status == 200 && verdict.reason == 0)
            #expect(verdict.attempts == min(count, 65_535) && verdict.timestamp == nil)
            #expect(verdict.settledAtMilliseconds == testTime + UInt64(row))
            guard case .fingerprint(UInt64(row) + 7) = verdict.token else {
                Issue.record("another token: \(verdict.token)")
                continue
            }
        }
    }

    @Test func `Tokens, texts and times are read back`() throws {
        let draft = SegmentDraft(campaign: testCampaign, epoch: 1, reactor: 0)
        draft.writer.reserve(testChunk(0, 300), nowMilliseconds: testTime)
        // Every length of token and of reason's text, digits, and text where digits do not pair up.
        for row in 0..<UInt64(270) {
            let token = bytes(of: Int(row), count: Int(row))
            let text = bytes(of: Int(row), count: Int(row % 70))
            draft.writer.settled(
                row: row, state: .rejected, status: 410, reason: UInt8(row % 256),
                reasonText: row % 3 == 0 ? nil : text.span.bytes, attempts: Int(row) * 300,
                timestamp: row % 2 == 0 ? row << 33 : nil, token: token.span.bytes,
                tokenIsText: row % 4 == 0, nowMilliseconds: testTime + row)
        }
        draft.write()
        let index = try testIndex([draft])
        var verdicts = ChunkVerdicts(of: index)
        try verdicts.load(chunk: 0)
        for row in 0..<270 {
            let verdict = verdicts.rows[row]
            #expect(verdict.state == .rejected && verdict.status == 410)
            #expect(verdict.reason == UInt8(row % 256))
            #expect(Int(verdict.attempts) == min(row * 300, 65_535))
            #expect(verdict.timestamp == (row % 2 == 0 ? UInt64(row) << 33 : nil))
            #expect(verdict.settledAtMilliseconds == testTime + UInt64(row))
            var token: [UInt8] = []
            verdicts.appendToken(ofRow: row, to: &token)
            #expect(token == bytes(of: row, count: min(row, 200)))
            let text = verdicts.reasonText(ofRow: row)
            let expected = bytes(of: row, count: min(row % 70, 64))
            #expect((text ?? []) == (row % 3 == 0 ? [] : expected))
        }
        #expect(verdicts.rows[299].state == .inDoubt)
        if case .bytes = verdicts.rows[66].token {} else { Issue.record("digits were not packed") }
        if case .text = verdicts.rows[64].token {} else { Issue.record("text was packed") }
        if case .text = verdicts.rows[65].token {} else { Issue.record("odd digits were packed") }
    }

    @Test func `A token is packed exactly if all bytes are hexadecimal digits`() throws {
        let digits = Array("0123456789abcdef0123456789ABCDEF".utf8)
        let hexadecimal = Set("0123456789abcdefABCDEF".utf8)
        let draft = testDraft()
        draft.writer.reserve(testChunk(0, 32 * 256), nowMilliseconds: testTime)
        for place in 0..<32 {
            for byte in 0..<256 {
                var token = digits
                token[place] = UInt8(byte)
                let isPacked = draft.writer.settledQuickly(
                    row: UInt64(place * 256 + byte), state: .skipped, status: 0, reason: 1,
                    attempts: 0, digits: token.span.bytes, nowMilliseconds: testTime)
                #expect(
                    isPacked == hexadecimal.contains(UInt8(byte)), "byte \(byte) at \(place)")
            }
        }
        draft.write()
        var verdicts = ChunkVerdicts(of: try testIndex([draft]))
        try verdicts.load(chunk: 0)
        for row in 0..<(32 * 256) where hexadecimal.contains(UInt8(row % 256)) {
            var token = digits
            token[row / 256] = UInt8(row % 256)
            var found: [UInt8] = []
            verdicts.appendToken(ofRow: row, to: &found)
            let expected = String(decoding: token, as: UTF8.self).lowercased()
            #expect(String(decoding: found, as: UTF8.self) == expected)
        }
    }
}
