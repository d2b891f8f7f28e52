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
    var scope: TokenScope { TokenScope(manifest.identity) }

    /// Names a ledger.
    public init(manifest: Manifest, segments: [LedgerSegment]) {
        self.manifest = manifest
        self.segments = segments.sorted { ($0.epoch, $0.reactor) < ($1.epoch, $1.reactor) }
    }

    /// Hands each verdict to `body`, and checks the ledger meanwhile.
    ///
    /// Accepted and rejected rows are never opened again, so that each such record is a verdict by
    /// itself, and nothing about rows or chunks needs to be held.
    fileprivate mutating func readFirst(
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
                    recordedByteCount: recorded, with: &reader, body))
        }
    }

    fileprivate func readAgain(
        _ body: (borrowing BlockReader, LedgerRecord) throws(LedgerError) -> Void
    ) throws(LedgerError) {
        var reader = BlockReader()
        for segment in sound {
            reader.open(segment.segment, seed: segment.seed, range: segment.blocks, clock: 0)
            scan: while true {
                switch try reader.nextBlock() {
                case .end: break scan
                case .bad: throw reader.changedFault
                case .block:
                    while let record = try reader.nextRecord() { try body(reader, record) }
                }
            }
        }
    }
}

extension DeadTokens {
    /// Notes the tokens that a ledger calls dead.
    ///
    /// - Parameter reasons: the reasons that do.
    /// - Throws: what reading the ledger throws.
    public mutating func insertDead(
        of ledger: inout VerdictLedger, reasons: Set<Reason>
    ) throws(LedgerError) {
        let isDeadly = deadlyTable(reasons)
        let scope = number(of: ledger.scope)
        var token = TokenBytes()
        var responses = ResponseTally()
        defer { ledger.responses = responses }
        try ledger.readFirst { (reader, record) throws(LedgerError) in
            responses.take(record)
            guard case .settled(let settled) = record, settled.state == .rejected,
                isDeadly[Int(settled.reason)], case .bytes(let range) = settled.token
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
    /// - Parameter reasons: the reasons that call a token dead.
    /// - Throws: what reading the ledger throws.
    public mutating func rescueLiving(
        of ledger: VerdictLedger, reasons: Set<Reason>
    ) throws(LedgerError) {
        let isDeadly = deadlyTable(reasons)
        let isSilent = ledger.acceptsBySilence
        let scope = number(of: ledger.scope)
        var token = TokenBytes()
        try ledger.readAgain { (reader, record) throws(LedgerError) in
            switch record {
            case .accepted(_, let fingerprint, _, let milliseconds):
                if isSilent { return }
                rescue(fingerprint: fingerprint, settledAt: milliseconds, scope: scope)
            case .settled(let settled):
                switch settled.state {
                case .accepted where isSilent: return
                case .accepted: break
                case .rejected where isDeadly[Int(settled.reason)]: return
                case .rejected: break
                default: return
                }
                switch settled.token {
                case .fingerprint(let fingerprint):
                    rescue(
                        fingerprint: fingerprint, settledAt: settled.milliseconds, scope: scope)
                case .bytes(let range):
                    token.load(range, of: reader)
                    rescue(
                        bytes: token.bytes.rawSpan, fingerprint: token.fingerprint,
                        settledAt: settled.milliseconds, scope: scope)
                case .none, .text: return
                }
            case .reserve, .release: return
            }
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
