/// Statuses that APNs does not document for a request like ours, or that somebody on the way sends in its
/// place.
struct OddStatuses {
    /// Chance of a response to have one; 0: none has.
    let chance: Double

    static let none = OddStatuses()

    private init() { chance = 0 }

    /// What a seed draws for one of its processes, of a generator of its own, so that its other draws
    /// stay what they are.
    init(seed: UInt64, process: Int) {
        let mixed = seed ^ 0x6f64_6473_7461_0001 &+ UInt64(process) << 32
        var random = SimulationRandom(seed: mixed)
        chance = random.chance(0.12) ? random.pick([0.01, 0.1, 0.6]) : 0
    }

    static func draw(_ random: inout SimulationRandom) -> ServerAnswer {
        let status = random.pick([
            201, 202, 204, 206, 302, 401, 404, 405, 407, 408, 421, 425, 502, 504,
        ])
        let isExplained = random.chance(0.5)
        let reason: String? =
            switch status {
            case 404 where isExplained: "BadPath"
            case 405 where isExplained: "MethodNotAllowed"
            default: nil
            }
        return ServerAnswer(status: status, reason: reason)
    }
}
