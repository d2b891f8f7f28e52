/// The time at which unregistered device tokens became so: the `timestamp` of their 410.
public enum GoneAt: Sendable, Equatable {
    /// Within this second, Unix seconds.
    case second(UInt64)
    /// At the start of the simulator.
    case start
    /// At each request: after any registration of the token by the client's users.
    case request
}
