import BroadsidePrimitives

extension FuzzTarget {
    /// A campaign file or a scenario: what is read is written again, and read the same.
    static let json5 = FuzzTarget(name: "json5") { bytes in
        let value: JSON5Value
        do throws(JSON5Error) {
            value = try JSON5Reader.read(bytes)
        } catch {
            precondition(error.position.line >= 1 && error.position.column >= 1)
            precondition(error.position.line <= bytes.count + 1)
            precondition(!error.message.isEmpty)
            return
        }
        precondition(depth(value) <= JSON5Reader.maximumDepth + 1)
        let written = text(value)
        guard let again = try? JSON5Reader.read(Array(written.utf8)) else {
            preconditionFailure("what was read can't be read again")
        }
        precondition(text(again) == written, "a value changed by being written")
    }

    private static func depth(_ value: JSON5Value) -> Int {
        switch value.content {
        case .array(let values): 1 + (values.map(depth).max() ?? 0)
        case .object(let members): 1 + (members.map { depth($0.value) }.max() ?? 0)
        case .null, .boolean, .number, .string: 0
        }
    }

    private static func text(_ value: JSON5Value) -> String {
        switch value.content {
        case .null: "null"
        case .boolean(let isTrue): isTrue ? "true" : "false"
        case .number(let number): number
        case .string(let string): quoted(string)
        case .array(let values): "[" + values.map(text).joined(separator: ",") + "]"
        case .object(let members):
            "{" + members.map { quoted($0.name) + ":" + text($0.value) }.joined(separator: ",")
                + "}"
        }
    }

    private static func quoted(_ string: String) -> String {
        "\""
            + string.unicodeScalars.map { scalar in
                guard
                    scalar.value < 0x20 || scalar.value == 0x7f
                        || "\"\\".contains(Character(scalar))
                else { return String(scalar) }
                let digits = String(scalar.value, radix: 16)
                return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            }.joined() + "\""
    }
}
