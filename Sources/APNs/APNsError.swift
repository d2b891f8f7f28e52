/// What this module throws: text that breaks the grammar it should have.
public struct APNsError: Error, Equatable, Sendable {
    /// What is wrong.
    public enum Code: String, Sendable {
        /// A provider token that APNs would refuse.
        case badProviderToken = "the provider token is malformed"
    }

    /// What is wrong.
    public var code: Code
    /// The byte at which it was noticed, from 0.
    public var offset: Int

    /// Makes an error of this module.
    init(_ code: Code, at offset: Int) {
        self.code = code
        self.offset = offset
    }
}
