/// A value of a JSON5 text (json5.org, version 1.0.0) with its position.
///
/// It is a tree that is read as a whole, for files of a few kilobytes that people write.
public struct JSON5Value: Sendable, Equatable {
    /// The kinds of values and their contents.
    public indirect enum Content: Sendable, Equatable {
        case null
        case boolean(Bool)
        /// The text of a number in JSON's notation: without a plus sign, and in decimal digits.
        /// `Infinity` and `NaN` are unchanged. The text is kept, so that an option gets `1.50` as
        /// it was written.
        case number(String)
        case string(String)
        case array([JSON5Value])
        case object([Member])
    }

    /// A member of an object.
    public struct Member: Sendable, Equatable {
        /// The name with its escapes resolved.
        public var name: String
        /// The position of the name.
        public var position: JSON5Position
        /// The value of the member.
        public var value: JSON5Value
    }

    /// The content of the value.
    public var content: Content
    /// The position of the first byte.
    public var position: JSON5Position

    /// A description of the value's kind.
    public var kindDescription: String {
        switch content {
        case .null: "null"
        case .boolean(let value): "\(value)"
        case .number: "a number"
        case .string: "a string"
        case .array: "an array"
        case .object: "an object"
        }
    }

    /// The numeric value; nil if this is not a number.
    public var number: Double? {
        guard case .number(let text) = content else { return nil }
        return Double(text)
    }
}

/// A position in a text edited by people: both numbers start from 1, and columns count characters.
public struct JSON5Position: Sendable, Equatable {
    /// The line.
    public var line: Int
    /// The column.
    public var column: Int

    /// Creates a position.
    public init(line: Int, column: Int) {
        self.line = line
        self.column = column
    }
}

/// A violation of the JSON5 grammar, with its position.
public struct JSON5Error: Error, Sendable, Equatable {
    /// The problem and its remedy, without a full stop.
    public var message: String
    /// The position of the violation.
    public var position: JSON5Position
}
