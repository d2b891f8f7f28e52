/// What happened, in order: a hash of everything, and the words where somebody wants to read them.
struct Trace {
    private(set) var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    private(set) var count = 0
    var isTelling: Bool

    init(isTelling: Bool) {
        self.isTelling = isTelling
    }

    mutating func mix(_ number: UInt64) {
        hash = (hash ^ number) &* 0x100_0000_01b3
        hash ^= hash >> 29
    }

    mutating func mix(_ bytes: some Sequence<UInt8>) {
        for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        hash ^= hash >> 29
    }

    mutating func step(time: UInt64, kind: UInt64, _ first: Int, _ second: Int = 0) {
        count += 1
        mix(time)
        mix(
            kind << 56 | UInt64(truncatingIfNeeded: first) << 28
                ^ UInt64(truncatingIfNeeded: second))
    }
}
