import BroadsideAPNs
import BroadsideHygiene
import BroadsideLedgerFormat
import BroadsideRows
import BroadsideSupport
import CBroadsideZlib

extension FuzzTarget {
    /// A ledger's segment: its reader, the replay, the plan of a resume, the export, prune and repair.
    ///
    /// The first byte chooses whether checksums are put right first: without that little but the
    /// checksum is ever tried. What was read is consistent: verification agrees with the counts, a
    /// plan never sends a row that is settled.
    static let ledgerSegment = FuzzTarget(name: "ledger-segment") { bytes in
        var input = FuzzInput(bytes)
        let isMended = input.choice(below: 4) != 0
        let hasSecond = input.choice(below: 2) != 0
        var first = input.bytes
        if isMended { seal(&first, epoch: 1) }
        var segments = [LedgerSegment(epoch: 1, reactor: 0, bytes: LedgerMemory(first))]
        if hasSecond {
            // The same records by a later run, which may open rows again.
            var second = input.bytes
            seal(&second, epoch: 2)
            segments.append(LedgerSegment(epoch: 2, reactor: 0, bytes: LedgerMemory(second)))
        }
        prune([segments[0]])
        repair([segments[0]])
        guard let index = try? LedgerIndex(segments: segments, campaign: fuzzCampaign) else {
            return
        }
        // A chunk has 65,536 rows at most, so a short input may still speak of many.
        guard index.chunkCount <= 8 else { return }
        check(index)
    }

    static let fuzzCampaign: UInt64 = 0x1234_5678_9ABC_DEF0

    private static func check(_ index: LedgerIndex) {
        guard let summary = try? LedgerSummary(index) else { return }
        var rows = 0
        var verdicts = ChunkVerdicts(of: index)
        for chunk in 0..<index.chunkCount {
            guard (try? verdicts.load(chunk: chunk)) != nil else { return }
            rows += verdicts.rows.count
            let place = index.chunk(chunk)
            precondition(verdicts.rows.count == place.rowCount)
            precondition(index.chunkIndex(ofRow: place.firstRow) == chunk)
        }
        let counted = RowState.allCases.reduce(0) { $0 + Int(summary.count($1)) }
        precondition(counted == rows, "\(counted) of \(rows) rows are counted")

        var export = LedgerExport(
            of: index, states: Set(RowState.allCases), format: .csv, campaign: fuzzCampaign,
            hasTopics: true, reasonText: { code in "reason \(code)" })
        var list = NoLedgerList()
        while (try? export.next(list: &list)) == true { export.forgetText() }
        plan(index)
    }

    /// A manifest that knows the first run, which did not record its end.
    private static func manifest() -> Manifest {
        let identity = CampaignIdentity(
            listByteCount: nil, listFormat: "lines", columns: ["token"], payloadSHA256: "",
            topic: nil, pushType: "alert", priority: 10, expiration: nil, collapseID: nil,
            environment: "production", shard: nil, suppressSHA256: nil)
        var manifest = Manifest(
            campaign: fuzzCampaign, identity: identity, firstStartedAtMilliseconds: 1,
            listPath: nil)
        _ = manifest.beginEpoch(atMilliseconds: 1)
        return manifest
    }

    private static func prune(_ segments: [LedgerSegment]) {
        var ledger = VerdictLedger(manifest: manifest(), segments: segments)
        var dead = DeadTokens()
        let reasons: Set<Reason> = [.unregistered, .expiredToken, .badDeviceToken]
        guard (try? dead.insertDead(of: &ledger, reasons: reasons)) != nil else { return }
        dead.seal()
        try? dead.rescueLiving(of: ledger, reasons: reasons)
        dead.seal()
    }

    /// What a repair keeps of a segment is read by all.
    private static func repair(_ segments: [LedgerSegment]) {
        guard let salvage = try? LedgerSalvage(segments, manifest: manifest()) else { return }
        for (epoch, reactor, part) in salvage.parts(gapChunks: []) {
            guard case .records(let index) = part else { continue }
            var writer = LedgerWriter(campaign: fuzzCampaign, epoch: epoch, reactor: reactor)
            var bytes: [UInt8] = []
            func flush(_ writer: inout LedgerWriter) {
                while let (pending, _) = writer.nextWrite() {
                    bytes += pending
                    writer.writeCompleted(pending.count)
                }
            }
            _ = try? salvage.write(index, into: &writer) { flush(&$0) }
            flush(&writer)
            let written = LedgerSegment(
                epoch: epoch, reactor: reactor, bytes: LedgerMemory(bytes))
            var ledger = VerdictLedger(manifest: manifest(), segments: [written])
            var dead = DeadTokens()
            let isRead = (try? dead.insertDead(of: &ledger, reasons: [.unregistered])) != nil
            precondition(isRead, "a repair wrote what can't be read")
        }
    }

    private static func plan(_ index: LedgerIndex) {
        var plan = ResumePlan(index: index, lostRows: .record, reopens: [])
        var verdicts = ChunkVerdicts(of: index)
        while let work = try? plan.next() {
            guard case .chunk(let work) = work,
                let chunk = index.chunkIndex(ofRow: work.chunk.firstRow),
                (try? verdicts.load(chunk: chunk)) != nil
            else { continue }
            for (place, disposition) in work.dispositions.enumerated() {
                let isSent = disposition == .send
                precondition(
                    !isSent || verdicts.rows[place].state == .remaining, "a settled row is sent")
            }
        }
    }

    /// Makes the checksums of a segment right, as far as its blocks' lengths allow.
    private static func seal(_ bytes: inout [UInt8], epoch: UInt32) {
        func put<Number: FixedWidthInteger>(_ number: Number, at place: Int) {
            for byte in 0..<MemoryLayout<Number>.size {
                bytes[place + byte] = UInt8(truncatingIfNeeded: number >> (8 * byte))
            }
        }
        func checksum(_ range: Range<Int>, from seed: UInt) -> UInt {
            bytes[range].withUnsafeBufferPointer {
                crc32(seed, $0.baseAddress, UInt32($0.count))
            }
        }
        guard bytes.count >= LedgerFormat.segmentHeaderByteCount else { return }
        put(LedgerFormat.magic, at: 0)
        put(LedgerFormat.version, at: 8)
        put(UInt16(0), at: 10)
        put(epoch, at: 12)
        put(fuzzCampaign, at: 16)
        put(UInt32(0), at: 24)
        let seed = checksum(0..<28, from: 0)
        put(UInt32(seed), at: 28)
        var offset = LedgerFormat.segmentHeaderByteCount
        while offset + LedgerFormat.blockHeaderByteCount < bytes.count {
            let slots = Int(bytes[offset + 4]) | Int(bytes[offset + 5]) << 8
            let end =
                offset + LedgerFormat.blockHeaderByteCount + slots * LedgerFormat.slotByteCount
            guard end <= bytes.count else { return }
            put(UInt16(0xB10C), at: offset + 6)
            let place = withUnsafeBytes(of: UInt64(offset).littleEndian) { bytes in
                crc32(seed, bytes.bindMemory(to: UInt8.self).baseAddress, 8)
            }
            put(UInt32(checksum(offset + 4..<end, from: place)), at: offset)
            offset = end
        }
    }
}
