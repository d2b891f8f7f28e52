/// The time for which a simulator's command `wait` waits. The simulator decides when a `wait` ends,
/// and its client must not give up earlier.
package enum WaitTimeout {
    /// Maximum number of seconds.
    package static let limitSeconds: UInt64 = 60
    private static let standardSeconds: UInt64 = 10

    /// Nanoseconds of the argument `timeout`, or of its default if it is nil. Returns nil if the
    /// argument is not a duration of at most `limitSeconds`.
    package static func nanoseconds(_ argument: String?) -> UInt64? {
        guard let argument else { return standardSeconds * second }
        return parseDuration(argument).flatMap { $0 <= limitSeconds * second ? $0 : nil }
    }

    /// Whole seconds after which the response to a request line may come: 0, except for `wait`.
    package static func seconds(ofRequest line: String) -> Int {
        let words = line.split(separator: " ")
        guard words.first == "wait" else { return 0 }
        let name = "timeout="
        let argument = words.last { $0.hasPrefix(name) }.map { String($0.dropFirst(name.count)) }
        // A simulator refuses a wrong argument immediately.
        return Int(((nanoseconds(argument) ?? 0) + second - 1) / second)
    }
}
