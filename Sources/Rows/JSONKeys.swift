import BroadsidePrimitives

/// The keys of a row of JSON Lines, for advice; keys inside objects are given as paths.
public enum JSONKeys {
    /// Maximum number of keys that are read.
    private static let countMax = 100

    /// Returns the keys whose values are not objects, in the order of the text; empty if the text
    /// is not a JSON object.
    ///
    /// - Parameters:
    ///   - isNull: Whether to return only the keys whose values are null.
    ///   - isNameable: Whether to return the keys that can be named. If not, the result has only
    ///     keys inside objects whose paths are ambiguous, because a key on the path contains a dot.
    public static func read(
        _ text: RawSpan, isNull: Bool = false, isNameable: Bool = true
    ) -> [String] {
        var keys: [String] = []
        var path: [String] = []
        var tokenizer = JSONTokenizer()
        do throws(JSONError) {
            guard try tokenizer.next(in: text)?.kind == .objectStart else { return [] }
            while keys.count < countMax, let token = try tokenizer.next(in: text) {
                // The object of the path's last key ends here; objects inside arrays are not on the
                // path.
                if token.kind == .objectEnd, !path.isEmpty, tokenizer.depth == path.count {
                    path.removeLast()
                }
                guard token.kind == .key, tokenizer.depth == path.count + 1 else { continue }
                // SAFETY: the tokenizer found the token's range in this text; the bytes are copied.
                let bytes = unsafe text.withUnsafeBytes { unsafe Array($0[token.range]) }
                path.append(String(decoding: bytes, as: UTF8.self))
                guard let value = try tokenizer.next(in: text) else { return keys }
                if value.kind != .objectStart {
                    let isClear = path.count == 1 || !path.contains { $0.contains(".") }
                    if isClear == isNameable, !isNull || value.kind == .null {
                        keys.append(path.joined(separator: "."))
                    }
                    path.removeLast()
                }
            }
            return keys
        } catch {
            return []
        }
    }
}
