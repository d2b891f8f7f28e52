internal import BroadsideSupport

/// Kind of a JSON document that is not JSON Lines, with the location of its rows.
public enum ForeignJSON: Sendable, Equatable {
    /// An array of objects; `path` has the keys that lead to it. If `isKeyed`, the objects are the
    /// values of an object, whose keys are IDs.
    case rows(path: [String], isKeyed: Bool, tokenKey: String?)
    /// An array of strings, or of rows that are arrays; `path` has the keys that lead to it. If
    /// `isKeyed`, the strings are the values of an object. `elements` is the end of the jq filter
    /// that extracts them.
    case texts(path: [String], isKeyed: Bool, elements: String)
    /// An object whose keys are device tokens. If `isNested`, such objects are inside the document.
    case tokenKeys(isNested: Bool)
    /// Any other JSON document.
    case other

    /// Classifies a JSON document; nil if the text does not begin like one.
    ///
    /// - Parameter firstBytes: Beginning of the document, decompressed.
    public static func detect(_ firstBytes: [UInt8]) -> ForeignJSON? {
        let mark = ListFormat.byteOrderMark
        let text = firstBytes.dropFirst(firstBytes.starts(with: mark) ? mark.count : 0)
        guard let first = text.first(where: { $0 > 0x20 }), Array("[{".utf8).contains(first)
        else { return nil }
        let isOnePerLine = isOnePerLine(firstBytes)
        let documents = isOnePerLine ? text.split(separator: UInt8(ascii: "\n")) : [text]
        let leaves = documents.flatMap { JSONLeaf.read(Array($0).rawSpan) }
        if case .key(let key)? = leaves.first?.path.first, ForeignToken.isLongToken(key.utf8) {
            return .tokenKeys(isNested: false)
        }
        if leaves.contains(where: \.isBelowToken), !leaves.contains(where: \.isToken) {
            return .tokenKeys(isNested: true)
        }
        return locate(leaves, isOnePerLine: isOnePerLine)
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
        return endOfDocument(line, isFirst: false) != nil
    }

    /// Whether a text begins with several JSON objects on one line, as Amazon Data Firehose writes
    /// them.
    ///
    /// - Parameter firstBytes: Beginning of the text, decompressed. Two objects suffice, the second
    ///   with its first character.
    public static func areObjectsOnOneLine(_ firstBytes: [UInt8]) -> Bool {
        let text = firstBytes.drop { $0 <= 0x20 || ListFormat.byteOrderMark.contains($0) }
        let line = text.prefix { $0 != UInt8(ascii: "\n") }
        guard line.first == UInt8(ascii: "{"), let end = endOfDocument(line, isFirst: true)
        else { return false }
        return line[end...].first { $0 > 0x20 } == UInt8(ascii: "{")
    }

    /// Returns the index after a JSON array or object at which no array or object is open; nil if
    /// the text ends within one.
    ///
    /// - Parameter isFirst: Whether the first such index is meant, not the end of the text.
    private static func endOfDocument(_ text: ArraySlice<UInt8>, isFirst: Bool) -> Int? {
        var (depth, isQuoted, isEscaped) = (0, false, false)
        for (index, byte) in zip(text.indices, text) {
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
                if depth == 0, isFirst { return index + 1 }
            }
        }
        return depth == 0 ? text.endIndex : nil
    }

    /// Finds the rows of a document by the paths of its device tokens. Without device tokens, a
    /// string in an array shows where the rows are.
    private static func locate(_ leaves: [JSONLeaf], isOnePerLine: Bool) -> ForeignJSON {
        let tokens = leaves.filter(\.isToken)
        let listed = leaves.filter(\.isInArray)
        // Next to a row's token, an array may have older tokens.
        let named = isOnePerLine ? tokens.filter(\.isNamedToken) : []
        var found = named.isEmpty ? tokens : named
        if found.contains(where: \.isInArray) { found = found.filter(\.isInArray) }
        if found.isEmpty { found = listed.filter(\.isNamedToken) }
        if found.isEmpty, !isOnePerLine { found = listed.filter(\.isText) }
        guard let leaf = found.last(where: \.isNamedToken) ?? found.last else { return .other }
        let path = leaf.path
        let similar = found.filter { $0.path.count == path.count }
        let alike = similar.filter { $0.path.last == path.last }
        // Rows are the elements of the outermost array, or the values under different keys.
        var level = path.indices.first { index in
            path[index].isElement || alike.contains { $0.path[index] != path[index] }
        }
        var isToken = level != nil && (leaf.isToken || leaf.isNamedToken)
        if level == nil, !isOnePerLine {
            level = path.indices.first { index in
                similar.contains { $0.path[index] != path[index] }
            }
        }
        guard let level, let keys = plainNames(path[..<level]) else { return .other }
        let isKeyed = !path[level].isElement
        // An object on a line of its own is a row, whose keys are columns.
        if isOnePerLine, isKeyed, level == 0 { return .other }
        let rest = path[(level + 1)...]
        if !rest.isEmpty, rest.first?.isElement == false {
            isToken = isToken && alike.allSatisfy { $0.path[(level + 1)...] == rest }
            let tokenKey = isToken ? plainNames(rest)?.joined(separator: ".") : nil
            return .rows(path: keys, isKeyed: isKeyed, tokenKey: tokenKey)
        }
        guard rest.count <= 1 else { return .other }
        let outer = rest.isEmpty ? "" : "[]"
        let isRow = !rest.isEmpty || isOnePerLine && path.count == 1
        let cell = isRow ? position(of: leaf, among: leaves).map { "[\($0)]" } : nil
        return .texts(path: keys, isKeyed: isKeyed, elements: outer + (cell ?? "[]"))
    }

    /// Returns the index of the tokens in rows that are arrays; nil if the rows have only tokens.
    private static func position(of leaf: JSONLeaf, among leaves: [JSONLeaf]) -> Int? {
        guard case .element(let index)? = leaf.path.last else { return nil }
        let cells = leaves.filter { $0.path.count == leaf.path.count }
        let isAlone = cells.allSatisfy { !$0.isToken || $0.path.last == leaf.path.last }
        return isAlone && cells.contains { !$0.isToken } ? index : nil
    }

    /// Returns the keys of a path; nil if a step is not a key. Also nil if a key would need escapes
    /// in a command, or is a device token.
    private static func plainNames(_ path: ArraySlice<JSONLeaf.Step>) -> [String]? {
        var names: [String] = []
        for step in path {
            guard case .key(let name) = step, !ForeignToken.isLongToken(name.utf8),
                name.utf8.allSatisfy({ byte in
                    ForeignToken.isLetterOrDigit(byte) || Array("_-. ".utf8).contains(byte)
                })
            else { return nil }
            names.append(name)
        }
        return names
    }

    /// Name of this kind of document, with an article, for messages.
    public var name: String {
        switch self {
        case .rows(let path, let isKeyed, _), .texts(let path, let isKeyed, _):
            path.isEmpty && !isKeyed
                ? "a JSON array, not JSON Lines" : "a JSON document, not JSON Lines"
        case .tokenKeys(let isNested):
            isNested
                ? "a JSON document in which keys are device tokens"
                : "a JSON object whose keys are device tokens"
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
        case .rows(let path, let isKeyed, let key):
            // jq 1.6 and earlier versions change large numbers.
            let program =
                isOnePerLine && !path.isEmpty
                ? Self.mergingProgram(path, isKeyed: isKeyed)
                : Self.program(path, isKeyed: isKeyed, isOnePerLine: isOnePerLine)
            let name =
                key.flatMap { $0 == tokenColumn ? nil : $0 }.map { key in
                    let isWord = key.utf8.allSatisfy(ForeignToken.isLetterOrDigit)
                    return " (its tokens need --token-column \(isWord ? key : "'\(key)'"))"
                } ?? ""
            return "write one object per line\(name), such as "
                + command.filter("python3 -c '\(program)'", to: "jsonl")
        case .texts(let path, _, let elements):
            let keys = path.map { "[\"\($0)\"]" }.joined()
            // With a question mark, jq skips a line without the array.
            return "write one token per line, such as "
                + command.filter(
                    "jq -r '.\(keys)\(elements)\(isOnePerLine ? "?" : "")'", to: "txt")
        case .tokenKeys(let isNested):
            let (objects, tokens) =
                isNested
                ? (
                    ".. | objects | ",
                    " | select(test(\"^[0-9A-Fa-f]{\(ForeignToken.longDigitCount),}$\"))"
                ) : ("", "")
            return "write one token per line, such as "
                + command.filter("jq -r '\(objects)keys_unsorted[]\(tokens)'", to: "txt")
        case .other: return "write each row as an object on a line of its own, as jq -c does"
        }
    }

    /// Returns a Python program that prints the rows of a document. In a document of one line, the
    /// rows are the elements of an array.
    private static func program(
        _ path: [String], isKeyed: Bool, isOnePerLine: Bool
    ) -> String {
        let keys = path.map { "[\"\($0)\"]" }.joined()
        let values = isKeyed ? ".values()" : ""
        let rows =
            isOnePerLine
            ? "for l in open(0,\"rb\") if l.strip() for r in json.loads(l)"
            : "for r in json.load(open(0,\"rb\"))\(keys)\(values)"
        return "import json; [print(json.dumps(r)) \(rows)]"
    }

    /// Returns a Python program that prints the rows of documents of one line, such as the devices
    /// of a user. Each row gets the other keys of its document, such as the user's name. Some
    /// documents may lack a key, or have null instead of rows.
    private static func mergingProgram(_ path: [String], isKeyed: Bool) -> String {
        var loops = "for l in open(0,\"rb\") if l.strip()"
        var (value, others) = ("json.loads(l)", "")
        for (depth, key) in path.enumerated() {
            loops += " for d\(depth) in [\(value)]"
            others += "**{k:v for k,v in d\(depth).items() if k!=\"\(key)\"},"
            let absent = depth < path.count - 1 || isKeyed ? "{}" : "[]"
            value = "d\(depth).get(\"\(key)\") or \(absent)"
        }
        loops += " for r in (\(value))\(isKeyed ? ".values()" : "") if r"
        return "import json; [print(json.dumps({\(others)**r})) \(loops)]"
    }
}
