import BroadsideSupport

/// Keys that the user can press during a run. Each corresponds to a request on the control socket.
package struct RunKeys {
    /// Action of a pressed key.
    package enum Action: Equatable, Sendable {
        case pause, resume, stop, help
        /// Multiply the rate by 1.25 or by 0.8.
        case faster, slower
    }

    /// The text that asks the operator whether to stop the run. It is set while a second key is
    /// expected; otherwise nil.
    package private(set) var question: String?
    private var askedAt: UInt64 = 0

    /// Time for which a question waits for a second key, in nanoseconds.
    static var patience: UInt64 { 10 * second }

    package init() {}

    /// Returns the actions for the bytes typed since the last call.
    ///
    /// An escape sequence and everything after it is ignored, because its letters are not keys: F1
    /// is `ESC O P`.
    package mutating func take(_ typed: [UInt8], now: UInt64) -> [Action] {
        typed.prefix { $0 != 0x1b }.compactMap { take($0, now: now) }
    }

    private mutating func take(_ byte: UInt8, now: UInt64) -> Action? {
        forget(now)
        // A second key confirms only if it arrives in a later call. Keys that are pasted together
        // confirm nothing.
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

    /// Removes a question that was not confirmed in time.
    package mutating func forget(_ now: UInt64) {
        if question != nil, now - askedAt > Self.patience { question = nil }
    }

    /// The help text, one line per key.
    package static let help = """
        keys         p pauses the run, r resumes it
                     + sends faster, - slower: the limit times 1.25 or 0.8
                     q stops it after responses in flight; --resume continues it later
                     ? shows this and the plan
        """

    /// Returns the rate limit after a key, in requests per second.
    ///
    /// - Parameters:
    ///   - limit: Current limit; nil: unlimited.
    ///   - rate: Current responses per second. If the run is unlimited, `slower` reduces this rate.
    /// - Returns: The new limit; nil if there is nothing to change.
    package static func rate(_ action: Action, limit: Double?, rate: Double) -> Double? {
        switch action {
        case .faster: return limit.map { rounded($0 * 1.25) }
        case .slower:
            let base = limit ?? rate
            return base > 0 ? rounded(base * 0.8) : nil
        case .pause, .resume, .stop, .help: return nil
        }
    }

    /// Range of valid rate limits.
    package static let rates = 0.001...100_000_000.0

    /// Rounds a rate to three digits, so that it is readable, and limits it to `rates`.
    private static func rounded(_ rate: Double) -> Double {
        let rate = min(max(rate, rates.lowerBound), rates.upperBound)
        // Limits have a resolution of a thousandth.
        var unit = 0.001
        while rate / unit >= 1000 { unit *= 10 }
        return min(max((rate / unit).rounded() * unit, rates.lowerBound), rates.upperBound)
    }
}
