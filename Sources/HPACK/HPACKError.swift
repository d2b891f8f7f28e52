/// What is wrong with a header block.
///
/// In HTTP/2 each of these is a connection error COMPRESSION_ERROR (RFC 9113 section 4.3), because
/// the two tables can no longer be known to agree.
public struct HPACKError: Error, Equatable, Sendable {
    /// The rule of RFC 7541 that a block breaks.
    public enum Code: Sendable, Equatable {
        /// The block ends inside an integer or a string.
        case truncated
        /// An integer is above 2^24 (RFC 7541 section 5.1 lets an implementation set the limit).
        case integerTooLarge
        /// Index 0 is used where it has no meaning (RFC 7541 section 6.1).
        case indexZero
        /// A size update stands after a field (RFC 7541 section 4.2).
        case sizeUpdateNotFirst
        /// Padding of a Huffman-coded string that is longer than 7 bits or is not all ones
        /// (RFC 7541 section 5.2).
        case huffmanPadding
        /// A Huffman-coded string contains EOS (RFC 7541 section 5.2).
        case huffmanEndOfString
        /// A Huffman-coded string is longer than the room that its reader set aside.
        case stringTooLong
    }

    /// Which rule.
    public var code: Code
    /// Where: bytes from the start of the block or string that was read.
    public var offset: Int

    /// Says that the rule `code` is broken at `offset`.
    @inlinable
    public init(code: Code, offset: Int) {
        self.code = code
        self.offset = offset
    }
}
