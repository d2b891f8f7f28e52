import BroadsideAPNs
import BroadsidePrimitives
import BroadsideSupport

/// A payload read for a look at its keys: every member of every object, in the order of the text.
struct PayloadDocument {
    /// A key, its value's kind and its text.
    struct Member {
        /// The keys of the objects round it, from the outside: `["aps", "alert"]`.
        var path: [String]
        var key: String
        /// Where the key's quote stands.
        var keyOffset: Int
        var kind: PayloadKey.Kinds
        /// Where the value starts.
        var valueOffset: Int
        /// A scalar's text, a string's without quotes and escapes.
        var text: String
        /// The kinds of an array's elements.
        var elements: PayloadKey.Kinds = []
        /// Whether the same object had this key before.
        var isRepeated: Bool
        /// Whether rows fill in a part of the text that has no default.
        var isTemplate: Bool
    }

    private(set) var members: [Member] = []

    /// The members of the object that lies at a path.
    func members(of path: [String]) -> [Member] { members.filter { $0.path == path } }

    /// A member by its path; the last of equal keys, as nearly all readers have it.
    func member(_ path: [String], _ key: String) -> Member? {
        members.last { $0.path == path && $0.key == key }
    }

    /// - Parameter payload: one JSON object, as `PayloadCheck.syntaxProblem` found.
    init(_ payload: RawSpan) throws(JSONError) {
        /// An open object's or array's name, and the keys met in it.
        struct Level {
            var name: String
            var keys: Set<String> = []
            /// The member whose array this is.
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
                        isTemplate: sample?.isEmpty == true))
            }
            switch token.kind {
            case .objectStart: levels.append(Level(name: name))
            case .arrayStart:
                // An element's members are nobody's here: their path ends in an empty name.
                levels.append(Level(name: name, array: key == nil ? nil : members.count - 1))
            default: break
            }
            key = nil
        }
    }

    /// What a value is once rows are filled in, and for one that they fill in a text it may have.
    private static func kind(
        _ token: JSONTokenizer.Token, _ payload: RawSpan
    ) -> (kind: PayloadKey.Kinds, sample: String?) {
        guard token.kind == .string else { return (kind(token), nil) }
        let inside = token.range.map { payload.byte(at: $0) }
        // What is not a template was told by who compiled it.
        let pieces = (try? TemplatePiece.divide(inside[...], at: 0, isJSON: true)) ?? []
        // What rows fill in is not known; where all of it has defaults, those may go out.
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

/// What JSON strings say.
enum JSONText {
    /// A token's text; a string's without its escapes. Lone surrogates become U+FFFD.
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

    /// The same of a string's inside.
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
