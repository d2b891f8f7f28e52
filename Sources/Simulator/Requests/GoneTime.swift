/// The `timestamp` of dead tokens: a start time, and a range over which the tokens are spread.
///
///     timestamp = base + h mod spread, milliseconds
///
/// `h` is the hash of `TokenOutcome`.
struct GoneTime: Sendable, Equatable {
    var baseMilliseconds: UInt64
    var spreadMilliseconds: UInt64

    /// A day in November 2023, for tokens that the simulator did not issue.
    static let computed = GoneTime(
        baseMilliseconds: 1_700_000_000_000, spreadMilliseconds: 86_400_000)

    /// Creates the time that `--gone-at` selects.
    ///
    /// - Parameter startMilliseconds: Start time of the simulator, milliseconds since the epoch.
    init(_ option: GoneAt, startMilliseconds: UInt64) {
        switch option {
        case .second(let seconds):
            self.init(baseMilliseconds: seconds * 1000, spreadMilliseconds: 1000)
        case .start: self.init(baseMilliseconds: startMilliseconds, spreadMilliseconds: 1)
        // Each response is dated when it is given; see `Response.isUndatedGone`.
        case .request: self.init(baseMilliseconds: 0, spreadMilliseconds: 1)
        }
    }

    private init(baseMilliseconds: UInt64, spreadMilliseconds: UInt64) {
        self.baseMilliseconds = baseMilliseconds
        self.spreadMilliseconds = spreadMilliseconds
    }

    /// Returns the time right after the tokens were issued, which is before the first request.
    static func after(issuedMilliseconds: UInt64) -> GoneTime {
        GoneTime(baseMilliseconds: issuedMilliseconds + 1, spreadMilliseconds: 1)
    }

    /// Returns the timestamp of a token with this hash.
    func milliseconds(hash: UInt64) -> UInt64 {
        assert(spreadMilliseconds > 0, "a range has a length")
        return baseMilliseconds + hash % spreadMilliseconds
    }
}
