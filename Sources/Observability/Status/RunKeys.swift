import BroadsideSupport

/// The keys of a run that a person watches: each asks for what a request on the control socket does.
package struct RunKeys {
    /// What a key asks for.
    package enum Action: Equatable, Sendable {
        case pause, resume, stop, help
        /// The rate times a quarter more, or a fifth less.
        case faster, slower
    }

    /// What is asked before the run stops; nil if nothing is.
    package private(set) var question: String?
    private var askedAt: UInt64 = 0

    /// A question is open for so long, in nanoseconds.
    static var patience: UInt64 { 10 * second }

    package init() {}

    /// What the bytes ask for that were typed since the last look.
    ///
    /// A key beyond the letters is an escape sequence, whose letters are no keys: F1 is `ESC O P`.
    package mutating func take(_ typed: [UInt8], now: UInt64) -> [Action] {
        typed.prefix { $0 != 0x1b }.compactMap { take($0, now: now) }
    }

    private mutating func take(_ byte: UInt8, now: UInt64) -> Action? {
        forget(now)
        // What was pasted confirms nothing: the second key comes in a later look.
        let wasAsked = question != nil && now > askedAt
        question = nil
        switch Character(Unicode.Scalar(byte)) {
        case "p", "P": return .pause
        case "r", "R": return .resume
        case "+", "=": return .faster
        case "-", "_": return .slower
        case "?", "h", "H": return .help
        case "q", "Q":
            if wasAsked { return .stop }
            question = "stop this run? q stops it, --resume continues it later; any other key: no"
            askedAt = now
            return nil
        default: return nil
        }
    }

    /// Drops a question without a response.
    package mutating func forget(_ now: UInt64) {
        if question != nil, now - askedAt > Self.patience { question = nil }
    }

    /// What the keys do, a line each.
    package static let help = """
        keys         p pauses the run, r resumes it
                     + sends faster, - slower: the limit times 1.25 or 0.8
                     q stops it once responses in flight are in; --resume continues it later
                     ? shows this and the plan
        """

    /// The rate limit after a key, in requests per second.
    ///
    /// - Parameters:
    ///   - limit: The limit now; nil: unlimited.
    ///   - rate: Responses per second now: the limit of an unlimited run that is to be slower.
    /// - Returns: nil if there is nothing to change.
    package static func rate(_ action: Action, limit: Double?, rate: Double) -> Double? {
        switch action {
        case .faster: return limit.map { rounded($0 * 1.25) }
        case .slower:
            let base = limit ?? rate
            return base > 0 ? rounded(base * 0.8) : nil
        case .pause, .resume, .stop, .help: return nil
        }
    }

    /// The limits that a run can have.
    package static let rates = 0.001...100_000_000.0

    /// Three digits, as people read numbers, within the limits that a run can have.
    private static func rounded(_ rate: Double) -> Double {
        let rate = min(max(rate, rates.lowerBound), rates.upperBound)
        // Thousandths are the finest limit.
        var unit = 0.001
        while rate / unit >= 1000 { unit *= 10 }
        return min(max((rate / unit).rounded() * unit, rates.lowerBound), rates.upperBound)
    }
}
