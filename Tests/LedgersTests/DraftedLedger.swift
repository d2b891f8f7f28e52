import BroadsideLedgerFormat
import BroadsideRows
import BroadsideSupport
import Foundation
import Testing

@testable import BroadsideLedgers

/// Ledgers of finished runs, written by the library alone: thousands of files, without a single request.
enum DraftedLedger {
    static let time: UInt64 = 1_790_000_000_000

    /// Digits from which the row can be read.
    static func token(_ row: UInt64) -> String {
        let digits = String(row, radix: 16)
        return String(repeating: "0", count: 64 - digits.count) + digits
    }

    /// Writes a ledger in which each segment has one row, which is rejected.
    ///
    /// - Parameters:
    ///   - part: which part of the campaign it is, nil: it is a campaign of one list.
    ///   - firstRow: its first row's number, for the tokens; the ledger's own count from 0.
    ///   - settledAt: when its rows were settled.
    ///   - firstByte: where its list begins.
    static func write(
        _ path: String, runs: Int = 1, reactors: Int = 1, part: CampaignPart? = nil,
        firstRow: UInt64 = 0, settledAt: UInt64 = time, firstByte: UInt64 = 0
    ) throws {
        let directory = try LedgerDirectory.create(path)
        var manifest = Manifest(
            campaign: 0x0123_4567_89ab_cdef,
            identity: CampaignIdentity(
                listByteCount: UInt64(65 * runs * reactors), listFormat: "lines",
                columns: ["token"], payloadSHA256: "00", topic: nil, pushType: "alert",
                priority: 10, expiration: nil, collapseID: nil, environment: "production",
                shard: nil, part: part, campaignID: part == nil ? nil : "0123456789abcdef",
                suppressSHA256: nil),
            firstStartedAtMilliseconds: time, listPath: nil)
        var row: UInt64 = 0
        for run in 1...runs {
            let epoch = manifest.beginEpoch(atMilliseconds: time)
            var lengths: [SegmentLength] = []
            for reactor in 0..<UInt16(reactors) {
                let segment = try directory.createSegment(epoch: epoch, reactor: reactor)
                defer { close(segment) }
                var writer = LedgerWriter(
                    campaign: manifest.segmentNumber, epoch: epoch, reactor: reactor)
                writer.reserve(
                    ChunkReservation(
                        firstRow: row, rowCount: 1, byteOffset: firstByte + 65 * row, byteCount: 65,
                        firstLine: row + 1, lineCount: 1, hash: 0),
                    nowMilliseconds: time)
                let digits = Array(token(firstRow + row).utf8)
                writer.settled(
                    row: row, state: .rejected, status: 410, reason: 57, attempts: 1,
                    timestamp: time, token: digits.span.bytes, tokenIsText: false,
                    nowMilliseconds: settledAt)
                let isWritten = writer.writePending(to: segment)
                #expect(isWritten)
                lengths.append(
                    SegmentLength(reactor: reactor, byteCount: writer.writtenPosition))
                row += 1
            }
            manifest.endEpoch(lengths: lengths, isFinished: run == runs)
        }
        manifest.rowCount = row
        manifest.listHash = "hash of \(firstRow)"
        try directory.save(manifest)
    }
}
