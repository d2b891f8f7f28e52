/// Encodes `Encodable` values as JSON for the package's own files, and decodes `Decodable` values
/// from these files.
///
/// The text is the same as that of Foundation's `JSONEncoder` with sorted keys. Foundation itself
/// is not used, because loading it, and its lookup of types at run time, would take longer than a
/// short run.
public enum JSONCoding {
    /// Layout of the encoded text.
    public struct Style: OptionSet, Sendable {
        /// One bit for each choice.
        public let rawValue: UInt8

        /// Creates a layout from its bits.
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        /// A line for each member and element, indented by two blanks.
        public static let pretty = Style(rawValue: 1)
        /// A backslash before each slash.
        public static let escapedSlashes = Style(rawValue: 2)
    }

    /// Returns the text of a value, with sorted keys.
    ///
    /// - Throws: `EncodingError` for a number that is not finite, and errors that the value's own
    ///   code throws.
    public static func encode(_ value: some Encodable, _ style: Style = []) throws -> [UInt8] {
        let root = JSONNode()
        try value.encode(to: JSONNodeEncoder(node: root))
        var writer = JSONWriter(style: style)
        writer.write(root)
        return writer.text
    }

    /// Reads a value from a text.
    ///
    /// - Throws: `JSONError`, `DecodingError`, and errors that the value's own code throws.
    public static func decode<Value: Decodable>(
        _ type: Value.Type, from text: [UInt8]
    ) throws -> Value {
        try Value(from: JSONValueDecoder(value: JSONValue(reading: text)))
    }
}
