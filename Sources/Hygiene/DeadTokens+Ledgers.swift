public import BroadsideAPNs
public import BroadsideLedgerFormat
import BroadsidePrimitives
import BroadsideRows
import BroadsideSupport

/// A ledger whose verdicts on tokens are read, twice: first for the dead, then for the living.
public struct VerdictLedger {
    private let manifest: Manifest
    private let segments: [LedgerSegment]
    /// The segments as far as the first reading found them sound; the second reads no further, so
    /// that both see the same while a run goes on writing.
    private var sound: [ValidatedSegment] = []
    /// What its responses say, as far as it was read.
    public fileprivate(set) var responses = ResponseTally()

    /// Whether an acceptance in it is the silence of a legacy gateway. That gateway takes
    /// notifications for apps that are gone, too, and leaves it to the feedback service to tell (Apple,
    /// "Binary Provider API"), so it proves nothing of a token.
    public var acceptsBySilence: Bool { manifest.identity.acceptsBySilence }

    /// Whose tokens its verdicts are about.
    public var scope: TokenScope { TokenScope(manifest.identity) }

    /// Names a ledger.
    public init(manifest: Manifest, segments: [LedgerSegment]) {
        self.manifest = manifest
        self.segments = segments.sorted { ($0.epoch, $0.reactor) < ($1.epoch, $1.reactor) }
    }

    /// Hands each verdict to `body`, and checks the ledger meanwhile.
    ///
    /// Accepted and rejected rows are never opened again, so that each such record is a verdict by
    /// itself, and nothing about rows or chunks needs to be held.
    ///
    /// - Parameter skipsAccepted: Whether `body` has no use for plain records of accepted rows.
    fileprivate mutating func readFirst(
        skipsAccepted: Bool = false,
        _ body: (inout BlockReader, LedgerRecord) throws(LedgerError) -> Void
    ) throws(LedgerError) {
        let known = Set(manifest.epochs.map(\.number))
        for segment in segments where !known.contains(segment.epoch) {
            throw LedgerError(.strangeSegment, segment: segment.name)
        }
        let lengths = manifest.recordedLengths
        try LedgerIndex.checkPresence(segments, lengths)
        var reader = BlockReader()
        sound = []
        for segment in segments {
            let recorded = lengths[segment.epoch].map { lengths in
                lengths.first { $0.reactor == segment.reactor }?.byteCount ?? 0
            }
            sound.append(
                try ValidatedSegment(
                    checking: segment, campaign: manifest.segmentNumber,
                    recordedByteCount: recorded, skipsAccepted: skipsAccepted, with: &reader, body))
        }
    }

    /// Hands out each verdict once more: accepted rows in batches, the others to `body`. Their order is not
    /// that of the ledger.
    fileprivate func readAgain(
        accepted: (borrowing AcceptedBatch) -> Void,
        _ body: (borrowing BlockReader, SettledRecord) -> Void
    ) throws(LedgerError) {
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

    /// Hands out the verdicts of a block. What is in the batch in the end is not handed out yet.
    private static func read(
        _ reader: inout BlockReader, _ batch: inout AcceptedBatch,
        accepted: (borrowing AcceptedBatch) -> Void,
        _ body: (borrowing BlockReader, SettledRecord) -> Void
    ) throws(LedgerError) {
        while true {
            reader.takeAccepted(into: &batch)
            if batch.isFull {
                accepted(batch)
                batch.removeAll()
                continue
            }
            switch try reader.nextRecord() {
            case nil: return
            case .accepted(_, let fingerprint, _, let milliseconds):
                batch.append(fingerprint, milliseconds)
            case .settled(let settled):
                if settled.state == .accepted, case .fingerprint(let fingerprint) = settled.token {
                    batch.append(fingerprint, settled.milliseconds)
                } else {
                    body(reader, settled)
                }
            case .reserve, .release: break
            }
        }
    }

    /// Hands out the accepted rows of a ledger whose other verdicts are of no interest, and checks it
    /// meanwhile.
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
            case .reserve, .release: return
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
    /// Notes the tokens that a ledger calls dead.
    ///
    /// - Parameters:
    ///   - reasons: the reasons that do.
    ///   - time: only verdicts that were settled in it count, milliseconds since 1970.
    ///   - countsResponses: whether `responses` are wanted.
    /// - Throws: what reading the ledger throws.
    public mutating func insertDead(
        of ledger: inout VerdictLedger, reasons: Set<Reason>, settledIn time: Range<UInt64>? = nil,
        countsResponses: Bool = true
    ) throws(LedgerError) {
        let isDeadly = deadlyTable(reasons)
        let scope = number(of: ledger.scope)
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
            token.load(range, of: reader)
            insert(
                bytes: token.bytes.rawSpan, fingerprint: token.fingerprint,
                reason: settled.reason, settledAt: settled.milliseconds,
                diedAt: settled.timestamp ?? settled.milliseconds, scope: scope)
        }
    }

    /// Rescues tokens by a ledger's other verdicts: those that APNs accepted or refused for another
    /// reason at the same time or later. An answer that never came says nothing about a token, and nor
    /// does the silence of a legacy gateway.
    ///
    /// - Parameters:
    ///   - reasons: the reasons that call a token dead.
    ///   - end: only verdicts that were settled before count, milliseconds since 1970; nil: all.
    ///   - accepted: is handed all accepted rows, too.
    /// - Throws: what reading the ledger throws.
    public mutating func rescueLiving(
        of ledger: VerdictLedger, reasons: Set<Reason>, settledBefore end: UInt64? = nil,
        accepted: (borrowing AcceptedBatch) -> Void = { _ in }
    ) throws(LedgerError) {
        let isDeadly = deadlyTable(reasons)
        let isSilent = ledger.acceptsBySilence
        let scope = number(of: ledger.scope)
        let end = end ?? .max
        var token = TokenBytes()
        try ledger.readAgain(
            accepted: { batch in
                accepted(batch)
                if !isSilent { rescue(batch, settledBefore: end, scope: scope) }
            },
            { (reader, settled) in
                switch settled.state {
                case .accepted where isSilent: return
                case .accepted: break
                case .rejected where isDeadly[Int(settled.reason)]: return
                case .rejected: break
                default: return
                }
                guard settled.milliseconds < end, case .bytes(let range) = settled.token
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

/// A token of a record: its bytes, and the fingerprint of its digits.
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
