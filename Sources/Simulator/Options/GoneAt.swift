/// The time at which device tokens became unregistered: the `timestamp` of their 410 responses.
public enum GoneAt: Sendable, Equatable {
    /// Within this second, Unix seconds.
    case second(UInt64)
    /// At the start of the simulator.
    case start
    /// The time of each request. Every registration of the token that a client knows of is earlier.
    case request
}
