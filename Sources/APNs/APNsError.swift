/// An error in text that this module parses.
public struct APNsError: Error, Equatable, Sendable {
    /// The kinds of errors.
    public enum Code: String, Sendable {
        /// A provider token that APNs would refuse.
        case badProviderToken = "the provider token is malformed"
    }

    /// The kind of the error.
    public var code: Code
    /// Offset of the byte at which the error was detected, from 0.
    public var offset: Int

    /// Creates an error.
    init(_ code: Code, at offset: Int) {
        self.code = code
        self.offset = offset
    }
}
