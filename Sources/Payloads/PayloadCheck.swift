public import BroadsideAPNs
import BroadsidePrimitives
import BroadsideSupport

/// Checks whether a payload file can be sent, and locates its first mistake.
public enum PayloadCheck {
    /// Problem of a payload.
    public struct Problem: Error, Sendable, Equatable {
        /// Line of the mistake, from 1; nil if it has no location.
        public var line: Int?
        /// Character in the line, from 1, as in an editor; nil if `line` is nil.
        public var column: Int?
        /// Description of the problem and its fix, one line, without file name and location.
        public var message: String

        /// Creates a problem. A problem of the whole payload has neither line nor column.
        public init(line: Int?, column: Int?, message: String) {
            self.line = line
            self.column = column
            self.message = message
        }

        /// Message with file name and location, in the form of a colon-separated error.
        public func description(file: String) -> String {
            guard let line, let column else { return "\(file): \(message)" }
            return "\(file), line \(line), column \(column): \(message)"
        }
    }

    /// Checks that a payload file is one JSON object without a byte-order mark.
    ///
    /// Placeholders are inside strings, so the check also applies to templates.
    public static func syntaxProblem(_ payload: RawSpan) -> Problem? {
        if payload.byteCount == 0 {
            return Problem(line: nil, column: nil, message: "is empty: write a JSON object")
        }
        if let problem = UTF16Text.problem(payload) {
            return Problem(line: nil, column: nil, message: problem)
        }
        if payload.byteCount >= 3, payload.byte(at: 0) == 0xef, payload.byte(at: 1) == 0xbb,
            payload.byte(at: 2) == 0xbf
        {
            return problem(
                payload, 0, "starts with a byte-order mark: save it as UTF-8 without one")
        }
        var start = 0
        while start < payload.byteCount,
            [0x20, 0x09, 0x0a, 0x0d].contains(payload.byte(at: start))
        {
            start += 1
        }
        if start < payload.byteCount, payload.byte(at: start) != UInt8(ascii: "{") {
            return problem(payload, start, "is not a JSON object: it must start with {")
        }
        var tokenizer = JSONTokenizer()
        do throws(JSONError) {
            guard let first = try tokenizer.next(in: payload) else { return nil }
            if first.kind != .objectStart {
                let start = first.kind == .string ? first.start - 1 : first.start
                return problem(payload, start, "is not a JSON object: it must start with {")
            }
            while try tokenizer.next(in: payload) != nil {}
            return nil
        } catch {
            if error.code == .unexpectedCharacter, error.offset > start,
                payload.byte(at: error.offset) == UInt8(ascii: "{"),
                payload.byte(at: error.offset - 1) == UInt8(ascii: "{")
            {
                return problem(
                    payload, error.offset - 1,
                    "{{ is outside a string: write \"{{column:int}}\", which becomes a number")
            }
            if error.code == .unexpectedCharacter, isTypographicQuote(payload, error.offset) {
                return problem(
                    payload, error.offset,
                    "this is a typographic quote, as word processors write it: JSON needs the plain "
                        + "quote \"")
            }
            return problem(payload, error.offset, error.code.rawValue)
        }
    }

    /// Whether a text has one of the quotes “ ” „ ‘ ’ ‚ « » at an offset.
    private static func isTypographicQuote(_ text: RawSpan, _ offset: Int) -> Bool {
        ["“", "”", "„", "‟", "‘", "’", "‚", "«", "»"].contains { quote in
            let bytes = Array(quote.utf8)
            return offset + bytes.count <= text.byteCount
                && bytes.indices.allSatisfy { text.byte(at: offset + $0) == bytes[$0] }
        }
    }

    /// Checks the size of a payload as sent; exactly the limit is allowed.
    ///
    /// - Parameter addition: Note on the byte count in the message.
    static func sizeProblem(count: Int, pushType: PushType, addition: String = "") -> Problem? {
        let limit = PayloadRules.maximumCount(for: pushType)
        if count <= limit { return nil }
        return Problem(
            line: nil, column: nil,
            message:
                "has \(grouped(count)) bytes\(addition), but push type \(pushType.rawValue) allows "
                + "\(grouped(limit)): shorten it")
    }

    /// Checks the size of a payload's constant part, which no row can reduce.
    public static func sizeProblem(_ template: PayloadTemplate, pushType: PushType) -> Problem? {
        sizeProblem(
            count: template.constantCount, pushType: pushType,
            addition: template.isPersonal ? " before its columns are filled in" : "")
    }

    /// Checks the size of a payload for a broadcast channel.
    public static func broadcastSizeProblem(_ template: PayloadTemplate) -> Problem? {
        let limit = BroadcastChannel.payloadCountMax
        guard template.constantCount > limit else { return nil }
        return Problem(
            line: nil, column: nil,
            message:
                "has \(grouped(template.constantCount)) bytes, but a broadcast can have at most "
                + "\(grouped(limit)): shorten it")
    }

    static func problem(_ text: RawSpan, _ offset: Int, _ message: String) -> Problem {
        assert(offset <= text.byteCount, "a problem has an offset within the text")
        var line = 1
        var column = 1
        for position in 0..<min(offset, text.byteCount) {
            let byte = text.byte(at: position)
            if byte == UInt8(ascii: "\n") {
                line += 1
                column = 1
            } else if byte & 0xc0 != 0x80 {
                // Bytes 10xxxxxx continue a character that was counted.
                column += 1
            }
        }
        return Problem(line: line, column: column, message: message)
    }
}
