/// Source of the device tokens.
public enum TokenSource: Sendable, Equatable {
    /// A list in a file; `-` is standard input.
    case file(String)
    /// Token of a single device.
    case single(String)
}
