/// Where every accident of a simulation comes from: SplitMix64 of its seed.
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

    /// A number from 0 up to `limit`, which is left out.
    mutating func below(_ limit: Int) -> Int {
        Int(truncatingIfNeeded: next() >> 1) % max(1, limit)
    }

    mutating func between(_ range: ClosedRange<Int>) -> Int {
        range.lowerBound + below(range.count)
    }

    /// Nanoseconds from 0 up to `limit`.
    mutating func delay(_ limit: UInt64) -> UInt64 {
        next() % (limit + 1)
    }

    /// A delay whose order of magnitude is drawn first: mostly short, now and then close to `limit`.
    mutating func skewedDelay(_ limit: UInt64) -> UInt64 {
        delay(limit >> UInt64(below(8)))
    }

    mutating func chance(_ probability: Double) -> Bool {
        Double(next() >> 11) * 0x1p-53 < probability
    }

    mutating func pick<Element>(_ elements: [Element]) -> Element {
        elements[below(elements.count)]
    }

    /// A source of its own, so that what one part draws does not move what another does.
    mutating func fork() -> SimulationRandom {
        SimulationRandom(seed: next())
    }
}
