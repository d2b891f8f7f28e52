/// A value that is being encoded.
final class JSONNode {
    enum Content {
        /// Nothing was encoded. The value is written as an object without members.
        case none
        /// A number or word, as written.
        case word(String)
        case string(String)
        case array([JSONNode])
        case object([String: JSONNode])
    }

    var content = Content.none

    /// Makes this an array, if it is not one already.
    func becomeArray() {
        if case .array = content { return }
        content = .array([])
    }

    /// Makes this an object, if it is not one already.
    func becomeObject() {
        if case .object = content { return }
        content = .object([:])
    }

    /// Adds an element to an array.
    func appendElement() -> JSONNode {
        guard case .array(var elements) = content else {
            preconditionFailure("elements belong to an array")
        }
        let node = JSONNode()
        content = .none
        elements.append(node)
        content = .array(elements)
        return node
    }

    /// Adds a member to an object, which has no member of this name yet.
    func setMember(_ name: String) -> JSONNode {
        guard case .object(var members) = content else {
            preconditionFailure("members belong to an object")
        }
        assert(members[name] == nil, "a member is written once")
        let node = JSONNode()
        content = .none
        members[name] = node
        content = .object(members)
        return node
    }
}

/// Writes encoded values as text.
struct JSONWriter {
    let style: JSONCoding.Style
    private(set) var text: [UInt8] = []
    private var depth = 0

    init(style: JSONCoding.Style) { self.style = style }

    mutating func write(_ node: JSONNode) {
        switch node.content {
        case .none: writeObject([:])
        case .word(let word): text += word.utf8
        case .string(let string): write(string)
        case .array(let elements): writeArray(elements)
        case .object(let members): writeObject(members)
        }
    }

    private mutating func writeArray(_ elements: [JSONNode]) {
        open("[")
        for (index, element) in elements.enumerated() {
            beginItem(isFirst: index == 0)
            write(element)
        }
        close("]")
    }

    private mutating func writeObject(_ members: [String: JSONNode]) {
        open("{")
        var isFirst = true
        for (name, value) in members.sorted(by: Self.isBefore) {
            beginItem(isFirst: isFirst)
            isFirst = false
            write(name)
            text += (style.contains(.pretty) ? " : " : ":").utf8
            write(value)
        }
        close("}")
    }

    /// Whether the first name precedes the second: names are ordered by their bytes, as Foundation
    /// sorts them.
    private static func isBefore(
        _ first: (key: String, value: JSONNode), _ second: (key: String, value: JSONNode)
    ) -> Bool { first.key.utf8.lexicographicallyPrecedes(second.key.utf8) }

    private mutating func open(_ bracket: Unicode.Scalar) {
        text.append(UInt8(ascii: bracket))
        depth += 1
        if style.contains(.pretty) { text.append(UInt8(ascii: "\n")) }
    }

    private mutating func beginItem(isFirst: Bool) {
        if !isFirst { text += (style.contains(.pretty) ? ",\n" : ",").utf8 }
        indent()
    }

    private mutating func close(_ bracket: Unicode.Scalar) {
        depth -= 1
        assert(depth >= 0, "each bracket is closed once")
        if style.contains(.pretty) { text.append(UInt8(ascii: "\n")) }
        indent()
        text.append(UInt8(ascii: bracket))
    }

    private mutating func indent() {
        guard style.contains(.pretty) else { return }
        text.append(contentsOf: repeatElement(UInt8(ascii: " "), count: 2 * depth))
    }

    private mutating func write(_ string: String) {
        text.append(UInt8(ascii: "\""))
        for byte in string.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): text += [UInt8(ascii: "\\"), byte]
            case UInt8(ascii: "/") where style.contains(.escapedSlashes): text += "\\/".utf8
            case 0x08: text += "\\b".utf8
            case 0x0c: text += "\\f".utf8
            case UInt8(ascii: "\n"): text += "\\n".utf8
            case UInt8(ascii: "\r"): text += "\\r".utf8
            case UInt8(ascii: "\t"): text += "\\t".utf8
            case 0..<0x20:
                text += (byte < 0x10 ? "\\u000" : "\\u00").utf8
                text += String(byte, radix: 16).utf8
            default: text.append(byte)
            }
        }
        text.append(UInt8(ascii: "\""))
    }
}
