/// A violation of the JSON grammar of RFC 8259.
public struct JSONError: Error, Equatable, Sendable {
    /// The kinds of violations.
    public enum Code: String, Sendable {
        /// The text ends inside a value.
        case unexpectedEnd = "the text ends too early"
        /// A byte that is not permitted at its position.
        case unexpectedCharacter =
            "this character is not allowed here: look for an extra comma, a missing comma, or a wrong kind of quote"
        /// Text after the end of the value.
        case trailingText = "text after the end of the JSON value"
        /// An unescaped control character, below U+0020, in a string (RFC 8259 section 7).
        case controlCharacter = "a control character inside a string must be escaped"
        /// An escape that RFC 8259 section 7 does not define.
        case badEscape = "unknown escape in a string"
        /// Bytes that are not UTF-8, which RFC 8259 section 8.1 requires.
        case badUTF8 = "the text is not UTF-8 here"
        /// A number that is not in the form of RFC 8259 section 6.
        case badNumber = "this is not a JSON number"
        /// Nesting beyond the tokenizer's limit.
        case tooDeep = "values are nested too deeply"
    }

    /// The kind of the violation.
    public var code: Code
    /// Offset of the byte at which the violation was detected, from 0.
    public var offset: Int

    /// Creates an error.
    init(_ code: Code, at offset: Int) {
        self.code = code
        self.offset = offset
    }
}
