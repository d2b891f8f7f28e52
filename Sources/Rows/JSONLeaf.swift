import BroadsidePrimitives

/// A value in JSON text that is neither an object nor an array, with the path that leads to it.
struct JSONLeaf {
    /// One step of a path: into an object or into an array.
    enum Step: Equatable {
        case key(String)
        case element(Int)

        var isElement: Bool {
            if case .element = self { return true }
            return false
        }
    }

    let path: [Step]
    /// Whether the value is a string.
    let isText: Bool
    /// Whether the value is a device token of usual length.
    let isToken: Bool

    /// Whether any array contains the value.
    var isInArray: Bool { path.contains(where: \.isElement) }

    /// Whether a key on the value's path is a device token of usual length.
    var isBelowToken: Bool {
        path.contains { step in
            if case .key(let key) = step { return ForeignToken.isLongToken(key.utf8) }
            return false
        }
    }

    /// Whether the value is a string, and its key contains "token".
    var isNamedToken: Bool {
        guard isText, case .key(let key)? = path.last else { return false }
        return key.lowercased().contains("token")
    }

    /// Returns the values of a JSON text, in its order, up to the end or the first error.
    static func read(_ text: RawSpan) -> [JSONLeaf] {
        var leaves: [JSONLeaf] = []
        var path: [Step] = []
        var tokenizer = JSONTokenizer()
        while let token = try? tokenizer.next(in: text) {
            // SAFETY: the tokenizer found the token's range in this text; the bytes are copied.
            let bytes = unsafe text.withUnsafeBytes { unsafe Array($0[token.range]) }
            switch token.kind {
            case .key: path[path.count - 1] = .key(String(decoding: bytes, as: UTF8.self))
            case .objectEnd, .arrayEnd: path.removeLast()
            default:
                if case .element(let index)? = path.last {
                    path[path.count - 1] = .element(index + 1)
                }
                switch token.kind {
                case .objectStart: path.append(.key(""))
                case .arrayStart: path.append(.element(-1))
                default:
                    let isText = token.kind == .string
                    leaves.append(
                        JSONLeaf(
                            path: path, isText: isText,
                            isToken: isText && ForeignToken.isLongToken(bytes)))
                }
            }
        }
        return leaves
    }
}
