/// Decimal digits without an allocation.
enum Decimal {
    /// Writes `value`, at most 20 bytes, and returns how many.
    static func write(_ value: UInt64, to target: UnsafeMutableRawPointer) -> Int {
        var count = 1
        var rest = value
        while rest >= 10 {
            rest /= 10
            count += 1
        }
        rest = value
        for position in (0..<count).reversed() {
            // SAFETY: `position` is below the number of digits, for which the caller has room.
            unsafe target.storeBytes(
                of: UInt8(truncatingIfNeeded: rest % 10) + 0x30, toByteOffset: position,
                as: UInt8.self)
            rest /= 10
        }
        return count
    }
}
