/// A violation of the JSON grammar of RFC 8259.
public struct JSONError: Error, Equatable, Sendable {
    /// The kinds of violations.
    public enum Code: String, Sendable {
        /// The text ends inside a value.
        case unexpectedEnd = "the text ends too early"
        /// A byte that is not permitted at its position.
        case unexpectedCharacter =
            "this character is not allowed here: look for a comma too many or too few, or another kind of quote"
        /// Text after the end of the value.
        case trailingText = "text after the end of the JSON value"
        /// RFC 8259 section 7: characters below U+0020 must be escaped in a string.
        case controlCharacter = "a control character inside a string must be escaped"
        /// RFC 8259 section 7 defines the escapes.
        case badEscape = "unknown escape in a string"
        /// RFC 8259 section 8.1 requires UTF-8.
        case badUTF8 = "the text is not UTF-8 here"
        /// RFC 8259 section 6.
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
