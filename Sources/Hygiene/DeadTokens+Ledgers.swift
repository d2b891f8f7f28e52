public import BroadsideAPNs
public import BroadsideLedgerFormat
import BroadsidePrimitives
import BroadsideRows
import BroadsideSupport

/// A ledger whose verdicts on tokens are read twice: first for dead tokens, then for living ones.
public struct VerdictLedger {
    private let manifest: Manifest
    private let segments: [LedgerSegment]
    /// The segments that the first reading validated, each with the offset at which this reading
    /// ended. The second reading ends at the same offset. So both readings see the same records,
    /// even if a run continues to write.
    private var sound: [ValidatedSegment] = []
    /// Tally of the responses in the validated part of the segments.
    public fileprivate(set) var responses = ResponseTally()

    /// Whether accepted rows got no response. A legacy gateway accepts by silence. It also accepts
    /// notifications for removed apps, which only the feedback service reports (Apple, "Binary
    /// Provider API"). So the silence proves nothing about a token.
    public var acceptsBySilence: Bool { manifest.identity.acceptsBySilence }

    /// App and environment that the verdicts apply to, as far as they are the same for all rows.
    public var scope: TokenScope { TokenScope(manifest.identity) }

    /// Creates a ledger from its manifest and segments.
    public init(manifest: Manifest, segments: [LedgerSegment]) {
        self.manifest = manifest
        self.segments = segments.sorted { ($0.epoch, $0.reactor) < ($1.epoch, $1.reactor) }
    }

    /// Passes each verdict to `body`, and validates the ledger at the same time.
    ///
    /// Accepted and rejected rows are never reopened. Each such record is therefore a final
    /// verdict, and no state of rows or chunks is needed.
    ///
    /// - Parameter skipsAccepted: Whether to omit plain records of accepted rows.
    fileprivate mutating func readFirst(
        skipsAccepted: Bool = false,
        _ body: (inout BlockReader, LedgerRecord) throws(LedgerError) -> Void
    ) throws(LedgerError) {
        sound = try manifest.validate(segments, skipsAccepted: skipsAccepted, body)
    }

    /// Passes each verdict a second time: accepted rows to `accepted` in batches of one topic, all
    /// other rows to `body`. The order differs from that in the ledger.
    fileprivate func readAgain(
        accepted: (borrowing AcceptedBatch) -> Void,
        _ body: (borrowing BlockReader, SettledRecord) -> Void
    ) throws(LedgerError) {
        assert(sound.count == segments.count, "the first reading validated each segment")
        var reader = BlockReader()
        var batch = AcceptedBatch()
        for segment in sound {
            reader.open(segment.segment, seed: segment.seed, range: segment.blocks, clock: 0)
            scan: while true {
                switch try reader.nextBlock() {
                case .end: break scan
                case .bad: throw reader.changedFault
                case .block: try Self.read(&reader, &batch, accepted: accepted, body)
                }
            }
        }
        accepted(batch)
    }

    /// Passes the verdicts of a block to `accepted` and `body`. Accepted rows that are still in the
    /// batch at the end of the block are passed later.
    private static func read(
        _ reader: inout BlockReader, _ batch: inout AcceptedBatch,
        accepted: (borrowing AcceptedBatch) -> Void,
        _ body: (borrowing BlockReader, SettledRecord) -> Void
    ) throws(LedgerError) {
        while true {
            passOtherTopic(reader, &batch, accepted: accepted)
            reader.takeAccepted(into: &batch)
            if batch.isFull {
                accepted(batch)
                batch.removeAll()
                continue
            }
            switch try reader.nextRecord() {
            case nil: return
            case .accepted(_, let fingerprint, _, let milliseconds):
                passOtherTopic(reader, &batch, accepted: accepted)
                batch.append(fingerprint, milliseconds)
            case .settled(let settled):
                if settled.state == .accepted, case .fingerprint(let fingerprint) = settled.token {
                    passOtherTopic(reader, &batch, accepted: accepted)
                    batch.append(fingerprint, settled.milliseconds)
                } else {
                    body(reader, settled)
                }
            case .reserve, .release, .releaseSome: break
            }
        }
    }

    /// Passes the rows of a batch to `accepted` if the reader's next rows have another topic.
    private static func passOtherTopic(
        _ reader: borrowing BlockReader, _ batch: inout AcceptedBatch,
        accepted: (borrowing AcceptedBatch) -> Void
    ) {
        guard batch.topic != reader.topic else { return }
        if batch.count > 0 { accepted(batch) }
        batch.removeAll()
        batch.begin(topic: reader.topic, of: reader.topics)
    }

    /// Passes the accepted rows of the ledger to `accepted`, and validates the ledger at the same
    /// time. All other verdicts are ignored.
    public mutating func readAccepted(
        _ accepted: (borrowing AcceptedBatch) -> Void
    ) throws(LedgerError) {
        var batch = AcceptedBatch()
        try readFirst { (reader, record) throws(LedgerError) in
            switch record {
            case .accepted(_, let fingerprint, _, let milliseconds):
                batch.append(fingerprint, milliseconds)
            case .settled(let settled):
                guard settled.state == .accepted, case .fingerprint(let fingerprint) = settled.token
                else { return }
                batch.append(fingerprint, settled.milliseconds)
            case .reserve, .release, .releaseSome: return
            }
            repeat {
                if batch.isFull {
                    accepted(batch)
                    batch.removeAll()
                }
                reader.takeAccepted(into: &batch)
            } while batch.isFull
        }
        accepted(batch)
    }
}

extension DeadTokens {
    /// Inserts the tokens that a ledger reports as dead.
    ///
    /// - Parameters:
    ///   - reasons: Reasons that report a token as dead.
    ///   - time: Range of settlement times to include, milliseconds since 1970; nil: all.
    ///   - countsResponses: Whether to update the ledger's `responses`.
    ///   - own: App and environment of the tokens in question. Verdicts for other apps or
    ///     environments are ignored. nil: all verdicts count.
    /// - Throws: Errors of reading the ledger.
    public mutating func insertDead(
        of ledger: inout VerdictLedger, reasons: Set<Reason>, settledIn time: Range<UInt64>? = nil,
        countsResponses: Bool = true, among own: TokenScope? = nil
    ) throws(LedgerError) {
        let isDeadly = deadlyTable(reasons)
        let common = ledger.scope
        if own.map(common.mayBe) ?? true { _ = number(of: common) }
        var scopes = TopicScopes(common, among: own)
        var token = TokenBytes()
        var responses = ResponseTally()
        defer { ledger.responses = responses }
        try ledger.readFirst(skipsAccepted: !countsResponses) {
            (reader, record) throws(LedgerError) in
            responses.take(record)
            guard case .settled(let settled) = record, settled.state == .rejected,
                isDeadly[Int(settled.reason)], case .bytes(let range) = settled.token,
                time?.contains(settled.milliseconds) ?? true
            else { return }
            let scope = scopes.number(of: reader.topic, reader.topics[reader.topic], in: &self)
            guard let scope else { return }
            token.load(range, of: reader)
            insert(
                bytes: token.bytes.rawSpan, fingerprint: token.fingerprint,
                reason: settled.reason, settledAt: settled.milliseconds,
                diedAt: settled.timestamp ?? settled.milliseconds, scope: scope)
        }
    }

    /// Marks a dead token as rescued if a verdict of the same time or later shows that it is alive:
    /// APNs accepted the token, or refused it for a reason that is not in `reasons`. Neither a lost
    /// response nor the silence of a legacy gateway proves anything about a token.
    ///
    /// - Parameters:
    ///   - reasons: Reasons that report a token as dead.
    ///   - end: Only verdicts that were settled before this time count, milliseconds since 1970;
    ///     nil: all count.
    ///   - accepted: Also receives all accepted rows.
    /// - Throws: Errors of reading the ledger.
    public mutating func rescueLiving(
        of ledger: VerdictLedger, reasons: Set<Reason>, settledBefore end: UInt64? = nil,
        accepted: (borrowing AcceptedBatch) -> Void = { _ in }
    ) throws(LedgerError) {
        let isDeadly = deadlyTable(reasons)
        let isSilent = ledger.acceptsBySilence
        var scopes = TopicScopes(ledger.scope, among: nil)
        let end = end ?? .max
        var token = TokenBytes()
        try ledger.readAgain(
            accepted: { batch in
                accepted(batch)
                guard !isSilent, batch.count > 0,
                    let scope = scopes.number(of: batch.topic, batch.topicName, in: &self)
                else { return }
                rescue(batch, settledBefore: end, scope: scope)
            },
            { (reader, settled) in
                switch settled.state {
                case .accepted where isSilent: return
                case .accepted: break
                case .rejected where isDeadly[Int(settled.reason)]: return
                case .rejected: break
                default: return
                }
                guard settled.milliseconds < end, case .bytes(let range) = settled.token,
                    let scope = scopes.number(
                        of: reader.topic, reader.topics[reader.topic], in: &self)
                else { return }
                token.load(range, of: reader)
                rescue(
                    bytes: token.bytes.rawSpan, fingerprint: token.fingerprint,
                    settledAt: settled.milliseconds, scope: scope)
            })
    }

    private mutating func rescue(
        _ batch: borrowing AcceptedBatch, settledBefore end: UInt64, scope: UInt32
    ) {
        for index in 0..<batch.count where batch.milliseconds(index) < end {
            rescue(
                fingerprint: batch.fingerprint(index), settledAt: batch.milliseconds(index),
                scope: scope)
        }
    }

    private func deadlyTable(_ reasons: Set<Reason>) -> [Bool] {
        var table = [Bool](repeating: false, count: 256)
        for reason in reasons { table[Int(reason.rawValue)] = true }
        return table
    }
}

/// Scopes of the topics that are found in one reading of a ledger.
private struct TopicScopes {
    /// App and environment, as far as they are the same for all rows.
    private let common: TokenScope
    /// Scope that a topic's scope must match; nil if all topics are wanted.
    private let own: TokenScope?
    /// Maps the reader's number of each topic to the number of the topic's scope in `DeadTokens`,
    /// or to nil if the topic is not wanted.
    private var numbers: [UInt16: UInt32?] = [:]
    /// The topic of the latest call, which is nearly always the topic of the next call, too.
    private var last: (topic: UInt16, number: UInt32?)?

    init(_ common: TokenScope, among own: TokenScope?) {
        self.common = common
        self.own = own
    }

    /// Returns the number of a row's scope; nil if the row's verdict is to be ignored.
    ///
    /// - Parameters:
    ///   - topic: Number of the topic; 0 if none is recorded.
    ///   - name: Name of the topic; empty if none is recorded.
    mutating func number(
        of topic: UInt16, _ name: [UInt8], in dead: inout DeadTokens
    ) -> UInt32? {
        if let last, last.topic == topic { return last.number }
        let number = numbers[topic] ?? find(name, in: &dead)
        numbers[topic] = .some(number)
        last = (topic, number)
        return number
    }

    private func find(_ name: [UInt8], in dead: inout DeadTokens) -> UInt32? {
        var scope = common
        if !name.isEmpty { scope.topic = String(decoding: name, as: UTF8.self) }
        guard own.map(scope.mayBe) ?? true else { return nil }
        return dead.number(of: scope)
    }
}

/// The token of a record: its bytes, and the fingerprint of its digits.
private struct TokenBytes {
    private(set) var bytes: [UInt8] = []
    private var digits: [UInt8] = []

    mutating func load(_ range: Range<Int>, of reader: borrowing BlockReader) {
        bytes.removeAll(keepingCapacity: true)
        reader.copy(range, to: &bytes)
        digits.removeAll(keepingCapacity: true)
        for byte in bytes {
            digits.append(HexDigits.digit(byte >> 4))
            digits.append(HexDigits.digit(byte & 15))
        }
    }

    var fingerprint: UInt64 { TokenText.fingerprint(digits.rawSpan) }
}
