import BroadsidePrimitives
import BroadsideSupport

/// Counts the rows that need the default payload, because their value in the column of
/// `--payload-by` matches no payload. Each value has its own count. The memory is bounded, and
/// counting a row does not allocate.
struct FallbackTally: ~Copyable {
    // Not private, because swiftc 6.3.1 would fail on the buffer that `PayloadRenderer` destroys.
    struct Slot {
        var hash: UInt64 = 0
        var rows: UInt64 = 0
        /// Number of bytes in `sample`, at most `sampleLimit`.
        var count: UInt8 = 0
        var isCut = false
        var sample = SIMD32<UInt8>(repeating: 0)
    }

    /// Maximum number of values that are counted separately; all further values are counted
    /// together.
    static let valueLimit = 64
    private static let sampleLimit = 32

    private var slots: FixedBuffer<Slot>
    private var used = 0
    private var otherRows: UInt64 = 0

    /// - Parameter isNeeded: Whether rows choose among payloads.
    init(isNeeded: Bool) {
        let capacity = isNeeded ? Self.valueLimit : 0
        slots = FixedBuffer(repeating: Slot(), count: capacity)
    }

    /// Returns the slot of a value, a new one if the value was not seen before; `valueLimit` if the
    /// table is full.
    mutating func slot(of value: RawSpan) -> Int {
        let hash = FNV1aHash.hash(value)
        for index in 0..<used where slots[index].hash == hash { return index }
        guard used < Self.valueLimit else { return Self.valueLimit }
        var slot = Slot()
        slot.hash = hash
        var count = min(value.byteCount, Self.sampleLimit)
        slot.isCut = count < value.byteCount
        // A character must not be split.
        while slot.isCut, count > 0, value.byte(at: count) & 0xc0 == 0x80 { count -= 1 }
        for index in 0..<count { slot.sample[index] = value.byte(at: index) }
        assert(count <= Self.sampleLimit)
        slot.count = UInt8(count)
        slots[used] = slot
        used += 1
        return used - 1
    }

    /// Counts a row in a slot.
    mutating func add(_ slot: Int) {
        assert(slot == Self.valueLimit || slot < used, "a row in a slot without a value")
        if slot == Self.valueLimit {
            otherRows += 1
        } else {
            slots[slot].rows += 1
        }
    }

    /// Text of a value. If it contains a device token, most digits of the token are omitted.
    private static func text(_ sample: [UInt8], isCut: Bool) -> String {
        let (text, excerpt) = (String(decoding: sample, as: UTF8.self), tokenExcerpt(sample))
        // A sample is so short that an excerpt leaves out nothing but digits.
        let isShortened = excerpt.contains("…") && !text.contains("…")
        return isShortened ? excerpt : text + (isCut ? "..." : "")
    }

    /// The counts so far.
    var counts: FallbackCounts {
        var counts = FallbackCounts()
        for index in 0..<used {
            let slot = slots[index]
            guard slot.rows > 0 else { continue }
            let bytes = (0..<Int(slot.count)).map { slot.sample[$0] }
            counts.byValue[Self.text(bytes, isCut: slot.isCut), default: 0] += slot.rows
        }
        counts.others = otherRows
        return counts
    }
}

/// The counts of the rows that lack a payload file for their value in the `--payload-by` column.
public struct FallbackCounts: Sendable, Equatable {
    /// Number of rows by value.
    public var byValue: [String: UInt64] = [:]
    /// Number of rows with further values, which are not counted separately.
    public var others: UInt64 = 0

    /// Creates counts of zero.
    public init() {}

    /// Total number of rows.
    public var rows: UInt64 { byValue.values.reduce(others, +) }

    /// Number of rows whose value is not blank.
    public var namedRows: UInt64 {
        byValue.reduce(others) { $1.key.allSatisfy(\.isWhitespace) ? $0 : $0 + $1.value }
    }

    /// Adds other counts.
    public mutating func add(_ other: FallbackCounts) {
        byValue.merge(other.byValue, uniquingKeysWith: +)
        others += other.others
    }
}
