/// The time at which device tokens became unregistered: the `timestamp` of their 410 responses.
public enum GoneAt: Sendable, Equatable {
    /// Within this second, Unix seconds.
    case second(UInt64)
    /// At the start of the simulator.
    case start
    /// The time of each request, which is later than any registration that a client knows of.
    case request
}
