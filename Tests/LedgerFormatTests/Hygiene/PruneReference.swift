import BroadsideTestSupport

@testable import BroadsideAPNs
@testable import BroadsideHygiene
@testable import BroadsideLedgerFormat
@testable import BroadsideRows

/// A verdict on a token, as tests lay it down in ledgers.
struct TestVerdict {
    var token: String
    var state = RowState.accepted
    var reason: Reason?
    var settledAt = testTime
    var timestamp: UInt64?
    /// Topic that the row names; nil: none is recorded.
    var topic: String?
}

/// A ledger of one run that holds these verdicts, a row each.
func verdictLedger(
    _ verdicts: [TestVerdict], attempts: Int = 1, wireProtocol: String? = nil,
    topic: String? = testIdentity.topic, environment: String = testIdentity.environment
) -> VerdictLedger {
    var identity = testIdentity
    identity.wireProtocol = wireProtocol
    identity.topic = topic
    identity.environment = environment
    var manifest = Manifest(
        campaign: testCampaign, identity: identity, firstStartedAtMilliseconds: testTime,
        listPath: nil)
    let draft = SegmentDraft(
        campaign: testCampaign,
        epoch: manifest.beginEpoch(atMilliseconds: testTime), reactor: 0)
    if !verdicts.isEmpty {
        draft.writer.reserve(testChunk(0, verdicts.count), nowMilliseconds: testTime)
    }
    var topics: [String] = []
    for (row, verdict) in verdicts.enumerated() {
        let digits = Array(verdict.token.utf8)
        var number: UInt16 = 0
        if let name = verdict.topic {
            number = UInt16((topics.firstIndex(of: name) ?? topics.count) + 1)
            if number > topics.count {
                topics.append(name)
                draft.writer.name(topic: number, Array(name.utf8))
            }
        }
        if verdict.state == .accepted {
            draft.writer.accepted(
                row: UInt64(row), fingerprint: TokenText.fingerprint(digits.span.bytes),
                attempts: attempts, topic: number, nowMilliseconds: verdict.settledAt)
        } else {
            draft.writer.settled(
                row: UInt64(row), state: verdict.state, status: 410,
                reason: verdict.reason?.rawValue ?? 0, attempts: attempts,
                timestamp: verdict.timestamp, token: digits.span.bytes, tokenIsText: false,
                topic: number, nowMilliseconds: verdict.settledAt)
        }
        draft.write()
    }
    draft.sync()
    return VerdictLedger(manifest: manifest, segments: [draft.segment])
}

/// The dead tokens of ledgers.
func deadTokens(
    _ ledgers: [VerdictLedger], reasons: Set<Reason> = [.unregistered, .expiredToken]
) throws -> DeadTokens {
    var dead = DeadTokens()
    var read: [VerdictLedger] = []
    for var ledger in ledgers {
        try dead.insertDead(of: &ledger, reasons: reasons)
        read.append(ledger)
    }
    dead.seal()
    for ledger in read { try dead.rescueLiving(of: ledger, reasons: reasons) }
    dead.seal()
    return dead
}

/// Since when a token is dead; nil where it lives.
func diedAt(_ token: String, _ dead: borrowing DeadTokens) -> UInt64? {
    let digits = Array(token.utf8)
    let fingerprint = TokenText.fingerprint(digits.span.bytes)
    let record = dead.find(digits: digits.span.bytes, fingerprint: fingerprint)
    guard dead.mayContain(fingerprint) else {
        precondition(record == nil, "the filter knows every dead token")
        return nil
    }
    return record?.diedAt
}

/// A token of 64 digits of its own.
func testToken(_ number: Int) -> String {
    var random = SeededRandom(seed: UInt64(number))
    return (0..<4).map { _ in
        let digits = String(random.next(), radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }.joined()
}

/// Prunes a list that comes by in windows of a size that grows where a row needs it.
func prune(
    _ list: [UInt8], dead: consuming DeadTokens, layout: RowLayout, windowSize: Int
) -> (kept: [UInt8], removed: [UInt8], counts: PruneCounts) {
    var pruner = ListPruner(
        dead: dead, layout: layout, collectsRemoved: true, nowMilliseconds: testTime)
    var kept: [UInt8] = []
    var removed: [UInt8] = []
    var offset = 0
    var size = windowSize
    while offset < list.count {
        let end = min(offset + size, list.count)
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: end - offset, alignment: 1)
        defer { memory.deallocate() }
        memory.copyBytes(from: list[offset..<end])
        let outcome = pruner.process(memory, isLast: end == list.count, removed: &removed)
        kept += memory[..<outcome.keptCount]
        offset += outcome.consumedCount
        size = outcome.consumedCount == 0 ? size * 2 : windowSize
    }
    return (kept, removed, pruner.counts)
}
