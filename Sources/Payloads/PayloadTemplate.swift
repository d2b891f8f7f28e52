import BroadsideSupport

/// A compiled payload: the constant bytes, and the positions of each row's values.
///
///     {"aps":{"alert":"Hi {{name|friend}}","badge":"{{badge:int}}"}}
///     '---- constant ----' placeholder '--- constant ---' placeholder '-- tail --'
///
/// Blanks between tokens are omitted; every other byte of the constants is unchanged.
public struct PayloadTemplate: Sendable, Equatable {
    /// Constant bytes, and the placeholder that follows the bytes.
    struct Segment: Sendable, Equatable {
        var constant: [UInt8]
        var placeholder: Placeholder
    }

    /// A column that a template uses, and the location of its first use.
    public struct Use: Sendable, Equatable {
        /// Name of the column.
        public var column: String
        /// Line of the placeholder, from 1.
        public var line: Int
        /// Character in the line, from 1.
        public var character: Int
    }

    let segments: [Segment]
    let tail: [UInt8]
    /// Number of constant bytes.
    public let constantCount: Int
    /// Columns in use, each once.
    public let uses: [Use]

    /// Maximum number of placeholders of a payload.
    public static let placeholderLimit = 256

    /// Whether payloads differ per row.
    public var isPersonal: Bool { !segments.isEmpty }

    /// Column whose values are shortened so that the payload fits; nil: none.
    public var fittedColumn: String? {
        segments.first { $0.placeholder.kind == .fit }?.placeholder.column
    }

    /// Whether a row without a value in a column still gets this payload: each placeholder of the
    /// column has a default.
    public func hasDefault(for column: String) -> Bool {
        segments.allSatisfy { $0.placeholder.column != column || $0.placeholder.fallback != nil }
    }

    /// Whole payload of a template without placeholders.
    public var constantPayload: [UInt8] { segments.flatMap(\.constant) + tail }

    /// Compiles a payload that passed `PayloadCheck.syntaxProblem`.
    ///
    /// - Parameter checksValues: Whether a row is invalid if its value makes a badge below 0 or an
    ///   unknown interruption level.
    public init(
        _ payload: RawSpan, checksValues: Bool = true
    ) throws(PayloadCheck.Problem) {
        var compiler = TemplateCompiler()
        do throws(TemplateError) {
            try compiler.compile(payload)
        } catch {
            throw PayloadCheck.problem(payload, error.offset, error.message)
        }
        if checksValues { compiler.restrictValues(of: payload) }
        var uses: [Use] = []
        for segment in compiler.segments
        where !uses.contains(where: { $0.column == segment.placeholder.column }) {
            let location = PayloadCheck.problem(payload, segment.placeholder.offset, "")
            uses.append(
                Use(
                    column: segment.placeholder.column, line: location.line ?? 1,
                    character: location.column ?? 1))
        }
        self.init(segments: compiler.segments, tail: compiler.constant, uses: uses)
    }

    init(segments: [Segment], tail: [UInt8], uses: [Use]) {
        self.segments = segments
        self.tail = tail
        self.uses = uses
        constantCount = segments.reduce(tail.count) { $0 + $1.constant.count }
        assert(Set(uses.map(\.column)).count == uses.count, "a column is listed once")
        assert(
            segments.allSatisfy { segment in
                uses.contains { $0.column == segment.placeholder.column }
            }, "each placeholder's column is listed")
        assert(segments.count { $0.placeholder.kind == .fit } <= 1, "one value is shortened")
    }
}

/// Splits a well-formed payload at its placeholders.
private struct TemplateCompiler {
    var segments: [PayloadTemplate.Segment] = []
    /// Bytes after the last placeholder.
    var constant: [UInt8] = []

    mutating func compile(_ payload: RawSpan) throws(TemplateError) {
        var offset = 0
        while offset < payload.byteCount {
            let byte = payload.byte(at: offset)
            offset += 1
            switch byte {
            case 0x20, 0x09, 0x0a, 0x0d: break
            case UInt8(ascii: "\""):
                let start = offset
                while payload.byte(at: offset) != byte {
                    offset += payload.byte(at: offset) == UInt8(ascii: "\\") ? 2 : 1
                }
                var inside: [UInt8] = []
                for location in start..<offset { inside.append(payload.byte(at: location)) }
                offset += 1
                let isKey = Self.isBeforeColon(payload, offset)
                try string(inside, at: start, isKey: isKey)
            default: constant.append(byte)
            }
        }
    }

    /// Restricts placeholders that are the whole value of a key for which Apple lists the values.
    mutating func restrictValues(of payload: RawSpan) {
        guard !segments.isEmpty, let document = try? PayloadDocument(payload) else { return }
        for (key, plain, restricted) in Self.restrictions {
            guard let member = document.member(["aps"], key),
                let index = segments.firstIndex(where: {
                    $0.placeholder.offset == member.valueOffset + 1
                }),
                segments[index].placeholder.kind == plain
            else { continue }
            let after = index + 1 < segments.count ? segments[index + 1].constant : constant
            let isWhole = !plain.isText || after.first == UInt8(ascii: "\"")
            if isWhole { segments[index].placeholder.kind = restricted }
        }
    }

    /// Keys of `aps`, and the kinds of their placeholders before and after the restriction.
    private static let restrictions: [(String, Placeholder.Kind, Placeholder.Kind)] = [
        ("badge", .integer, .badge), ("interruption-level", .text, .interruptionLevel),
        // A shortened level is not a level.
        ("interruption-level", .fit, .interruptionLevel),
    ]

    private static func isBeforeColon(_ payload: RawSpan, _ start: Int) -> Bool {
        var offset = start
        while offset < payload.byteCount {
            switch payload.byte(at: offset) {
            case 0x20, 0x09, 0x0a, 0x0d: offset += 1
            case let byte: return byte == UInt8(ascii: ":")
            }
        }
        return false
    }

    private mutating func string(
        _ inside: [UInt8], at start: Int, isKey: Bool
    ) throws(TemplateError) {
        let pieces = try TemplatePiece.divide(inside[...], at: start, isJSON: true)
        if pieces.count == 1, case .placeholder(let placeholder) = pieces[0],
            !placeholder.kind.isText, !isKey
        {
            // The string contains only a number or a boolean, and is replaced by it.
            return try append(placeholder)
        }
        constant.append(UInt8(ascii: "\""))
        for piece in pieces {
            switch piece {
            case .constant(let bytes): constant += bytes
            case .placeholder(let placeholder):
                if isKey {
                    throw TemplateError(
                        offset: placeholder.offset,
                        message: "keys can't contain templates: put the value into a "
                            + "string, or write {{{{ for {{")
                }
                if !placeholder.kind.isText {
                    let name = placeholder.column
                    throw TemplateError(
                        offset: placeholder.offset,
                        message: "a placeholder with a type must be the whole string: write "
                            + "{{\(name)}} here, which is text")
                }
                try append(placeholder)
            }
        }
        constant.append(UInt8(ascii: "\""))
    }

    private mutating func append(_ placeholder: Placeholder) throws(TemplateError) {
        guard segments.count < PayloadTemplate.placeholderLimit else {
            throw TemplateError(
                offset: placeholder.offset,
                message: "has more than \(PayloadTemplate.placeholderLimit) placeholders: use fewer"
            )
        }
        if placeholder.kind == .fit,
            let first = segments.first(where: { $0.placeholder.kind == .fit })
        {
            throw TemplateError(
                offset: placeholder.offset,
                message: "{{\(first.placeholder.column):fit}} is already in this payload, "
                    + "and a payload can have only one value of type fit: write "
                    + "{{\(placeholder.column)}} here")
        }
        segments.append(.init(constant: constant, placeholder: placeholder))
        constant = []
    }
}
