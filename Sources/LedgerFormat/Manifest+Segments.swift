extension Manifest {
    /// Numbers of the runs whose segments certainly have their headers.
    var headedRuns: Set<UInt32> { Set(epochs.filter(\.mustHaveSegments).map(\.number)) }

    /// Checks that each segment belongs to a run, that no segment occurs twice and that none is
    /// missing.
    ///
    /// - Parameter segments: All segments of the ledger, in any order.
    /// - Throws: `strangeSegment` or `missingSegment`.
    package func checkPresence(of segments: [LedgerSegment]) throws(LedgerError) {
        let known = Set(epochs.map(\.number))
        for segment in segments where !known.contains(segment.epoch) {
            throw LedgerError(.strangeSegment, segment: segment.name)
        }
        for epoch in epochs {
            guard let missing = epoch.missingReactors(among: segments).first else { continue }
            throw LedgerError(
                .missingSegment,
                segment: LedgerFormat.segmentName(epoch: epoch.number, reactor: missing))
        }
        try LedgerIndex.checkPresence(segments, recordedLengths)
    }

    /// Checks all segments of the ledger, and passes each record to `body`.
    ///
    /// - Parameters:
    ///   - segments: All segments, in the order in which they are to be read.
    ///   - skipsAccepted: Whether `body` does not need plain records of accepted rows.
    ///   - body: Receives each record, with the reader positioned on it.
    /// - Returns: The sound part of each segment, in the same order.
    /// - Throws: Errors of `checkPresence`, and the first fault of a segment.
    package func validate(
        _ segments: [LedgerSegment], skipsAccepted: Bool,
        _ body: (inout BlockReader, LedgerRecord) throws(LedgerError) -> Void
    ) throws(LedgerError) -> [ValidatedSegment] {
        try checkPresence(of: segments)
        let (lengths, headed) = (recordedLengths, headedRuns)
        var reader = BlockReader()
        var sound: [ValidatedSegment] = []
        for segment in segments {
            let recorded = lengths[segment.epoch].map { lengths in
                lengths.first { $0.reactor == segment.reactor }?.byteCount ?? 0
            }
            sound.append(
                try ValidatedSegment(
                    checking: segment, campaign: segmentNumber, recordedByteCount: recorded,
                    hasHeader: headed.contains(segment.epoch), skipsAccepted: skipsAccepted,
                    with: &reader, body))
        }
        return sound
    }
}

extension Manifest.Epoch {
    /// Whether the run certainly reserved nothing, because it ended before its segments were on
    /// disk.
    package var hasReservedNothing: Bool { segments == nil && segmentsAreMade == false }

    /// Whether each segment of the run must exist with its header. This is the case if the run
    /// created all its segments and did not end orderly.
    var mustHaveSegments: Bool { segments == nil && segmentsAreMade == true }

    /// Returns the reactors whose segments are missing, in a run that did not end orderly.
    /// Broadside versions that do not record `segmentsAreMade` first create all segments, and then
    /// write to them.
    func missingReactors(among all: [LedgerSegment]) -> [UInt16] {
        guard segments == nil, !hasReservedNothing, let segmentCount else { return [] }
        let own = all.filter { $0.epoch == number }
        guard mustHaveSegments || own.contains(where: { $0.bytes.byteCount > 0 }) else { return [] }
        let there = Set(own.map(\.reactor))
        return (0..<segmentCount).filter { !there.contains($0) }
    }
}

extension LedgerIndex {
    /// Reads the segments of a manifest's runs.
    ///
    /// - Throws: Errors of the other initializer, and `strangeSegment`.
    public init(segments: [LedgerSegment], manifest: Manifest) throws(LedgerError) {
        try manifest.checkPresence(of: segments)
        try self.init(
            present: segments, campaign: manifest.segmentNumber,
            recordedLengths: manifest.recordedLengths, headedRuns: manifest.headedRuns,
            rows: manifest.rows)
        erasedRows = manifest.erasedRows ?? ErasedRows()
    }
}
