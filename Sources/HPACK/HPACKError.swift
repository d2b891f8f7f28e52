/// Error in a header block.
///
/// In HTTP/2 each of these is a connection error COMPRESSION_ERROR (RFC 9113 section 4.3), because
/// the two tables may no longer agree.
public struct HPACKError: Error, Equatable, Sendable {
    /// Violated rule of RFC 7541.
    public enum Code: Sendable, Equatable {
        /// The block ends inside an integer or a string.
        case truncated
        /// An integer is above 2^24 (RFC 7541 section 5.1 lets an implementation set the limit).
        case integerTooLarge
        /// Index 0 is used where it has no meaning (RFC 7541 section 6.1).
        case indexZero
        /// A size update follows a field (RFC 7541 section 4.2).
        case sizeUpdateNotFirst
        /// The padding of a Huffman-coded string is longer than 7 bits or not all ones (RFC 7541
        /// section 5.2).
        case huffmanPadding
        /// A Huffman-coded string contains EOS (RFC 7541 section 5.2).
        case huffmanEndOfString
        /// A Huffman-coded string is longer than the reader's buffer.
        case stringTooLong
    }

    /// The violated rule.
    public var code: Code
    /// Offset in bytes from the start of the block or string.
    public var offset: Int

    /// Creates an error for a violation of `code` at `offset`.
    @inlinable
    public init(code: Code, offset: Int) {
        self.code = code
        self.offset = offset
    }
}
