import BroadsidePrimitives
public import BroadsideRows
import BroadsideSupport

extension LedgerSalvage {
    /// Segment of the repaired ledger, by the source of its records.
    public enum Part: Sendable {
        /// A copy of a good segment, up to a length.
        case copy(name: String, byteCount: UInt64)
        /// The good records of a segment, rewritten.
        case records(Int)
        /// Reservations that are added to a run.
        case reservations([ChunkReservation])
    }

    /// Returns the segments of the repaired ledger, by run and reactor.
    ///
    /// - Parameter gapChunks: The rows in `gaps`, divided into chunks.
    public func parts(
        gapChunks: [ChunkReservation]
    ) -> [(epoch: UInt32, reactor: UInt16, part: Part)] {
        var parts: [(epoch: UInt32, reactor: UInt16, part: Part)] = []
        for run in runs {
            for index in run.segments {
                let found = segments[index]
                parts.append(
                    (
                        run.number, found.segment.reactor,
                        found.isWhole
                            ? .copy(name: found.segment.name, byteCount: found.end)
                            : .records(index)
                    ))
            }
            let added = addedReservations(to: run, gapChunks: gapChunks)
            guard !added.isEmpty else { continue }
            let last = run.segments.map { segments[$0].segment.reactor }.max()
            let recorded = manifest.recordedLengths[run.number]?.map(\.reactor).max()
            let highest = max(last ?? 0, recorded ?? 0)
            let taken = Set(run.segments.map { segments[$0].segment.reactor })
            let reactor =
                highest < .max ? highest + 1 : (0...UInt16.max).first { !taken.contains($0) } ?? 0
            parts.append((run.number, reactor, .reservations(added)))
        }
        assert(
            Set(parts.map { UInt64($0.epoch) << 16 | UInt64($0.reactor) }).count == parts.count,
            "each segment is written once")
        return parts
    }

    /// Rewrites the good records of a segment.
    ///
    /// - Parameters:
    ///   - index: Index of the segment, as in `Part.records`.
    ///   - writer: Writer of a new segment of the same run and reactor.
    ///   - flush: Called periodically to limit the memory in use.
    /// - Returns: Number of verdicts whose time is lost: they get the time of the last record
    ///   before the loss.
    public func write(
        _ index: Int, into writer: inout LedgerWriter,
        flush: (inout LedgerWriter) throws(LedgerError) -> Void
    ) throws(LedgerError) -> UInt64 {
        let found = segments[index]
        var reader = BlockReader()
        var latest = runs.first { $0.number == found.segment.epoch }?.startedAtMilliseconds ?? 0
        var undatedCount: UInt64 = 0
        _ = try reader.salvage(found.segment, seed: found.seed, end: found.end) {
            (reader, record) throws(LedgerError) in
            let time = record.milliseconds.map { reader.knowsTime ? $0 : latest } ?? latest
            if !reader.knowsTime, record.milliseconds != nil { undatedCount += 1 }
            latest = time
            writer.append(record, of: reader, at: time)
            if writer.backlogIsHigh { try flush(&writer) }
        }
        try flush(&writer)
        return undatedCount
    }

    /// Returns the manifest of the repaired ledger.
    ///
    /// - Parameters:
    ///   - lengths: Lengths of its segments, by run.
    ///   - isFinished: Whether every row is settled.
    public func repairedManifest(
        lengths: [UInt32: [SegmentLength]], isFinished: Bool
    ) -> Manifest {
        var repaired = manifest
        var epochs: [Manifest.Epoch] = []
        for run in runs {
            var epoch =
                manifest.epochs.first { $0.number == run.number }
                ?? Manifest.Epoch(
                    number: run.number, startedAtMilliseconds: run.startedAtMilliseconds)
            epoch.segments = lengths[run.number] ?? []
            epochs.append(epoch)
        }
        repaired.replaceEpochs(epochs, isFinished: isFinished && manifest.isFinished)
        // The size of a pending canary is removed, because the reservations cover all rows, not
        // only the canary's.
        if !repaired.canaryPassed { repaired.canaryRowCount = nil }
        return repaired
    }
}

extension LedgerRecord {
    /// Time of a row's verdict; nil for other records.
    fileprivate var milliseconds: UInt64? {
        switch self {
        case .accepted(_, _, _, let milliseconds): milliseconds
        case .settled(let record): record.milliseconds
        case .reserve, .release, .releaseSome: nil
        }
    }
}

extension LedgerWriter {
    /// Appends a reader's latest record.
    fileprivate mutating func append(
        _ record: LedgerRecord, of reader: borrowing BlockReader, at milliseconds: UInt64
    ) {
        // The writer uses the reader's topic numbers, and needs the name of a topic before its
        // first use.
        let topic = reader.topic
        if topic > 0, !knows(topic: topic) { name(topic: topic, reader.topics[topic]) }
        switch record {
        case .reserve(let chunk):
            reserve(chunk, nowMilliseconds: milliseconds)
        case .release(let row, let count, let attempts):
            release(row: row, count: count, attempts: Int(attempts), nowMilliseconds: milliseconds)
        case .releaseSome(let row, let count, let mask):
            var released = ReleasedRows(count: count)
            for index in 0..<count where reader.isReleased(index, by: mask) {
                released.insert(index)
            }
            release(released, from: row, nowMilliseconds: milliseconds)
        case .accepted(let row, let fingerprint, let attempts, _):
            accepted(
                row: row, fingerprint: fingerprint, attempts: Int(attempts), topic: topic,
                nowMilliseconds: milliseconds)
        case .settled(let record):
            var token: [UInt8] = []
            var isText = false
            switch record.token {
            case .none: break
            case .fingerprint(let fingerprint):
                var uniqueID: [UInt8] = []
                reader.copy(record.reasonText, to: &uniqueID)
                return accepted(
                    row: record.row, fingerprint: fingerprint, attempts: Int(record.attempts),
                    arm: record.arm, uniqueID: uniqueID.rawSpan, topic: topic,
                    nowMilliseconds: milliseconds)
            case .bytes(let range):
                var bytes: [UInt8] = []
                reader.copy(range, to: &bytes)
                HexDigits.append(bytes[...], to: &token)
            case .erased(let range):
                var hash: [UInt8] = []
                reader.copy(range, to: &hash)
                var text: [UInt8] = []
                reader.copy(record.reasonText, to: &text)
                return settled(
                    record, erasedHash: hash.rawSpan, reasonText: text.rawSpan, topic: topic,
                    nowMilliseconds: milliseconds)
            case .text(let range):
                isText = true
                reader.copy(range, to: &token)
            }
            var text: [UInt8] = []
            reader.copy(record.reasonText, to: &text)
            // A reason with a code has no text: an empty span.
            let words = text.rawSpan
            settled(
                row: record.row, state: record.state, status: record.status, reason: record.reason,
                reasonText: words, attempts: Int(record.attempts),
                timestamp: record.timestamp, token: token.rawSpan, tokenIsText: isText,
                arm: record.arm, topic: topic, nowMilliseconds: milliseconds)
        }
    }
}
