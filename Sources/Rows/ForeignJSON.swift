/// Kind of a JSON document that is not JSON Lines, with the location of its rows.
public enum ForeignJSON: Sendable, Equatable {
    /// An array of objects; `path` has the keys that lead to it.
    case rows(path: [String], tokenKey: String?)
    /// An array of strings; `path` has the keys that lead to it.
    case texts(path: [String])
    /// An object whose keys are device tokens.
    case tokenKeys
    /// Any other JSON document.
    case other

    /// Maximum depth at which an array is searched for.
    private static let depthLimit = 4

    /// Classifies a JSON document; nil if the text does not begin like one.
    ///
    /// - Parameter firstBytes: Beginning of the document, decompressed.
    public static func detect(_ firstBytes: [UInt8]) -> ForeignJSON? {
        var reader = Reader(text: firstBytes)
        if firstBytes.starts(with: ListFormat.byteOrderMark) { reader.offset = 3 }
        guard let first = reader.next() else { return nil }
        switch first {
        case UInt8(ascii: "["): return array([], &reader)
        case UInt8(ascii: "{"): return object([], &reader)
        default: return nil
        }
    }

    /// Whether each line of a text is a JSON document of its own.
    ///
    /// - Parameter firstBytes: Beginning of the text, decompressed. One line suffices, with the
    ///   first character of the next one.
    public static func isOnePerLine(_ firstBytes: [UInt8]) -> Bool {
        let text = firstBytes.drop { $0 <= 0x20 || ListFormat.byteOrderMark.contains($0) }
        let line = text.prefix { $0 != UInt8(ascii: "\n") }
        guard let next = text[line.endIndex...].first(where: { $0 > 0x20 }),
            next == UInt8(ascii: "{") || next == UInt8(ascii: "[")
        else { return false }
        var (depth, isQuoted, isEscaped) = (0, false, false)
        for byte in line {
            if isEscaped {
                isEscaped = false
            } else if isQuoted {
                isEscaped = byte == UInt8(ascii: "\\")
                isQuoted = byte != UInt8(ascii: "\"")
            } else if byte == UInt8(ascii: "\"") {
                isQuoted = true
            } else if byte == UInt8(ascii: "{") || byte == UInt8(ascii: "[") {
                depth += 1
            } else if byte == UInt8(ascii: "}") || byte == UInt8(ascii: "]") {
                depth -= 1
            }
        }
        return depth == 0
    }

    private static func array(_ path: [String], _ reader: inout Reader) -> ForeignJSON {
        switch reader.next() {
        case UInt8(ascii: "{"): .rows(path: path, tokenKey: reader.tokenKey())
        case UInt8(ascii: "\""): .texts(path: path)
        default: .other
        }
    }

    /// Reads the keys of an object up to the first key whose value is an array or an object.
    private static func object(_ path: [String], _ reader: inout Reader) -> ForeignJSON {
        while reader.next() == UInt8(ascii: "\""), let key = reader.string() {
            if ForeignToken.isLongToken(key) { return path.isEmpty ? .tokenKeys : .other }
            // A key with other characters would need escapes in a command.
            guard let name = plainName(key), reader.next() == UInt8(ascii: ":") else {
                return .other
            }
            switch reader.next() {
            case UInt8(ascii: "["): return array(path + [name], &reader)
            case UInt8(ascii: "{"):
                return path.count < depthLimit ? object(path + [name], &reader) : .other
            case UInt8(ascii: "\""):
                if reader.string() == nil { return .other }
                if reader.next() != UInt8(ascii: ",") { return .other }
            default:
                guard reader.skipScalar() else { return .other }
            }
        }
        return .other
    }

    private static func plainName(_ key: ArraySlice<UInt8>) -> String? {
        let isPlain = key.allSatisfy { byte in
            ForeignToken.isLetterOrDigit(byte) || Array("_-. ".utf8).contains(byte)
        }
        return isPlain ? String(decoding: key, as: UTF8.self) : nil
    }

    /// Cursor over JSON text.
    private struct Reader {
        let text: [UInt8]
        var offset = 0

        init(text: [UInt8]) { self.text = text }

        /// Returns the next byte that is not a blank.
        mutating func next() -> UInt8? {
            while offset < text.count, text[offset] <= 0x20 { offset += 1 }
            guard offset < text.count else { return nil }
            offset += 1
            return text[offset - 1]
        }

        /// Returns the contents of a string after its opening quote; nil if the string has escapes
        /// or no end.
        mutating func string() -> ArraySlice<UInt8>? {
            let start = offset
            while offset < text.count, text[offset] != UInt8(ascii: "\"") {
                if text[offset] == UInt8(ascii: "\\") { return nil }
                offset += 1
            }
            guard offset < text.count else { return nil }
            offset += 1
            return text[start..<offset - 1]
        }

        /// Moves past the comma that follows a number or a literal.
        mutating func skipScalar() -> Bool {
            while offset < text.count, text[offset] != UInt8(ascii: ",") {
                if Array("{}[]\"".utf8).contains(text[offset]) { return false }
                offset += 1
            }
            offset += 1
            return offset < text.count
        }

        /// In an object, the first key that contains "token" and whose value is a string.
        func tokenKey() -> String? {
            var keys = self
            while let quote = keys.text[keys.offset...].firstIndex(of: UInt8(ascii: "\"")) {
                keys.offset = quote + 1
                guard let key = keys.string() else { return nil }
                var value = keys
                guard value.next() == UInt8(ascii: ":"), value.next() == UInt8(ascii: "\"") else {
                    continue
                }
                let name = String(decoding: key, as: UTF8.self)
                if name.lowercased().contains("token") { return plainName(key) }
            }
            return nil
        }
    }

    /// Name of this kind of document, with an article, for messages.
    public var name: String {
        switch self {
        case .rows(let path, _), .texts(let path):
            path.isEmpty ? "a JSON array, not JSON Lines" : "a JSON document, not JSON Lines"
        case .tokenKeys: "a JSON object whose keys are device tokens"
        case .other: "a JSON document, not JSON Lines"
        }
    }

    /// Advice on converting the document to a list.
    ///
    /// - Parameters:
    ///   - tokenColumn: Name of the wanted key.
    ///   - isOnePerLine: Whether each line of the file is such a document.
    public func remedy(
        _ command: ListCommand, tokenColumn: String, isOnePerLine: Bool = false
    ) -> String {
        switch self {
        case .rows(let path, let key):
            let keys = path.map { "[\"\($0)\"]" }.joined()
            // jq 1.6 and earlier versions change large numbers.
            let rows =
                isOnePerLine
                ? "for l in open(0,\"rb\") if l.strip() for r in json.loads(l)\(keys)"
                : "for r in json.load(open(0,\"rb\"))\(keys)"
            let program = "import json; [print(json.dumps(r)) \(rows)]"
            let name =
                key.flatMap { $0 == tokenColumn ? nil : $0 }.map { key in
                    let isWord = key.utf8.allSatisfy(ForeignToken.isLetterOrDigit)
                    return " (its tokens need --token-column \(isWord ? key : "'\(key)'"))"
                } ?? ""
            return "write one object per line\(name), such as "
                + command.filter("python3 -c '\(program)'", to: "jsonl")
        case .texts(let path):
            let keys = path.map { "[\"\($0)\"]" }.joined()
            return "write one token per line, such as "
                + command.filter("jq -r '.\(keys)[]'", to: "txt")
        case .tokenKeys:
            return "write one token per line, such as "
                + command.filter("jq -r 'keys_unsorted[]'", to: "txt")
        case .other: return "write each row as an object on a line of its own, as jq -c does"
        }
    }
}
