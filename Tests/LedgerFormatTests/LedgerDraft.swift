@testable import BroadsideLedgerFormat
@testable import BroadsideRows

/// One segment being written to memory, as a reactor would write it to a file.
final class SegmentDraft {
    let epoch: UInt32
    let reactor: UInt16
    var bytes: [UInt8] = []
    var writer: LedgerWriter

    init(campaign: UInt64, epoch: UInt32, reactor: UInt16, keepsTokens: Bool = true) {
        self.epoch = epoch
        self.reactor = reactor
        writer = LedgerWriter(
            campaign: campaign, epoch: epoch, reactor: reactor, keepsTokens: keepsTokens)
    }

    /// Writes all that pends, at most `most` bytes at a time.
    func write(most: Int = .max) {
        while let (pending, offset) = writer.nextWrite() {
            precondition(offset == UInt64(bytes.count))
            let count = min(most, pending.count)
            bytes.append(contentsOf: pending.prefix(count))
            writer.writeCompleted(count)
        }
    }

    /// Writes all that pends and syncs it.
    func sync() {
        write()
        writer.syncCompleted(upTo: writer.writtenPosition)
    }

    /// Whether nothing pends.
    var isWritten: Bool { writer.pendingByteCount == 0 }
    var syncedCount: UInt64 { writer.syncedPosition }
    var isBehind: Bool { writer.backlogIsHigh }

    var segment: LedgerSegment {
        LedgerSegment(epoch: epoch, reactor: reactor, bytes: LedgerMemory(bytes))
    }

    var length: SegmentLength { SegmentLength(reactor: reactor, byteCount: UInt64(bytes.count)) }

    /// An index of the first rows of a list, from this segment alone.
    func index(rows: UInt64) throws -> LedgerIndex {
        try LedgerIndex(
            segments: [segment], campaign: testCampaign, rows: CampaignRows(limit: rows))
    }

    /// Rejects a row with a reason that no code names, "Odd".
    func rejectOddly(_ row: UInt64, status: UInt16, arm: UInt8 = 0) {
        let words = Array("Odd".utf8)
        let token = Array(String(repeating: "ab", count: 32).utf8)
        writer.settled(
            row: row, state: .rejected, status: status, reason: 0, reasonText: words.span.bytes,
            attempts: 1, token: token.span.bytes, tokenIsText: false, arm: arm,
            nowMilliseconds: testTime)
    }

    /// The segment that a repair makes of this one.
    func repaired() throws -> SegmentDraft {
        var manifest = Manifest(
            campaign: testCampaign, identity: testIdentity, firstStartedAtMilliseconds: testTime,
            listPath: nil)
        _ = manifest.beginEpoch(atMilliseconds: testTime)
        let salvage = try LedgerSalvage([segment], manifest: manifest)
        let copy = testDraft()
        _ = try salvage.write(0, into: &copy.writer) { _ in }
        copy.write()
        return copy
    }
}

/// The lines of an export without a list.
func exportedLines(_ export: consuming LedgerExport) throws -> [String] {
    var (bytes, list) = ([UInt8](), NoLedgerList())
    while try export.next(list: &list, into: &bytes) {}
    return String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
}

let testCampaign: UInt64 = 0x1234_5678_9ABC_DEF0
/// A time of today's size, in milliseconds since 1970.
let testTime: UInt64 = 1_790_000_000_000

/// A chunk in a list of 65 bytes a row.
func testChunk(_ firstRow: UInt64, _ rowCount: Int, reopens: ReopenedStates = [])
    -> ChunkReservation
{
    ChunkReservation(
        firstRow: firstRow, rowCount: rowCount, byteOffset: firstRow * 65,
        byteCount: UInt64(rowCount) * 65, firstLine: firstRow + 1, lineCount: UInt64(rowCount),
        hash: firstRow &* 0x9E37_79B9_7F4A_7C15, reopens: reopens)
}

let testIdentity = CampaignIdentity(
    listByteCount: 1000, listFormat: "csv", columns: ["token", "name"],
    payloadSHA256: String(repeating: "ab", count: 32), topic: "com.example.shop",
    pushType: "alert", priority: 10, expiration: "+2h", collapseID: nil,
    environment: "production", shard: nil, suppressSHA256: nil)

extension LedgerWriter {
    /// Settles a row without a token and with plain values.
    mutating func settled(
        row: UInt64, _ state: RowState, token: [UInt8] = [], attempts: Int = 1,
        reason: UInt8 = 7, at: UInt64 = testTime
    ) {
        settled(
            row: row, state: state, status: state == .rejected ? 410 : 0, reason: reason,
            attempts: attempts, token: token.span.bytes, tokenIsText: false, nowMilliseconds: at)
    }
}

/// Everything a ledger says of each row that it knows.
func allVerdicts(_ index: LedgerIndex) throws -> [UInt64: RowVerdict] {
    var verdicts = ChunkVerdicts(of: index)
    var result: [UInt64: RowVerdict] = [:]
    for chunk in 0..<index.chunkCount {
        try verdicts.load(chunk: chunk)
        for (place, row) in verdicts.rows.enumerated() {
            result[verdicts.firstRow + UInt64(place)] = row
        }
    }
    return result
}

/// What a ledger says of each row that it knows, in words that tell any two verdicts apart.
func allMeanings(_ index: LedgerIndex) throws -> [UInt64: String] {
    var verdicts = ChunkVerdicts(of: index)
    var result: [UInt64: String] = [:]
    for chunk in 0..<index.chunkCount {
        try verdicts.load(chunk: chunk)
        for (place, row) in verdicts.rows.enumerated() {
            var token: [UInt8] = []
            verdicts.appendToken(ofRow: place, to: &token)
            let kind =
                switch row.token {
                case .fingerprint(let fingerprint): "fingerprint \(fingerprint)"
                case .bytes: "digits \(token)"
                case .text: "text \(token)"
                case .erased: "erased \(token)"
                case .none: "no token"
                }
            result[verdicts.firstRow + UInt64(place)] = """
                \(row.state.name) \(row.status) \(row.reason) \(row.attempts) \
                \(row.settledAtMilliseconds) \(row.timestamp ?? 0) \(kind) \
                \(verdicts.reasonText(ofRow: place) ?? [])
                """
        }
    }
    return result
}

func allStates(_ index: LedgerIndex) throws -> [UInt64: RowState] {
    try allVerdicts(index).mapValues(\.state)
}

func testIndex(_ segments: [SegmentDraft]) throws -> LedgerIndex {
    try LedgerIndex(segments: segments.map(\.segment), campaign: testCampaign)
}

/// Makes all checksums of the segment of run 1, reactor 0 right, as far as its blocks' lengths
/// allow.
func sealSegment(_ bytes: inout [UInt8]) {
    let header = LedgerFormat.segmentHeader(campaign: testCampaign, epoch: 1, reactor: 0)
    var offset = 32
    while offset + 8 < bytes.count {
        let count = 8 + 16 * (Int(bytes[offset + 4]) | Int(bytes[offset + 5]) << 8)
        guard offset + count <= bytes.count else { return }
        let crc = bytes[offset..<(offset + count)].withUnsafeBytes { block in
            LedgerFormat.checksum(
                seed: UInt32(header.3 >> 32), offset: UInt64(offset), block: block)
        }
        for place in 0..<4 {
            bytes[offset + place] = UInt8(truncatingIfNeeded: crc >> UInt32(8 * place))
        }
        offset += count
    }
}

func testDraft(
    _ epoch: UInt32 = 1, _ reactor: UInt16 = 0, keepsTokens: Bool = true
) -> SegmentDraft {
    SegmentDraft(
        campaign: testCampaign, epoch: epoch, reactor: reactor, keepsTokens: keepsTokens)
}

/// Writes down that a row was accepted.
func accept(_ draft: SegmentDraft, _ row: UInt64, attempts: Int = 1) {
    draft.writer.accepted(
        row: row, fingerprint: row, attempts: attempts, nowMilliseconds: testTime)
}

/// Why a ledger is refused; nil where it is not.
func errorCode(_ body: () throws -> Void) -> LedgerError.Code? {
    do {
        try body()
        return nil
    } catch let error as LedgerError {
        return error.code
    } catch {
        return nil
    }
}

extension RowDisposition {
    /// One digit, so that an expected chunk is a line.
    var digit: Int {
        switch self {
        case .send: 0
        case .settled: 1
        case .becomesUnknown: 2
        case .sendAgain: 3
        case .skipped: 4
        case .beyondLimit: 6
        case .notDue: 7
        case .invalid: 8
        case .erased: 9
        }
    }
}
