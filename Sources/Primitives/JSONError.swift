/// What a reader of JSON throws: text that breaks the grammar of RFC 8259.
public struct JSONError: Error, Equatable, Sendable {
    /// What is wrong.
    public enum Code: String, Sendable {
        /// The text ends inside a value.
        case unexpectedEnd = "the text ends too early"
        /// A byte that cannot stand where it stands.
        case unexpectedCharacter =
            "this character is not allowed here: look for a comma too many or too few, or another kind of quote"
        /// Text after the value's end.
        case trailingText = "text after the end of the JSON value"
        /// RFC 8259 section 7: characters below U+0020 are escaped in a string.
        case controlCharacter = "a control character inside a string must be escaped"
        /// RFC 8259 section 7 names the escapes.
        case badEscape = "unknown escape in a string"
        /// RFC 8259 section 8.1: UTF-8.
        case badUTF8 = "the text is not UTF-8 here"
        /// RFC 8259 section 6.
        case badNumber = "this is not a JSON number"
        /// Nesting beyond what the tokenizer follows.
        case tooDeep = "values are nested too deeply"
    }

    /// What is wrong.
    public var code: Code
    /// The byte at which it was noticed, from 0.
    public var offset: Int

    /// Makes an error.
    init(_ code: Code, at offset: Int) {
        self.code = code
        self.offset = offset
    }
}
