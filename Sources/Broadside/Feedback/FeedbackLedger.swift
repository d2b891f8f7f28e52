internal import BroadsideAPNs
internal import BroadsideLedgerFormat
import BroadsideLedgers
internal import BroadsideLegacyGateway
internal import BroadsideRows
import BroadsideSupport
import BroadsideTLS
internal import Glibc

/// Ledger of the list that a legacy feedback service returns. Each tuple is a row that is
/// `rejected` as Unregistered, with the service's own time. `prune` can use this ledger like any
/// other.
final class FeedbackLedger {
    private let directory: LedgerDirectory
    private var manifest: Manifest
    private var writer: LedgerWriter
    private let descriptor: Int32
    private let path: String
    /// Limit on recorded tuples. No app has this many dead tokens. The limit keeps a service that
    /// never stops sending from filling the disk.
    static let tuplesLimit: UInt64 = 10_000_000

    private let tuplesLimit: UInt64
    /// Number of tuples recorded so far.
    private(set) var count: UInt64 = 0
    private var byteOffset: UInt64 = 0

    init(
        path: String, now: Now, tuplesLimit: UInt64 = FeedbackLedger.tuplesLimit
    ) throws(BroadsideError) {
        self.path = path
        self.tuplesLimit = tuplesLimit
        directory = try LedgerDirectory.create(path, canResume: false)
        let number = randomBytes(8).reduce(0) { $0 << 8 | UInt64($1) }
        manifest = Manifest(
            campaign: number,
            identity: CampaignIdentity(
                listByteCount: nil, listFormat: "feedback", columns: [], payloadSHA256: "",
                topic: nil, pushType: "", priority: 10, expiration: nil, collapseID: nil,
                environment: "", shard: nil, suppressSHA256: nil,
                wireProtocol: CampaignIdentity.feedbackProtocol),
            firstStartedAtMilliseconds: now.wallMilliseconds, listPath: nil)
        let epoch = manifest.beginEpoch(atMilliseconds: now.wallMilliseconds)
        try directory.save(manifest)
        writer = LedgerWriter(campaign: number, epoch: epoch, reactor: 0)
        descriptor = try directory.createSegment(epoch: epoch, reactor: 0)
        try directory.syncDirectory()
    }

    deinit { close(descriptor) }

    /// Records tuples durably. The service removes tuples once they are read, so the ledger has the
    /// only copy.
    ///
    /// - Throws: Exit code 1 if the tuples exceed `tuplesLimit`, after recording as many as the
    ///   limit permits.
    func append(_ tuples: [FeedbackTuple], now: Now) throws(BroadsideError) {
        let room = Int(tuplesLimit - count)
        if tuples.count > room {
            try append(Array(tuples[..<room]), now: now)
            throw BroadsideError(
                "the service sent more than \(grouped(tuplesLimit)) tokens, and "
                    + "the rest are not recorded: look at --ledger \(path) to see whether "
                    + "this is a feedback service", exitCode: 1)
        }
        guard !tuples.isEmpty else { return }
        let byteCount = tuples.reduce(0) { $0 + 6 + UInt64($1.token.count) }
        writer.reserve(
            ChunkReservation(
                firstRow: count, rowCount: tuples.count, byteOffset: byteOffset,
                byteCount: byteCount, firstLine: count + 1, lineCount: UInt64(tuples.count),
                hash: 0, reopens: []),
            nowMilliseconds: now.wallMilliseconds)
        byteOffset += byteCount
        for tuple in tuples {
            let milliseconds = UInt64(tuple.unixSeconds) * 1000
            let digits = Array(hexadecimal(tuple.token).utf8)
            // The service's time is recorded, because it decides between ledgers. `prune` keeps a
            // token that was reported dead on Monday and accepted on Tuesday, regardless of when
            // the service was read.
            writer.settled(
                row: count, state: .rejected, status: 410, reason: Reason.unregistered.rawValue,
                attempts: 0, timestamp: milliseconds, token: digits.rawSpan,
                tokenIsText: false, nowMilliseconds: milliseconds)
            count += 1
        }
        assert(count <= tuplesLimit, "so many tokens are recorded at most")
        try write()
    }

    private func write() throws(BroadsideError) {
        guard writer.writePending(to: descriptor), fsync(descriptor) == 0 else { throw failure() }
        writer.syncCompleted(upTo: writer.writtenPosition)
    }

    private func failure() -> BroadsideError {
        BroadsideError(
            option:
                "ledger",
            "\(path): \(describe(errno: errno)): \(count) tokens were recorded before this error",
            exitCode: 5)
    }

    /// Closes the ledger.
    func finish() throws(BroadsideError) {
        try write()
        manifest.rowCount = count
        manifest.endEpoch(
            lengths: [SegmentLength(reactor: 0, byteCount: writer.writtenPosition)],
            isFinished: true)
        try directory.save(manifest)
    }

    /// Deletes a ledger in which nothing was recorded.
    func discard() {
        for name in [
            LedgerFormat.segmentName(epoch: 1, reactor: 0), LedgerDirectory.manifestName,
            LedgerDirectory.manifestCopyName, "lock",
        ] {
            SystemCall.unlink("\(path)/\(name)")
        }
        SystemCall.rmdir(path)
    }
}
