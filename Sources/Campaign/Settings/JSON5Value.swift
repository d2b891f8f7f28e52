/// A value of a JSON5 text, and where it stands.
public struct JSON5Value: Sendable, Equatable {
    /// What it is.
    public enum Kind: Sendable, Equatable {
        case null
        case boolean(Bool)
        /// A number as JSON would write it: no sign of plus, no hexadecimal digits. `Infinity` and
        /// `NaN` as they are.
        case number(String)
        case string(String)
        case array([JSON5Value])
        case object([Member])
    }

    /// A key and its value.
    public struct Member: Sendable, Equatable {
        /// The key.
        public var key: String
        /// Where it stands.
        public var place: Place
        /// Its value.
        public var value: JSON5Value
    }

    /// A place in a text, as an editor counts: both from 1.
    public struct Place: Sendable, Equatable {
        /// The line.
        public var line: Int
        /// The character in that line.
        public var column: Int

        /// Makes a place.
        public init(line: Int, column: Int) {
            self.line = line
            self.column = column
        }
    }

    /// Why a text is no JSON5.
    public struct Problem: Error, Sendable, Equatable {
        /// Where.
        public var place: Place
        /// What is wrong and how to mend it, one line.
        public var message: String
    }

    /// What it is.
    public var kind: Kind
    /// Where it begins.
    public var place: Place

    /// What kind of value this is, in words.
    public var words: String {
        switch kind {
        case .null: "null"
        case .boolean(let value): "\(value)"
        case .number: "a number"
        case .string: "a string"
        case .array: "an array"
        case .object: "an object"
        }
    }
}
