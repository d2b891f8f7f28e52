import BroadsideAPNs
import BroadsidePrimitives
import BroadsideSupport

/// A parsed payload: every member of every object, in the order of the text.
struct PayloadDocument {
    /// A key, with the kind and text of its value.
    struct Member {
        /// The keys of the enclosing objects, outermost first: `["aps", "alert"]`.
        var path: [String]
        var key: String
        /// Offset of the key's opening quote.
        var keyOffset: Int
        var kind: PayloadKey.Kinds
        /// Offset of the value.
        var valueOffset: Int
        /// Text of a scalar; for a string, without quotes and escapes.
        var text: String
        /// Kinds of an array's elements.
        var elements: PayloadKey.Kinds = []
        /// Whether the key occurred before in the same object.
        var isRepeated: Bool
        /// Whether the text has a placeholder without a default. If so, rows provide part of it.
        var isTemplate: Bool
        /// Whether the value is a placeholder with the type of a number or boolean. If so, `text`
        /// is the default or a sample.
        var isTypedTemplate: Bool
    }

    private(set) var members: [Member] = []

    /// Members of the object at a path.
    func members(of path: [String]) -> [Member] { members.filter { $0.path == path } }

    /// Member at a path; the last of equal keys, like in nearly all parsers.
    func member(_ path: [String], _ key: String) -> Member? {
        members.last { $0.path == path && $0.key == key }
    }

    /// - Parameter payload: One JSON object that passed `PayloadCheck.syntaxProblem`.
    init(_ payload: RawSpan) throws(JSONError) {
        /// Name of an open object or array, and the keys found in it.
        struct Level {
            var name: String
            var keys: Set<String> = []
            /// For an array: index of the member whose value is the array.
            var array: Int?
        }
        var levels: [Level] = []
        var key: JSONTokenizer.Token?
        var tokenizer = JSONTokenizer()
        while let token = try tokenizer.next(in: payload) {
            if token.kind == .key {
                key = token
                continue
            }
            if token.kind == .objectEnd || token.kind == .arrayEnd {
                levels.removeLast()
                continue
            }
            let (kind, sample) = Self.kind(token, payload)
            if let array = levels.last?.array { members[array].elements.insert(kind) }
            var name = ""
            if let given = key {
                name = JSONText.decoded(payload, given)
                let isNew = levels[levels.count - 1].keys.insert(name).inserted
                let start = token.kind == .string ? token.start - 1 : token.start
                members.append(
                    Member(
                        path: levels.dropFirst().map(\.name), key: name,
                        keyOffset: given.start - 1, kind: kind, valueOffset: start,
                        text: sample ?? JSONText.decoded(payload, token), isRepeated: !isNew,
                        isTemplate: sample?.isEmpty == true,
                        isTypedTemplate: token.kind == .string && kind != .string))
            }
            switch token.kind {
            case .objectStart: levels.append(Level(name: name))
            case .arrayStart:
                // Members inside an array element are not looked up: their path ends in an empty
                // name.
                levels.append(Level(name: name, array: key == nil ? nil : members.count - 1))
            default: break
            }
            key = nil
        }
        assert(levels.isEmpty && key == nil, "each level ends, and each key has a value")
    }

    /// Kind of a value after templates are filled in, and a sample text for a templated value.
    private static func kind(
        _ token: JSONTokenizer.Token, _ payload: RawSpan
    ) -> (kind: PayloadKey.Kinds, sample: String?) {
        guard token.kind == .string else { return (kind(token), nil) }
        let inside = token.range.map { payload.byte(at: $0) }
        // Invalid templates are reported when they are compiled.
        let pieces = (try? TemplatePiece.divide(inside[...], at: 0, isJSON: true)) ?? []
        // Values of rows are unknown, but if all placeholders have defaults, those may be sent.
        var text: [UInt8]? = []
        var isTemplate = false
        for piece in pieces {
            switch piece {
            case .constant(let bytes): text? += bytes
            case .placeholder(let placeholder):
                isTemplate = true
                if pieces.count == 1, !placeholder.kind.isText {
                    let written = placeholder.fallback.map { String(decoding: $0, as: UTF8.self) }
                    return placeholder.kind == .integer
                        ? (.number, written ?? "1") : (.boolean, written ?? "true")
                }
                if let fallback = placeholder.fallback {
                    text? += fallback
                } else {
                    text = nil
                }
            }
        }
        guard isTemplate else { return (.string, nil) }
        return (.string, text.map(JSONText.decoded) ?? "")
    }

    private static func kind(_ token: JSONTokenizer.Token) -> PayloadKey.Kinds {
        switch token.kind {
        case .objectStart: .object
        case .arrayStart: .array
        case .string: .string
        case .number: .number
        case .true_, .false_: .boolean
        default: .null
        }
    }
}

/// Decoding of JSON strings.
enum JSONText {
    /// Text of a token; for a string, without escapes. Unpaired surrogates become U+FFFD.
    static func decoded(_ text: RawSpan, _ token: JSONTokenizer.Token) -> String {
        var units: [UInt16] = []
        var bytes: [UInt8] = []
        var result = ""
        func endBytes() {
            result += String(decoding: bytes, as: UTF8.self)
            bytes = []
        }
        func endUnits() {
            result += String(decoding: units, as: UTF16.self)
            units = []
        }
        var offset = token.start
        while offset < token.range.upperBound {
            let byte = text.byte(at: offset)
            guard token.hasEscapes, byte == UInt8(ascii: "\\") else {
                endUnits()
                bytes.append(byte)
                offset += 1
                continue
            }
            let letter = text.byte(at: offset + 1)
            offset += 2
            if letter == UInt8(ascii: "u") {
                endBytes()
                let digits = (0..<4).map { text.byte(at: offset + $0) }
                units.append(UInt16(String(decoding: digits, as: UTF8.self), radix: 16) ?? 0xfffd)
                offset += 4
                continue
            }
            endUnits()
            bytes.append(escapes[letter] ?? letter)
        }
        endBytes()
        endUnits()
        return result
    }

    /// Decodes the JSON string whose opening quote is at an offset.
    static func decoded(_ text: RawSpan, stringAt offset: Int) -> String {
        let (quote, backslash) = (UInt8(ascii: "\""), UInt8(ascii: "\\"))
        var (end, hasEscapes) = (offset + 1, false)
        while text.byte(at: end) != quote {
            let isEscape = text.byte(at: end) == backslash
            hasEscapes = hasEscapes || isEscape
            end += isEscape ? 2 : 1
        }
        return decoded(
            text,
            JSONTokenizer.Token(
                kind: .string, start: offset + 1, count: end - offset - 1, hasEscapes: hasEscapes))
    }

    /// Decodes a JSON string, given the bytes between its quotes.
    static func decoded(_ inside: [UInt8]) -> String {
        let token = JSONTokenizer.Token(
            kind: .string, start: 0, count: inside.count,
            hasEscapes: inside.contains(UInt8(ascii: "\\")))
        return decoded(inside.rawSpan, token)
    }

    private static let escapes: [UInt8: UInt8] = [
        UInt8(ascii: "b"): 8, UInt8(ascii: "f"): 12, UInt8(ascii: "n"): 10,
        UInt8(ascii: "r"): 13, UInt8(ascii: "t"): 9,
    ]
}
