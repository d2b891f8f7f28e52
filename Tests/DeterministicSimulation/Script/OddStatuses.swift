/// Statuses that APNs does not document for such a request, or that a proxy sends instead of APNs.
struct OddStatuses {
    /// Chance that a response has such a status; 0: none has.
    let chance: Double

    static let none = OddStatuses()

    private init() { chance = 0 }

    /// Draws the chance of a process from its own generator, so that the seed's other draws stay
    /// the same.
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
