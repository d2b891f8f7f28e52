import BroadsideAPNs
import BroadsideLedgerFormat
import BroadsideRows

/// A ledger of ten thousand rows and its list, in memory: what `ledger export`, `verify` and `merge`
/// do with each row, again and again.
struct StoredLedger {
    private static let rowCount = 10_000
    private static let campaign: UInt64 = 0x0123_4567_89ab_cdef
    private static let time: UInt64 = 1_790_000_000_000
    /// Bytes of a block that are written at once: a hundred verdicts.
    private static let writeByteCount = 1_600
    /// Chunks of a ledger start behind the list's start.
    private static let listStart: UInt64 = 1

    private let segment: LedgerSegment
    private let manifest: Manifest
    private let list: [UInt8]
    private let layout: RowLayout

    init() {
        guard let layout = try? RowLayout(format: .lines, names: ["token"], header: nil) else {
            fatalError("plain lines have one column")
        }
        self.layout = layout
        list = Lists.text(.lines, rows: Self.rowCount)
        let bytes = Self.segment(of: list, layout)
        segment = LedgerSegment(epoch: 1, reactor: 0, bytes: LedgerMemory(bytes))
        let identity = CampaignIdentity(
            listByteCount: UInt64(list.count), listFormat: "lines", columns: ["token"],
            payloadSHA256: "", topic: "com.example.news", pushType: "alert", priority: 10,
            expiration: nil, collapseID: nil, environment: "production", shard: nil,
            suppressSHA256: nil)
        var manifest = Manifest(
            campaign: Self.campaign, identity: identity, firstStartedAtMilliseconds: Self.time,
            listPath: nil)
        _ = manifest.beginEpoch(atMilliseconds: Self.time, previousLengths: [])
        self.manifest = manifest
    }

    /// One row in a hundred was rejected, all others were accepted.
    private static func segment(of list: [UInt8], _ layout: RowLayout) -> [UInt8] {
        var writer = LedgerWriter(campaign: campaign, epoch: 1, reactor: 0)
        var bytes: [UInt8] = []
        func write(atLeast count: Int) {
            guard writer.pendingByteCount >= count else { return }
            while let write = writer.nextWrite() {
                bytes += write.bytes
                writer.writeCompleted(write.bytes.count)
            }
        }
        let newline = UInt8(ascii: "\n")
        var fingerprints: [UInt64] = []
        for line in list.split(separator: newline) {
            let digits = line.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }
            fingerprints.append(TokenText.fingerprint(digits.span.bytes))
        }
        let pool = ChunkPool(limit: 3)
        var splitter = RowSplitter(format: .lines, pool: pool)
        var reader = RowReader(layout: layout)
        func record(_ chunk: RowChunk) {
            var reservation = chunk.reservation
            reservation.byteOffset += listStart
            writer.reserve(reservation, nowMilliseconds: time)
            reader.open(chunk)
            while let row = reader.next() {
                let now = time + row.number / 100
                if row.number % 100 == 99 {
                    writer.settled(
                        row: row.number, state: .rejected, status: 410,
                        reason: Reason.unregistered.rawValue, attempts: 1, timestamp: time,
                        token: reader.text(reader.field(0)), tokenIsText: false,
                        nowMilliseconds: now)
                } else {
                    writer.accepted(
                        row: row.number,
                        fingerprint: fingerprints[Int(row.number)], attempts: 1,
                        nowMilliseconds: now)
                }
                write(atLeast: writeByteCount)
            }
            if let chunk = reader.close() { pool.giveBack(chunk) }
        }
        var offset = 0
        while case .chunk(let chunk) = splitter.next(list.span.bytes, at: &offset) { record(chunk) }
        if let last = splitter.finish() { record(last) }
        write(atLeast: 1)
        return bytes
    }

    private func index() -> LedgerIndex {
        guard let index = try? LedgerIndex(segments: [segment], manifest: manifest) else {
            fatalError("the ledger is sound")
        }
        return index
    }

    private func verified() -> UInt64 {
        guard let found = try? LedgerVerification(checking: [segment], manifest: manifest) else {
            fatalError("the ledger is sound")
        }
        return found.summary.count(.accepted)
    }

    func export(_ rows: Int, _ format: ExportFormat) -> UInt64 {
        var checksum = Checksum()
        for _ in 0..<max(1, rows / Self.rowCount) {
            var export = LedgerExport(
                of: index(), format: format, campaign: Self.campaign,
                reasonText: { Reason(rawValue: $0)?.text ?? "" })
            var list = StoredList(bytes: self.list, layout: layout)
            var isMore = true
            while isMore {
                guard let next = try? export.next(list: &list) else {
                    fatalError("the list is the ledger's")
                }
                isMore = next
                guard !isMore || !export.hasRoom else { continue }
                checksum.take(UInt64(export.bytes.byteCount))
                export.forgetText()
            }
        }
        return checksum.value
    }

    func verify(_ rows: Int) -> UInt64 {
        var checksum = Checksum()
        for _ in 0..<max(1, rows / Self.rowCount) { checksum.take(verified()) }
        return checksum.value
    }

    /// A shard's ledger is verified, and its parts are held against the list. The copy is the kernel's.
    func merge(_ rows: Int) -> UInt64 {
        var checksum = Checksum()
        for _ in 0..<max(1, rows / Self.rowCount) {
            checksum.take(verified())
            let index = index()
            let list = StoredList(bytes: self.list, layout: layout)
            for place in 0..<index.chunkCount {
                guard let chunk = list.read(index.chunk(place)) else {
                    fatalError("the list is the ledger's")
                }
                var reader = RowReader(layout: layout)
                checksum.take(UInt64(reader.countRows(chunk)))
                list.pool.giveBack(chunk)
            }
        }
        return checksum.value
    }

    /// The list, as a file would be read.
    private struct StoredList: LedgerListReader {
        let bytes: [UInt8]
        let layout: RowLayout
        let pool = ChunkPool(limit: 3)

        var isAvailable: Bool { true }

        func read(_ chunk: ChunkReservation) -> RowChunk? {
            pool.read(chunk) { (offset, room) in
                let start = Int(offset - listStart)
                let count = min(room.count, bytes.count - start)
                room.copyBytes(from: bytes[start..<(start + count)])
                return count
            }
        }

        func load(_ chunk: ChunkReservation, into rows: inout ListRows) throws(LedgerError) {
            guard let read = read(chunk) else { throw LedgerError(.badList) }
            rows.read(read, layout: layout)
            pool.giveBack(read)
        }

        func loadNext(
            of gap: ListExtent, into rows: inout ListRows
        ) throws(LedgerError) -> ChunkReservation? { nil }
    }
}
