/// The time at which device tokens became unregistered: the `timestamp` of their 410 responses.
public enum GoneAt: Sendable, Equatable {
    /// Within this second, Unix seconds.
    case second(UInt64)
    /// At the start of the simulator.
    case start
    /// The time of each request. It is later than any time at which the client's users registered
    /// the token.
    case request
}
