/// Source of the device tokens.
public enum TokenSource: Sendable, Equatable {
    /// List in a file; `-` is standard input.
    case file(String)
    /// Token of a single device.
    case single(String)
}
