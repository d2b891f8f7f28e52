import BroadsideRows

/// Reservation with its location.
struct LocatedReservation {
    var chunk: ChunkReservation
    var segment: UInt32
    var offset: UInt64
}

extension LedgerIndex {
    /// Checks that no segment of an ended run is missing, and that no segment occurs twice.
    static func checkPresence(
        _ segments: [LedgerSegment], _ recordedLengths: [UInt32: [SegmentLength]]
    ) throws(LedgerError) {
        var names: Set<String> = []
        for name in segments.map(\.name) where !names.insert(name).inserted {
            throw LedgerError(.strangeSegment, segment: name, detail: "given twice")
        }
        for epoch in recordedLengths.keys.sorted() {
            for length in recordedLengths[epoch]! where length.byteCount > 0 {
                let name = LedgerFormat.segmentName(epoch: epoch, reactor: length.reactor)
                guard names.contains(name) else {
                    throw LedgerError(.missingSegment, segment: name)
                }
            }
        }
    }

    /// Sorts reservations into chunks; each run may reserve a chunk once.
    mutating func tabulate(_ found: inout [LocatedReservation]) throws(LedgerError) {
        // Segments are sorted by epoch, so their index orders reservations of one chunk by run.
        found.sort {
            ($0.chunk.firstRow, $0.segment, $0.offset)
                < ($1.chunk.firstRow, $1.segment, $1.offset)
        }
        reservations.reserveCapacity(found.count)
        for placed in found {
            let epoch = segments[Int(placed.segment)].segment.epoch
            func fault(_ code: LedgerError.Code) -> LedgerError {
                LedgerError(
                    code, segment: segments[Int(placed.segment)].segment.name,
                    offset: placed.offset, detail: "row \(placed.chunk.firstRow)")
            }
            let reservation = Reservation(epoch: epoch, reopens: placed.chunk.reopens)
            if let last = chunkTable.indices.last, chunkTable[last].endRow > placed.chunk.firstRow {
                let previous = reservations[reservations.count - 1]
                if previous.epoch == epoch { throw fault(.overlappingReservations) }
                if !placed.chunk.hasSameBounds(as: chunk(last)) { throw fault(.changedChunk) }
                chunkTable[last].reservationCount += 1
                if placed.chunk.hash == ChunkReservation.unknownHash {
                    chunkTable[last].hash = placed.chunk.hash
                }
            } else {
                let previous = chunkTable.isEmpty ? nil : chunk(chunkTable.count - 1)
                if !placed.chunk.follows(previous, within: rows.part) {
                    throw fault(.malformedRecord)
                }
                chunkTable.append(
                    Chunk(
                        firstRow: placed.chunk.firstRow, byteOffset: placed.chunk.byteOffset,
                        byteCount: placed.chunk.byteCount, firstLine: placed.chunk.firstLine,
                        hash: placed.chunk.hash, rowCount: UInt32(placed.chunk.rowCount),
                        lineCount: UInt32(placed.chunk.lineCount),
                        firstReservation: UInt32(reservations.count), reservationCount: 1))
            }
            reservations.append(reservation)
        }
    }

    /// Finds, for each chunk, the blocks of a segment that have records of the chunk.
    mutating func collectExtents(
        ofSegment index: Int, with reader: inout BlockReader
    ) throws(LedgerError) {
        let sound = segments[index]
        reader.open(sound.segment, seed: sound.seed, range: sound.blocks, clock: 0)
        var last = 0
        while true {
            let clock = reader.clock
            switch try reader.nextBlock() {
            case .end: return
            case .bad:
                throw reader.changedFault
            case .block: break
            }
            // Rows of the chunk to whose extents this block was last added.
            var noted: Range<UInt64> = 0..<0
            while true {
                let rows: Range<UInt64>
                if let record = reader.nextAccepted() {
                    if noted.contains(record.row) { continue }
                    rows = record.row..<(record.row + 1)
                } else if let record = try reader.nextRecord() {
                    rows = record.rows
                } else {
                    break
                }
                if last >= chunkTable.count || chunkTable[last].firstRow > rows.lowerBound
                    || chunkTable[last].endRow <= rows.lowerBound
                {
                    guard let found = chunkIndex(ofRow: rows.lowerBound) else {
                        throw reader.fault(
                            .unreservedRow, at: reader.recordPosition, "row \(rows.lowerBound)")
                    }
                    last = found
                }
                guard rows.upperBound <= chunkTable[last].endRow else {
                    throw reader.fault(
                        .unreservedRow, at: reader.recordPosition, "row \(rows.upperBound - 1)")
                }
                try note(chunk: last, segment: index, clock: clock, reader)
                noted = chunkTable[last].firstRow..<chunkTable[last].endRow
            }
        }
    }

    /// Adds the reader's current block to the extents of a chunk.
    private mutating func note(
        chunk: Int, segment: Int, clock: UInt64, _ reader: borrowing BlockReader
    ) throws(LedgerError) {
        let lastExtent = Int(chunkTable[chunk].lastExtent)
        let end = reader.position
        if lastExtent >= 0 && extents[lastExtent].segment == UInt32(segment) {
            if extents[lastExtent].end == end { return }
            let gap = reader.blockOffset - extents[lastExtent].end
            if gap <= LedgerIndex.extentGapByteCountMax
                || chunkTable[chunk].extentCount >= LedgerIndex.extentsPerSegmentMax
            {
                extents[lastExtent].end = end
                assert(extents[lastExtent].start < end, "an extent only grows")
                return
            }
            chunkTable[chunk].extentCount += 1
        } else {
            let epoch = segments[segment].segment.epoch
            guard reservations(ofChunk: chunk).contains(where: { $0.epoch == epoch }) else {
                throw reader.fault(
                    .unreservedRow, at: reader.recordPosition,
                    "row \(chunkTable[chunk].firstRow) and on, in run \(epoch)")
            }
            chunkTable[chunk].extentCount = 1
        }
        assert(reader.blockOffset < end, "an extent holds blocks")
        let added = Int32(extents.count)
        extents.append(
            Extent(segment: UInt32(segment), start: reader.blockOffset, end: end, clock: clock))
        if lastExtent >= 0 { extents[lastExtent].next = added }
        if lastExtent < 0 { chunkTable[chunk].firstExtent = added }
        chunkTable[chunk].lastExtent = added
    }

    /// Returns the number of the latest run that reserved a chunk.
    func latestRun(ofChunk index: Int) -> UInt32 {
        guard let latest = reservations(ofChunk: index).last else {
            preconditionFailure("a chunk has a reservation")
        }
        return latest.epoch
    }

    /// Returns the reservations of a chunk, in the order of runs.
    func reservations(ofChunk index: Int) -> ArraySlice<Reservation> {
        let start = Int(chunkTable[index].firstReservation)
        assert(
            start + Int(chunkTable[index].reservationCount) <= reservations.count,
            "a chunk's reservations are in the table")
        return reservations[start..<(start + Int(chunkTable[index].reservationCount))]
    }
}

extension LedgerRecord {
    /// Rows that the record concerns.
    var rows: Range<UInt64> {
        switch self {
        case .accepted(let row, _, _, _): row..<(row + 1)
        case .settled(let record): record.row..<(record.row + 1)
        case .reserve(let chunk): chunk.rows
        case .release(let row, let count, _), .releaseSome(let row, let count, _):
            row..<(row + UInt64(count))
        }
    }
}
