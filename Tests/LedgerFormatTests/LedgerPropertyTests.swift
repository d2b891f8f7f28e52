import Testing

@testable import BroadsideLedgerFormat
@testable import BroadsideRows

/// Campaigns made at random, with kills and power cuts, against a dictionary.
@Suite struct LedgerPropertyTests {
    @Test(arguments: 0..<200)
    func `Replay of random ledgers with crashes equals a dictionary`(seed: Int) throws {
        var model = LedgerModel(seed: UInt64(seed))
        try model.run()
    }
}

/// A campaign of some rows: runs that reserve, send, settle and release, and are cut off.
struct LedgerModel {
    struct Row: Equatable {
        var state = RowState.remaining
        /// Tells verdicts apart: each is given at a time of its own.
        var time: UInt64 = 0
    }

    enum Event {
        case reserve(ChunkReservation)
        case settle(UInt64, Row)
        case release(UInt64)
    }

    /// An event, and where the block ends that tells of it; nil while it is not written.
    struct Entry {
        var event: Event
        var reactor: Int
        var end: UInt64?
    }

    var random: LedgerRandom
    let rowCount: UInt64
    let lostRows: LostResponsePolicy
    let reopens: ReopenedStates
    var manifest = Manifest(
        campaign: testCampaign, identity: testIdentity, firstStartedAtMilliseconds: testTime,
        listPath: nil)
    var model: [UInt64: Row] = [:]
    var entries: [Entry] = []
    var past: [LedgerSegment] = []
    var drafts: [SegmentDraft] = []
    var clock = testTime
    /// Rows that were sent and not refused: with `record` they are never sent again.
    var sent: Set<UInt64> = []

    init(seed: UInt64) {
        random = LedgerRandom(seed: seed)
        rowCount = 1 + random.next(below: 80)
        lostRows = random.next(below: 2) == 0 ? .record : .resend
        reopens = ReopenedStates(rawValue: UInt8(random.next(below: 4)))
    }

    mutating func run() throws {
        for round in 0..<7 {
            try runEpoch(untilDone: round == 6)
        }
        manifest.rowCount = rowCount
        manifest.endEpoch(lengths: drafts.map(\.length), isFinished: true)
        let segments = past + drafts.map(\.segment)
        let verification = try LedgerVerification(checking: segments, manifest: manifest)
        #expect(verification.isFinished && verification.summary.reservedRowCount == rowCount)
    }

    mutating func runEpoch(untilDone: Bool) throws {
        let index = try LedgerIndex(segments: past, manifest: manifest)
        manifest.endsMatch(index)
        let previous = manifest.epochs.last.map { index.segmentLengths(epoch: $0.number) } ?? []
        let epoch = manifest.beginEpoch(atMilliseconds: clock, previousLengths: previous)
        manifest = try Manifest(decoding: manifest.encoded())
        drafts = (0..<2).map {
            SegmentDraft(campaign: testCampaign, epoch: epoch, reactor: UInt16($0))
        }
        var plan = ResumePlan(index: index, lostRows: lostRows, reopens: reopens)
        var life = untilDone ? Int.max : Int(random.next(below: 60))
        while life > 0, let work = try plan.next() {
            switch work {
            case .chunk(let work):
                for (place, disposition) in work.dispositions.enumerated() {
                    check(disposition, of: work.chunk.firstRow + UInt64(place))
                }
                send(work.chunk, work.dispositions, &life)
            case .gap(let gap):
                var row = gap.firstRow
                let end = gap.endRow ?? rowCount
                while row < end && life > 0 {
                    let count = min(1 + random.next(below: 9), end - row)
                    send(testChunk(row, Int(count)), nil, &life)
                    row += count
                }
            }
        }
        if untilDone {
            for draft in drafts { draft.sync() }
            noteWritten()
            return
        }
        try crash()
    }

    func check(_ disposition: RowDisposition, of row: UInt64) {
        let state = model[row]?.state ?? .remaining
        let expected: RowDisposition =
            switch state {
            case .remaining: .send
            case .inDoubt:
                lostRows == .resend || reopens.contains(.unknown) ? .sendAgain : .becomesUnknown
            case .unknown: reopens.contains(state) ? .sendAgain : .settled
            default: reopens.contains(state) ? .send : .settled
            }
        #expect(disposition == expected, "row \(row), \(state)")
    }

    /// Reserves a chunk, syncs it and sends some of its rows.
    mutating func send(
        _ chunk: ChunkReservation, _ dispositions: [RowDisposition]?, _ life: inout Int
    ) {
        let owner = Int(random.next(below: 2))
        clock += random.next(below: 3) == 0 ? 70_000 : 1
        drafts[owner].writer.reserve(chunk, nowMilliseconds: clock)
        note(.reserve(chunk), owner)
        if random.next(below: 8) == 0 && life < 1000 { return }
        drafts[owner].sync()
        noteWritten()
        for place in 0..<chunk.rowCount {
            life -= 1
            if life <= 0 { return }
            let row = chunk.firstRow + UInt64(place)
            let reactor = random.next(below: 4) == 0 ? 1 - owner : owner
            switch dispositions?[place] ?? .send {
            case .settled, .beyondLimit, .notDue: continue
            case .invalid: settle(row, .invalid, reactor)
            case .becomesUnknown: settle(row, .unknown, reactor)
            case .skipped: settle(row, .skipped, reactor)
            case .erased(let mayHaveBeenSent):
                settle(row, mayHaveBeenSent ? .unknown : .skipped, reactor)
            case .send, .sendAgain:
                if lostRows == .record && reopens == [] {
                    #expect(!sent.contains(row), "row \(row) is sent twice")
                }
                sent.insert(row)
                answer(row, reactor, canStayOpen: life < 1000)
            }
            if random.next(below: 5) == 0 {
                drafts[reactor].write()
                if random.next(below: 4) == 0 { drafts[reactor].sync() }
                noteWritten()
            }
        }
    }

    mutating func answer(_ row: UInt64, _ reactor: Int, canStayOpen: Bool) {
        switch random.next(below: canStayOpen ? 10 : 8) {
        case 0..<5:
            clock += random.next(below: 50)
            drafts[reactor].writer.accepted(
                row: row, fingerprint: row, attempts: 1 + Int(row % 20), nowMilliseconds: clock)
            note(.settle(row, Row(state: .accepted, time: clock)), reactor)
        case 5: settle(row, .rejected, reactor)
        case 6: settle(row, .failed, reactor)
        case 7: settle(row, .unknown, reactor)
        case 8:
            drafts[reactor].writer.release(
                row: row, count: 1, attempts: 1, nowMilliseconds: clock)
            note(.release(row), reactor)
            sent.remove(row)
        default: break
        }
    }

    mutating func settle(_ row: UInt64, _ state: RowState, _ reactor: Int) {
        clock += 1
        drafts[reactor].writer.settled(
            row: row, state, token: Array("0123456789abcdef".utf8), at: clock)
        note(.settle(row, Row(state: state, time: clock)), reactor)
    }

    mutating func note(_ event: Event, _ reactor: Int) {
        entries.append(Entry(event: event, reactor: reactor, end: nil))
    }

    /// All that was put in before a write is in that write's one block.
    mutating func noteWritten() {
        for index in entries.indices where entries[index].end == nil {
            let draft = drafts[entries[index].reactor]
            if draft.isWritten { entries[index].end = UInt64(draft.bytes.count) }
        }
    }

    /// Ends the run: by a kill, which leaves all that was written, or by a power cut, which may
    /// take what was not synced, or make it something else.
    mutating func crash() throws {
        let isPowerCut = random.next(below: 2) == 0
        var kept: [UInt64] = []
        for draft in drafts {
            let written = UInt64(draft.bytes.count)
            guard isPowerCut else {
                kept.append(written)
                continue
            }
            let synced = draft.syncedCount
            let cut = synced + random.next(below: written - synced + 1)
            kept.append(cut)
            guard cut < written else { continue }
            switch random.next(below: 3) {
            case 0: draft.bytes.removeSubrange(Int(cut)...)
            case 1: for place in Int(cut)..<Int(written) { draft.bytes[place] ^= 0xFF }
            default: draft.bytes[Int(cut)] ^= 0xFF
            }
        }
        replay(keeping: kept)
        entries = []
        past += drafts.map(\.segment)
        let verdicts = try allVerdicts(LedgerIndex(segments: past, manifest: manifest))
        for row in 0..<rowCount {
            let found = verdicts[row].map { Row(state: $0.state, time: $0.settledAtMilliseconds) }
            #expect((found ?? Row()) == (model[row] ?? Row()), "row \(row)")
        }
    }

    /// The dictionary's own replay of this run, of the events that outlived it.
    mutating func replay(keeping kept: [UInt64]) {
        var open: Set<UInt64> = []
        var settled: Set<UInt64> = []
        func outlived(_ entry: Entry) -> Bool {
            guard let end = entry.end else { return false }
            return end <= kept[entry.reactor]
        }
        for entry in entries where outlived(entry) {
            guard case .reserve(let chunk) = entry.event else { continue }
            for row in chunk.rows {
                let state = model[row]?.state ?? .remaining
                guard !state.isSettled || chunk.reopens.contains(state) else { continue }
                open.insert(row)
                model[row] = Row(state: .inDoubt)
            }
        }
        for entry in entries where outlived(entry) {
            if case .settle(let row, let verdict) = entry.event, open.contains(row) {
                model[row] = verdict
                settled.insert(row)
            }
        }
        for entry in entries where outlived(entry) {
            if case .release(let row) = entry.event, open.contains(row), !settled.contains(row) {
                model[row] = Row()
            }
        }
    }
}

extension Manifest {
    /// Checks that nothing of a run that was taken up got lost since.
    func endsMatch(_ index: LedgerIndex) {
        for epoch in epochs {
            guard let segments = epoch.segments else { continue }
            #expect(index.segmentLengths(epoch: epoch.number) == segments)
        }
    }
}
