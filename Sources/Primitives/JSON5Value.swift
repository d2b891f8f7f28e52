/// A value of a JSON5 text (json5.org, version 1.0.0), and where it stands.
///
/// For files that people write, of a few kilobytes: a tree, read whole.
public struct JSON5Value: Sendable, Equatable {
    /// What a value is.
    public indirect enum Content: Sendable, Equatable {
        case null
        case boolean(Bool)
        /// As JSON would write it: no sign of plus, no hexadecimal digits; `Infinity` and `NaN` as they
        /// are. So a number that is an option's value reads as it was written.
        case number(String)
        case string(String)
        case array([JSON5Value])
        case object([Member])
    }

    /// A member of an object.
    public struct Member: Sendable, Equatable {
        /// The name, its escapes resolved.
        public var name: String
        /// Where the name stands.
        public var position: JSON5Position
        /// What it names.
        public var value: JSON5Value
    }

    /// What it is.
    public var content: Content
    /// Where its first byte stands.
    public var position: JSON5Position

    /// What kind of value this is, in words.
    public var words: String {
        switch content {
        case .null: "null"
        case .boolean(let value): "\(value)"
        case .number: "a number"
        case .string: "a string"
        case .array: "an array"
        case .object: "an object"
        }
    }

    /// The value of a number; nil for what is none.
    public var number: Double? {
        guard case .number(let text) = content else { return nil }
        return Double(text)
    }
}

/// A place in a text that a person edits: both from 1, columns counted in characters.
public struct JSON5Position: Sendable, Equatable {
    /// The line.
    public var line: Int
    /// The column.
    public var column: Int

    /// A place.
    public init(line: Int, column: Int) {
        self.line = line
        self.column = column
    }
}

/// Why a text is not JSON5, in words without a full stop, and where.
public struct JSON5Error: Error, Sendable, Equatable {
    /// What is wrong and how to fix it.
    public var message: String
    /// Where it was seen.
    public var position: JSON5Position
}
