internal import BroadsideAPNs
internal import BroadsidePrimitives
import BroadsideSupport

/// Tokens that ledgers report as dead; memory grows with dead tokens, not with rows.
///
///     slots     64 bits each: the fingerprint's upper half and the record's index; open
///               addressing, at most half full
///     records   in pages: a record per token, followed by the token's bytes
///     filter    after `seal`: at least 16 bits per token, indexed by fingerprint; identifies
///               nearly all living tokens by itself
///
/// A token counts as dead only if all its digits match; a fingerprint alone never removes a row.
/// Living tokens are known by fingerprint alone, and a collision could at worst keep a dead token
/// in the list.
public struct DeadTokens: ~Copyable {
    /// A record of one dead token.
    struct Record {
        var fingerprint: UInt64
        /// Settlement time of the newest verdict that reports the token as dead, milliseconds since
        /// 1970.
        var settledAt: UInt64
        /// Time of death, in milliseconds since 1970: the time that APNs gave, or the time of the
        /// verdict if APNs gave none.
        var diedAt: UInt64
        var byteCount: UInt8
        var reason: UInt8
        /// Whether a verdict of the same time or later shows that the token is alive.
        var isRescued: Bool
        /// Index in `scopes` of the app and environment.
        var scope: UInt32
    }

    /// Limit on memory for records and slots, enough for about ten million dead tokens; at the
    /// limit, `isFull` is set.
    public static let memoryLimit = 1 << 30

    static let pageByteCount = DeadTokenRecords.pageByteCount

    /// Apps and environments of the verdicts.
    public private(set) var scopes: [TokenScope] = []

    private let memoryLimit: Int
    private var records = DeadTokenRecords()
    private var slots = WordTable(count: 1 << 12)
    private var filter = WordTable(full: 1)

    /// Number of tokens, including rescued ones.
    public private(set) var count = 0
    /// Whether a token did not fit within the memory limit.
    public private(set) var isFull = false

    /// Creates an empty set.
    public init() { self.init(memoryLimit: DeadTokens.memoryLimit) }

    init(memoryLimit: Int) {
        self.memoryLimit = memoryLimit
    }

    /// Number of bytes in use.
    var byteCount: Int { records.byteCount + slots.count * 8 }

    // MARK: Insertion

    /// Returns the index of a scope in `scopes`, after adding it if it is new.
    mutating func number(of scope: TokenScope) -> UInt32 {
        if let index = scopes.firstIndex(of: scope) { return UInt32(index) }
        scopes.append(scope)
        return UInt32(scopes.count - 1)
    }

    /// Inserts a dead token. If a token has several verdicts in one scope, the newest one counts.
    ///
    /// - Parameter bytes: Bytes of the token, at most 100.
    mutating func insert(
        bytes: RawSpan, fingerprint: UInt64, reason: UInt8, settledAt: UInt64, diedAt: UInt64,
        scope: UInt32 = 0
    ) {
        precondition(bytes.byteCount <= TokenText.maximumDigitCount / 2)
        assert(scope == 0 || Int(scope) < scopes.count, "a verdict's scope has its number")
        var search = Search(fingerprint)
        while let recordIndex = next(&search) {
            // The scope is compared first, because that is cheap.
            guard records[recordIndex].scope == scope, isEqual(recordIndex, bytes) else { continue }
            let isNewer = settledAt > records[recordIndex].settledAt
            let isAsNew = settledAt == records[recordIndex].settledAt
            // Of two verdicts with the same time, the one that keeps more tokens counts.
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

    /// Records a verdict on a living token, identified by its fingerprint.
    @inline(__always)
    mutating func rescue(fingerprint: UInt64, settledAt: UInt64, scope: UInt32 = 0) {
        guard mayContain(fingerprint) else { return }
        rescueFound(fingerprint, settledAt, scope, nil)
    }

    /// Records a verdict that does not report the token as dead.
    mutating func rescue(
        bytes: RawSpan, fingerprint: UInt64, settledAt: UInt64, scope: UInt32 = 0
    ) {
        rescueFound(fingerprint, settledAt, scope, bytes)
    }

    /// Whether two scopes may be the same. A response for one app proves nothing about a second app
    /// on the same device, which may have been removed.
    private func isSameScope(_ first: UInt32, _ second: UInt32) -> Bool {
        first == second || scopes[Int(first)].mayBe(scopes[Int(second)])
    }

    private mutating func rescueFound(
        _ fingerprint: UInt64, _ settledAt: UInt64, _ scope: UInt32, _ bytes: RawSpan?
    ) {
        // In the extremely unlikely case of two dead tokens with the same fingerprint, both are
        // rescued.
        var search = Search(fingerprint)
        while let recordIndex = next(&search) {
            guard settledAt >= records[recordIndex].settledAt,
                isSameScope(records[recordIndex].scope, scope)
            else { continue }
            if let bytes, !isEqual(recordIndex, bytes) { continue }
            records[recordIndex].isRescued = true
        }
    }

    /// Builds the filter. The first call includes all tokens. After tokens have been rescued,
    /// another call includes only the tokens that are still dead.
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

    // MARK: Lookup

    /// Whether a token with this fingerprint may be dead; false for nearly all living tokens.
    @inline(__always)
    public func mayContain(_ fingerprint: UInt64) -> Bool {
        filter[Int(fingerprint >> 6)] & (1 << (fingerprint & 63)) != 0
    }

    /// Time of a token's death, milliseconds since 1970; nil if it is not dead.
    ///
    /// - Parameters:
    ///   - digits: Lower-case digits.
    ///   - scope: App and environment of the token in question; nil: any.
    public func diedAt(
        digits: RawSpan, fingerprint: UInt64, in scope: TokenScope? = nil
    ) -> UInt64? {
        guard mayContain(fingerprint) else { return nil }
        return find(digits: digits, fingerprint: fingerprint, in: scope)?.diedAt
    }

    /// Whether a token is alive because it was registered after its reported death. Both times are
    /// in milliseconds since 1970.
    @inline(__always)
    public static func lives(registeredAt time: Int64, diedAt: UInt64) -> Bool {
        time > 0 && UInt64(time) > diedAt
    }

    /// Returns the record of a dead token that was not rescued; nil if the token is not dead. If
    /// the token is dead in several scopes, returns the record with the latest death.
    ///
    /// - Parameters:
    ///   - digits: Lower-case digits.
    ///   - scope: App and environment of the token in question; nil: any.
    func find(
        digits: RawSpan, fingerprint: UInt64, in scope: TokenScope? = nil
    ) -> Record? {
        var found: Record?
        var search = Search(fingerprint)
        // With a single scope, the first match is the only one.
        while found == nil || scopes.count > 1, let recordIndex = next(&search) {
            let record = records[recordIndex]
            if !record.isRescued, record.diedAt >= found?.diedAt ?? 0,
                isEqual(recordIndex, digits: digits),
                scope == nil || scopes[Int(record.scope)].mayBe(scope!)
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

    /// Position of a search through the slots.
    private struct Search {
        let fingerprint: UInt64
        var index: Int

        init(_ fingerprint: UInt64) {
            self.fingerprint = fingerprint
            index = Int(truncatingIfNeeded: fingerprint)
        }
    }

    /// Returns the next record with the fingerprint; nil if there is none.
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

    /// Whether the memory limit allows a further record, including the growth of the tables for it.
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
        assert(count * 2 <= slots.count, "half of the slots stay free")
    }

    private mutating func put(_ fingerprint: UInt64, _ recordIndex: UInt32) {
        assert(recordIndex > 0, "0 marks a free slot")
        var index = Int(truncatingIfNeeded: fingerprint)
        while slots[index] != 0 { index &+= 1 }
        slots[index] = (fingerprint >> 32) << 32 | UInt64(recordIndex)
    }
}
