/// A JSON object on one line, with keys in the order of their addition.
package struct JSONLine {
    private var text = ""

    package init() {}

    /// The text of the object.
    package var object: String { "{\(text)}" }

    package mutating func add(_ key: String, _ value: String?) {
        addRaw(key, value.map(Self.quoted) ?? "null")
    }

    package mutating func add(_ key: String, _ value: UInt64?) {
        addRaw(key, value.map { "\($0)" } ?? "null")
    }

    package mutating func add(_ key: String, _ value: Int) { addRaw(key, "\(value)") }

    package mutating func add(_ key: String, _ value: Bool) { addRaw(key, "\(value)") }

    /// Adds a number with a fixed number of decimals.
    package mutating func add(_ key: String, _ value: Double?, places: Int) {
        addRaw(key, value.map { Self.trimmed(decimal($0, places: places)) } ?? "null")
    }

    package mutating func add(_ key: String, _ value: JSONLine) { addRaw(key, value.object) }

    /// Adds all members of another object.
    package mutating func append(_ other: JSONLine) {
        guard !other.text.isEmpty else { return }
        text += (text.isEmpty ? "" : ",") + other.text
    }

    /// Adds a value that is already JSON.
    package mutating func addRaw(_ key: String, _ value: String) {
        assert(!value.isEmpty, "a key has a value, if only null")
        if !text.isEmpty { text += "," }
        text += "\(Self.quoted(key)):\(value)"
    }

    /// Returns a number without trailing zeros after its decimal point.
    private static func trimmed(_ number: String) -> String {
        guard number.contains(".") else { return number }
        var text = Substring(number)
        while text.hasSuffix("0") { text.removeLast() }
        if text.hasSuffix(".") { text.removeLast() }
        return String(text)
    }

    /// Returns the escape `\uXXXX` of a scalar, which must be at most U+FFFF.
    private static func escape(_ scalar: Unicode.Scalar) -> String {
        let digits = String(scalar.value, radix: 16)
        return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
    }

    /// Escapes bidirectional marks, and control characters from U+007F on, in JSON text from
    /// another encoder. RFC 8259 permits them in strings, but a terminal must not receive them.
    package static func escapingControls(_ json: String) -> String {
        var text = String.UnicodeScalarView()
        for scalar in json.unicodeScalars {
            if ForeignText.isInvisible(scalar), scalar.value >= 0x7f {
                text += escape(scalar).unicodeScalars
            } else {
                text.append(scalar)
            }
        }
        return String(text)
    }

    /// Returns a string in JSON's notation (RFC 8259 section 7), on one line.
    package static func quoted(_ value: String) -> String {
        var text = "\""
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\"": text += "\\\""
            case "\\": text += "\\\\"
            case "\n": text += "\\n"
            case "\r": text += "\\r"
            case "\t": text += "\\t"
            case _ where ForeignText.isInvisible(scalar): text += escape(scalar)
            default: text.unicodeScalars.append(scalar)
            }
        }
        return text + "\""
    }
}
