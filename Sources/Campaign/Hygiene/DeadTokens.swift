internal import APNs
import Support

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
@safe public struct DeadTokens: ~Copyable {
    /// What is known of one dead token.
    struct Record {
        var fingerprint: UInt64
        /// When the newest verdict that calls it dead was settled, milliseconds since 1970.
        var settledAt: UInt64
        /// Since when it is dead: APNs' own time, or the verdict's where APNs gave none.
        var diedAt: UInt64
        var octetCount: UInt8
        var reason: UInt8
        /// Whether a verdict as new or newer says otherwise.
        var isRescued: Bool
        /// Whose device it is dead for: a place among `scopes`.
        var scope: UInt32
    }

    /// The most memory for records and slots; beyond, `isFull`. It is enough for about ten million
    /// dead tokens.
    public static let memoryLimit = 1 << 30

    static let pageByteCount = 1 << 20
    private static let recordByteCount = 32

    /// The apps and environments that verdicts were asked for.
    public private(set) var scopes: [TokenScope] = []

    private let memoryLimit: Int
    private var pages: [UnsafeMutableRawPointer]
    private var pageFilled = DeadTokens.pageByteCount
    private var slots: UnsafeMutablePointer<UInt64>
    private var slotCount = 1 << 12
    private var filter: UnsafeMutablePointer<UInt64>
    private var filterMask: UInt64 = 0

    /// How many tokens there are, rescued ones included.
    public private(set) var count = 0
    /// How many of them a newer verdict rescued.
    public private(set) var rescuedCount = 0
    /// Whether a token found no room within the limit.
    public private(set) var isFull = false

    /// None yet.
    public init() { self.init(memoryLimit: DeadTokens.memoryLimit) }

    init(memoryLimit: Int) {
        self.memoryLimit = memoryLimit
        unsafe pages = []
        unsafe slots = .allocate(capacity: slotCount)
        unsafe slots.initialize(repeating: 0, count: slotCount)
        unsafe filter = .allocate(capacity: 1)
        unsafe filter.initialize(to: ~0)
    }

    deinit {
        // SAFETY: allocated here, of trivial types, and reached only through this value.
        unsafe slots.deallocate()
        unsafe filter.deallocate()
        unsafe pages.forEach { page in unsafe page.deallocate() }
    }

    /// Bytes in use.
    var byteCount: Int { unsafe pages.count * DeadTokens.pageByteCount + slotCount * 8 }

    // MARK: Making it

    /// The number by which verdicts name a scope.
    mutating func number(of scope: TokenScope) -> UInt32 {
        if let index = scopes.firstIndex(of: scope) { return UInt32(index) }
        scopes.append(scope)
        return UInt32(scopes.count - 1)
    }

    /// Notes that a token is dead; of several such verdicts of a scope the newest counts.
    ///
    /// - Parameter octets: the token's bytes, at most 100.
    mutating func insert(
        octets: RawSpan, fingerprint: UInt64, reason: UInt8, settledAt: UInt64, diedAt: UInt64,
        scope: UInt32 = 0
    ) {
        precondition(octets.byteCount <= TokenText.maximumDigitCount / 2)
        let known = place(of: fingerprint) { place in
            // The scope first: it is nearly always the same.
            unsafe record(place).pointee.scope == scope && isEqual(place, octets)
        }
        if let place = known {
            let record = unsafe record(place)
            let isNewer = unsafe settledAt > record.pointee.settledAt
            let isAsNew = unsafe settledAt == record.pointee.settledAt
            // Of two at the same time, the one that keeps more.
            if unsafe isNewer || (isAsNew && diedAt < record.pointee.diedAt) {
                unsafe record.pointee.settledAt = settledAt
                unsafe record.pointee.diedAt = diedAt
                unsafe record.pointee.reason = reason
            }
            return
        }
        guard let place = allocate(octets.byteCount) else { return }
        unsafe record(place).initialize(
            to: Record(
                fingerprint: fingerprint, settledAt: settledAt, diedAt: diedAt,
                octetCount: UInt8(octets.byteCount), reason: reason, isRescued: false,
                scope: scope))
        unsafe octets.withUnsafeBytes { source in
            guard let start = source.baseAddress else { return }
            // SAFETY: `allocate` left room for them behind the record.
            unsafe self.octets(place).copyMemory(from: start, byteCount: source.count)
        }
        count += 1
        if count * 2 > slotCount { growSlots() }
        put(fingerprint, place)
    }

    /// Notes a verdict on a living token, known by its fingerprint.
    @inline(__always)
    mutating func rescue(fingerprint: UInt64, settledAt: UInt64, scope: UInt32 = 0) {
        guard mayContain(fingerprint) else { return }
        rescueFound(fingerprint, settledAt, scope) { _ in true }
    }

    /// Notes a verdict on a token that does not call it dead.
    mutating func rescue(
        octets: RawSpan, fingerprint: UInt64, settledAt: UInt64, scope: UInt32 = 0
    ) {
        rescueFound(fingerprint, settledAt, scope) { place in isEqual(place, octets) }
    }

    /// What APNs says of an app's device proves nothing for another app: one that takes its pushes may
    /// be on a device from which the other is gone.
    private func isSameScope(_ first: UInt32, _ second: UInt32) -> Bool {
        first == second || scopes[Int(first)].mayBe(scopes[Int(second)])
    }

    private func rescueFound(
        _ fingerprint: UInt64, _ settledAt: UInt64, _ scope: UInt32,
        _ isWanted: (UInt32) -> Bool
    ) {
        // Where two dead tokens share a fingerprint, which nobody will see, both are rescued.
        _ = place(of: fingerprint) { place in
            let record = unsafe record(place)
            if unsafe settledAt >= record.pointee.settledAt,
                unsafe isSameScope(record.pointee.scope, scope), isWanted(place)
            {
                unsafe record.pointee.isRescued = true
            }
            return false
        }
    }

    /// Makes the filter: of all tokens, and once more, after rescues, of those that stay dead.
    public mutating func seal() {
        var bitCount = 1 << 12
        while bitCount < count * 16 { bitCount *= 2 }
        unsafe filter.deallocate()
        unsafe filter = .allocate(capacity: bitCount / 64)
        unsafe filter.initialize(repeating: 0, count: bitCount / 64)
        filterMask = UInt64(bitCount - 1)
        rescuedCount = 0
        for index in 0..<slotCount {
            let slot = unsafe slots[index]
            if slot == 0 { continue }
            let record = unsafe record(UInt32(truncatingIfNeeded: slot))
            if unsafe record.pointee.isRescued {
                rescuedCount += 1
                continue
            }
            let bit = unsafe record.pointee.fingerprint & filterMask
            unsafe filter[Int(bit >> 6)] |= 1 << (bit & 63)
        }
    }

    // MARK: Looking up

    /// Whether a token with this fingerprint may be dead; false nearly always where it is not.
    @inline(__always)
    func mayContain(_ fingerprint: UInt64) -> Bool {
        let bit = fingerprint & filterMask
        // SAFETY: the mask keeps the bit inside the filter.
        return unsafe filter[Int(bit >> 6)] & (1 << (bit & 63)) != 0
    }

    /// What is known of a dead token that nothing rescued; nil where the token is not dead. Of several
    /// scopes the one for which it died last.
    ///
    /// - Parameter digits: lower-case digits.
    func find(digits: RawSpan, fingerprint: UInt64) -> Record? {
        var found: Record?
        _ = place(of: fingerprint) { place in
            let record = unsafe record(place).pointee
            if !record.isRescued, record.diedAt >= found?.diedAt ?? 0,
                isEqual(place, digits: digits)
            {
                found = record
            }
            // With a single scope the first is the only one.
            return found != nil && scopes.count < 2
        }
        return found
    }

    private func isEqual(_ place: UInt32, digits: RawSpan) -> Bool {
        let count = unsafe Int(record(place).pointee.octetCount)
        guard digits.byteCount == count * 2 else { return false }
        let octets = unsafe octets(place)
        for index in 0..<count {
            // SAFETY: the record has `count` bytes behind it.
            let octet = unsafe octets.load(fromByteOffset: index, as: UInt8.self)
            guard digits.octet(at: index * 2) == HexDigits.digit(octet >> 4),
                digits.octet(at: index * 2 + 1) == HexDigits.digit(octet & 15)
            else { return false }
        }
        return true
    }

    private func isEqual(_ place: UInt32, _ other: RawSpan) -> Bool {
        let count = unsafe Int(record(place).pointee.octetCount)
        guard other.byteCount == count else { return false }
        let octets = unsafe octets(place)
        for index in 0..<count
        where unsafe octets.load(fromByteOffset: index, as: UInt8.self) != other.octet(at: index) {
            return false
        }
        return true
    }

    /// The first place with this fingerprint that `isWanted` accepts.
    private func place(of fingerprint: UInt64, _ isWanted: (UInt32) -> Bool) -> UInt32? {
        let mask = slotCount - 1
        var index = Int(truncatingIfNeeded: fingerprint) & mask
        while true {
            // SAFETY: the mask keeps the index inside the slots, some of which are empty.
            let slot = unsafe slots[index]
            if slot == 0 { return nil }
            let place = UInt32(truncatingIfNeeded: slot)
            if slot >> 32 == fingerprint >> 32,
                unsafe record(place).pointee.fingerprint == fingerprint, isWanted(place)
            {
                return place
            }
            index = (index + 1) & mask
        }
    }

    // MARK: Memory

    /// Places count in steps of 8 bytes, from 1, so that no slot in use is 0.
    private func address(_ place: UInt32) -> UnsafeMutableRawPointer {
        let offset = Int(place - 1) * 8
        let page = unsafe pages[offset / DeadTokens.pageByteCount]
        return unsafe page + offset % DeadTokens.pageByteCount
    }

    private func record(_ place: UInt32) -> UnsafeMutablePointer<Record> {
        // SAFETY: records are made by `insert` at places that `allocate` gives.
        unsafe address(place).assumingMemoryBound(to: Record.self)
    }

    private func octets(_ place: UInt32) -> UnsafeMutableRawPointer {
        unsafe address(place) + DeadTokens.recordByteCount
    }

    /// Room for a record and its bytes; nil beyond the limit.
    private mutating func allocate(_ octetCount: Int) -> UInt32? {
        precondition(MemoryLayout<Record>.size <= DeadTokens.recordByteCount)
        let size = DeadTokens.recordByteCount + (octetCount + 7) / 8 * 8
        let willGrow = (count + 1) * 2 > slotCount ? slotCount * 16 : 0
        if pageFilled + size > DeadTokens.pageByteCount {
            guard byteCount + DeadTokens.pageByteCount + willGrow <= memoryLimit else {
                isFull = true
                return nil
            }
            unsafe pages.append(
                .allocate(byteCount: DeadTokens.pageByteCount, alignment: 64))
            pageFilled = 0
        }
        guard byteCount + willGrow <= memoryLimit else {
            isFull = true
            return nil
        }
        let pageStart = unsafe (pages.count - 1) * DeadTokens.pageByteCount
        let place = UInt32((pageStart + pageFilled) / 8 + 1)
        pageFilled += size
        return place
    }

    private mutating func growSlots() {
        let old = unsafe slots
        let oldCount = slotCount
        slotCount *= 2
        unsafe slots = .allocate(capacity: slotCount)
        unsafe slots.initialize(repeating: 0, count: slotCount)
        for index in 0..<oldCount {
            let slot = unsafe old[index]
            guard slot != 0 else { continue }
            let place = UInt32(truncatingIfNeeded: slot)
            put(unsafe record(place).pointee.fingerprint, place)
        }
        unsafe old.deallocate()
    }

    private mutating func put(_ fingerprint: UInt64, _ place: UInt32) {
        let mask = slotCount - 1
        var index = Int(truncatingIfNeeded: fingerprint) & mask
        while unsafe slots[index] != 0 { index = (index + 1) & mask }
        unsafe slots[index] = (fingerprint >> 32) << 32 | UInt64(place)
    }
}
