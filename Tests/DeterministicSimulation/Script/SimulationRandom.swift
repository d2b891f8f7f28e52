/// Generator of a simulation's random events: SplitMix64 of its seed.
struct SimulationRandom {
    private var state: UInt64

    init(seed: UInt64) {
        state = seed
    }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }

    /// Returns a number from 0 up to, but not including, `limit`.
    mutating func below(_ limit: Int) -> Int {
        Int(truncatingIfNeeded: next() >> 1) % max(1, limit)
    }

    mutating func between(_ range: ClosedRange<Int>) -> Int {
        range.lowerBound + below(range.count)
    }

    /// Returns nanoseconds from 0 up to `limit`.
    mutating func delay(_ limit: UInt64) -> UInt64 {
        next() % (limit + 1)
    }

    /// Returns a delay whose order of magnitude is drawn first: mostly short, sometimes close to
    /// `limit`.
    mutating func skewedDelay(_ limit: UInt64) -> UInt64 {
        delay(limit >> UInt64(below(8)))
    }

    mutating func chance(_ probability: Double) -> Bool {
        Double(next() >> 11) * 0x1p-53 < probability
    }

    mutating func pick<Element>(_ elements: [Element]) -> Element {
        elements[below(elements.count)]
    }

    /// Returns a new generator, so that the draws of one part do not change those of another.
    mutating func fork() -> SimulationRandom {
        SimulationRandom(seed: next())
    }
}
