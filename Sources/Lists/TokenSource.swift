/// Where the device tokens come from.
public enum TokenSource: Sendable, Equatable {
    /// A list in a file; `-` is standard input.
    case file(String)
    /// One device: its token.
    case single(String)
}
