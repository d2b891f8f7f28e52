internal import BroadsideAPNs
internal import BroadsidePrimitives
import BroadsideSupport

/// Tokens that APNs called dead, by what ledgers say; memory by dead token, never by row.
///
///     slots     64 bits each: the fingerprint's upper half and where the record lies; open
///               addressing, at most half full
///     records   in pages: what is known of a token, then its bytes
///     filter    after `seal`: a bit for each of 16 or more values of a fingerprint a token; nearly
///               all living tokens are told by it alone
///
/// A token is taken for dead only where all its digits are equal: a fingerprint alone never removes
/// anything. Living tokens are known by fingerprint alone, and two with the same one could at worst
/// keep a dead token in the list.
public struct DeadTokens: ~Copyable {
    /// What is known of one dead token.
    struct Record {
        var fingerprint: UInt64
        /// When the newest verdict that calls it dead was settled, milliseconds since 1970.
        var settledAt: UInt64
        /// Since when it is dead: APNs' own time, or the verdict's where APNs gave none.
        var diedAt: UInt64
        var byteCount: UInt8
        var reason: UInt8
        /// Whether a verdict as new or newer says otherwise.
        var isRescued: Bool
        /// Whose device it is dead for: a place among `scopes`.
        var scope: UInt32
    }

    /// The most memory for records and slots; beyond, `isFull`. It is enough for about ten million
    /// dead tokens.
    public static let memoryLimit = 1 << 30

    static let pageByteCount = DeadTokenRecords.pageByteCount

    /// The apps and environments that verdicts were asked for.
    public private(set) var scopes: [TokenScope] = []

    private let memoryLimit: Int
    private var records = DeadTokenRecords()
    private var slots = WordTable(count: 1 << 12)
    private var filter = WordTable(full: 1)

    /// How many tokens there are, rescued ones included.
    public private(set) var count = 0
    /// Whether a token found no room within the limit.
    public private(set) var isFull = false

    /// None yet.
    public init() { self.init(memoryLimit: DeadTokens.memoryLimit) }

    init(memoryLimit: Int) {
        self.memoryLimit = memoryLimit
    }

    /// Bytes in use.
    var byteCount: Int { records.byteCount + slots.count * 8 }

    // MARK: Making it

    /// The number by which verdicts name a scope.
    mutating func number(of scope: TokenScope) -> UInt32 {
        if let index = scopes.firstIndex(of: scope) { return UInt32(index) }
        scopes.append(scope)
        return UInt32(scopes.count - 1)
    }

    /// Notes that a token is dead; of several such verdicts of a scope the newest counts.
    ///
    /// - Parameter bytes: the token's bytes, at most 100.
    mutating func insert(
        bytes: RawSpan, fingerprint: UInt64, reason: UInt8, settledAt: UInt64, diedAt: UInt64,
        scope: UInt32 = 0
    ) {
        precondition(bytes.byteCount <= TokenText.maximumDigitCount / 2)
        var search = Search(fingerprint)
        while let recordIndex = next(&search) {
            // The scope first: it is nearly always the same.
            guard records[recordIndex].scope == scope, isEqual(recordIndex, bytes) else { continue }
            let isNewer = settledAt > records[recordIndex].settledAt
            let isAsNew = settledAt == records[recordIndex].settledAt
            // Of two at the same time, the one that keeps more.
            if isNewer || (isAsNew && diedAt < records[recordIndex].diedAt) {
                records[recordIndex].settledAt = settledAt
                records[recordIndex].diedAt = diedAt
                records[recordIndex].reason = reason
            }
            return
        }
        guard hasRoom(bytes.byteCount) else {
            isFull = true
            return
        }
        let recordIndex = records.append(
            Record(
                fingerprint: fingerprint, settledAt: settledAt, diedAt: diedAt,
                byteCount: UInt8(bytes.byteCount), reason: reason, isRescued: false,
                scope: scope), bytes)
        count += 1
        if count * 2 > slots.count { growSlots() }
        put(fingerprint, recordIndex)
    }

    /// Notes a verdict on a living token, known by its fingerprint.
    @inline(__always)
    mutating func rescue(fingerprint: UInt64, settledAt: UInt64, scope: UInt32 = 0) {
        guard mayContain(fingerprint) else { return }
        rescueFound(fingerprint, settledAt, scope, nil)
    }

    /// Notes a verdict on a token that does not call it dead.
    mutating func rescue(
        bytes: RawSpan, fingerprint: UInt64, settledAt: UInt64, scope: UInt32 = 0
    ) {
        rescueFound(fingerprint, settledAt, scope, bytes)
    }

    /// What APNs says of an app's device proves nothing for another app: one that takes its pushes may
    /// be on a device from which the other is gone.
    private func isSameScope(_ first: UInt32, _ second: UInt32) -> Bool {
        first == second || scopes[Int(first)].mayBe(scopes[Int(second)])
    }

    private mutating func rescueFound(
        _ fingerprint: UInt64, _ settledAt: UInt64, _ scope: UInt32, _ bytes: RawSpan?
    ) {
        // Where two dead tokens share a fingerprint, which nobody will see, both are rescued.
        var search = Search(fingerprint)
        while let recordIndex = next(&search) {
            guard settledAt >= records[recordIndex].settledAt,
                isSameScope(records[recordIndex].scope, scope)
            else { continue }
            if let bytes, !isEqual(recordIndex, bytes) { continue }
            records[recordIndex].isRescued = true
        }
    }

    /// Makes the filter: of all tokens, and once more, after rescues, of those that stay dead.
    public mutating func seal() {
        var bitCount = 1 << 12
        while bitCount < count * 16 { bitCount *= 2 }
        filter = WordTable(count: bitCount / 64)
        for index in 0..<slots.count {
            let slot = slots[index]
            if slot == 0 { continue }
            let recordIndex = UInt32(truncatingIfNeeded: slot)
            if records[recordIndex].isRescued { continue }
            let fingerprint = records[recordIndex].fingerprint
            filter[Int(fingerprint >> 6)] |= 1 << (fingerprint & 63)
        }
    }

    // MARK: Looking up

    /// Whether a token with this fingerprint may be dead; false nearly always where it is not.
    @inline(__always)
    func mayContain(_ fingerprint: UInt64) -> Bool {
        filter[Int(fingerprint >> 6)] & (1 << (fingerprint & 63)) != 0
    }

    /// Since when a token is dead, milliseconds since 1970; nil if it is not.
    ///
    /// - Parameter digits: lower-case digits.
    public func diedAt(digits: RawSpan, fingerprint: UInt64) -> UInt64? {
        guard mayContain(fingerprint) else { return nil }
        return find(digits: digits, fingerprint: fingerprint)?.diedAt
    }

    /// Whether a token that was registered at a time lives, although it died at another, in milliseconds since
    /// 1970.
    @inline(__always)
    public static func lives(registeredAt time: Int64, diedAt: UInt64) -> Bool {
        time > 0 && UInt64(time) > diedAt
    }

    /// What is known of a dead token that nothing rescued; nil where the token is not dead. Of several
    /// scopes the one for which it died last.
    ///
    /// - Parameter digits: lower-case digits.
    func find(digits: RawSpan, fingerprint: UInt64) -> Record? {
        var found: Record?
        var search = Search(fingerprint)
        // With a single scope the first is the only one.
        while found == nil || scopes.count > 1, let recordIndex = next(&search) {
            let record = records[recordIndex]
            if !record.isRescued, record.diedAt >= found?.diedAt ?? 0,
                isEqual(recordIndex, digits: digits)
            {
                found = record
            }
        }
        return found
    }

    private func isEqual(_ recordIndex: UInt32, digits: RawSpan) -> Bool {
        let bytes = records.bytes(of: recordIndex)
        guard digits.byteCount == bytes.byteCount * 2 else { return false }
        for index in 0..<bytes.byteCount {
            let byte = bytes.byte(at: index)
            guard digits.byte(at: index * 2) == HexDigits.digit(byte >> 4),
                digits.byte(at: index * 2 + 1) == HexDigits.digit(byte & 15)
            else { return false }
        }
        return true
    }

    private func isEqual(_ recordIndex: UInt32, _ other: RawSpan) -> Bool {
        let bytes = records.bytes(of: recordIndex)
        guard other.byteCount == bytes.byteCount else { return false }
        for index in 0..<bytes.byteCount where bytes.byte(at: index) != other.byte(at: index) {
            return false
        }
        return true
    }

    /// Where a look through the slots has come to.
    private struct Search {
        let fingerprint: UInt64
        var index: Int

        init(_ fingerprint: UInt64) {
            self.fingerprint = fingerprint
            index = Int(truncatingIfNeeded: fingerprint)
        }
    }

    /// The next place with the fingerprint that is looked for.
    private func next(_ search: inout Search) -> UInt32? {
        while true {
            let slot = slots[search.index]
            if slot == 0 { return nil }
            search.index &+= 1
            let recordIndex = UInt32(truncatingIfNeeded: slot)
            if slot >> 32 == search.fingerprint >> 32,
                records[recordIndex].fingerprint == search.fingerprint
            {
                return recordIndex
            }
        }
    }

    // MARK: Memory

    /// Whether the limit allows another record, with what has to grow for it.
    private func hasRoom(_ tokenByteCount: Int) -> Bool {
        let slotBytes = (count + 1) * 2 > slots.count ? slots.count * 16 : 0
        let pageBytes = records.needsPage(tokenByteCount) ? DeadTokens.pageByteCount : 0
        return byteCount + slotBytes + pageBytes <= memoryLimit
    }

    private mutating func growSlots() {
        let old = exchange(&slots, with: WordTable(count: slots.count * 2))
        for index in 0..<old.count {
            let slot = old[index]
            guard slot != 0 else { continue }
            let recordIndex = UInt32(truncatingIfNeeded: slot)
            put(records[recordIndex].fingerprint, recordIndex)
        }
    }

    private mutating func put(_ fingerprint: UInt64, _ recordIndex: UInt32) {
        var index = Int(truncatingIfNeeded: fingerprint)
        while slots[index] != 0 { index &+= 1 }
        slots[index] = (fingerprint >> 32) << 32 | UInt64(recordIndex)
    }
}
