import BroadsidePrimitives
public import BroadsideRows
import BroadsideSupport

/// Texts in the columns of a list that a program damaged before it wrote the list.
public struct DamagedTexts: Sendable {
    /// A sign of damage.
    public enum Sign: Int, Sendable, CaseIterable {
        /// U+FFFD, which a program writes in place of a character that it could not read.
        case lostCharacter
        /// `[object Object]`, which JavaScript writes in place of an object.
        case object
        /// An HTML entity, such as `&#39;`, in a text that devices show.
        case entity
    }

    /// The rows that have a sign in a column.
    public struct Occurrence: Sendable, Equatable {
        /// Line on which the first row starts.
        public var line: UInt64
        /// The sign as it is in the first row.
        public var text: String
        /// Number of rows with the sign in this column.
        public var rows: UInt64
    }

    private static let lostBytes = Array("\u{fffd}".utf8)
    private static let object = "[object Object]"
    private static let objectBytes = Array(object.utf8)

    /// For each sign, its rows in each field; nil if a field has none.
    private var found: [[Occurrence?]]
    /// For each field, whether devices show its text. In other fields, HTML may be intended.
    private let isShown: [Bool]

    /// Creates counts for lists of a layout.
    ///
    /// - Parameter payloads: Payloads that are made from the rows; nil if they are unknown.
    public init(_ layout: RowLayout, payloads: PayloadSet? = nil) {
        found = Sign.allCases.map { _ in layout.names.map { _ in nil } }
        let columns = payloads?.alertColumns ?? []
        let shown = Set(columns.compactMap { layout.field(named: $0) })
        isShown = layout.names.indices.map(shown.contains)
    }

    /// Returns the rows with a sign in a field; nil if there are none.
    public func occurrence(of sign: Sign, in field: Int) -> Occurrence? {
        found[sign.rawValue][field]
    }

    /// Counts the damaged texts in the row that was read last.
    public mutating func take(_ row: RowReader.Row, of reader: borrowing RowReader) {
        for index in isShown.indices {
            let field = reader.field(index)
            guard field.isText else { continue }
            let text = reader.text(field)
            if Self.includes(Self.lostBytes, text) { note(.lostCharacter, "\u{fffd}", index, row) }
            if Self.includes(Self.objectBytes, text) { note(.object, Self.object, index, row) }
            guard isShown[index], find(UInt8(ascii: "&"), in: text, 0, text.byteCount) != nil,
                let entity = HTMLEntity.first(
                    in: String(decoding: [UInt8](text), as: UTF8.self))
            else { continue }
            note(.entity, entity, index, row)
        }
    }

    private mutating func note(
        _ sign: Sign, _ text: String, _ field: Int, _ row: RowReader.Row
    ) {
        let first = found[sign.rawValue][field] ?? Occurrence(line: row.line, text: text, rows: 0)
        found[sign.rawValue][field] = Occurrence(
            line: first.line, text: first.text, rows: first.rows + 1)
    }

    /// Whether a text includes a series of bytes.
    static func includes(_ bytes: [UInt8], _ text: RawSpan) -> Bool {
        var start = 0
        while let offset = find(bytes[0], in: text, start, text.byteCount) {
            guard offset + bytes.count <= text.byteCount else { return false }
            if bytes.indices.allSatisfy({ text.byte(at: offset + $0) == bytes[$0] }) {
                return true
            }
            start = offset + 1
        }
        return false
    }
}

extension PayloadSet {
    /// Columns whose values are part of a text that devices show: an alert, or its title, subtitle
    /// or body.
    var alertColumns: Set<String> {
        templates.reduce(into: []) { $0.formUnion($1.alertColumns) }
    }
}

extension PayloadTemplate {
    /// Columns whose values are part of an alert's texts. To find them, each value is a mark that
    /// names its placeholder.
    fileprivate var alertColumns: Set<String> {
        let (opening, closing): (Character, Character) = ("\u{e000}", "\u{e001}")
        var payload: [UInt8] = []
        for (index, segment) in segments.enumerated() {
            payload += segment.constant
            switch segment.placeholder.kind {
            case .text, .fit, .interruptionLevel:
                payload += Array("\(opening)\(index)\(closing)".utf8)
            case .integer, .badge: payload += Array("1".utf8)
            case .boolean: payload += Array("true".utf8)
            }
        }
        payload += tail
        guard isPersonal, let document = try? PayloadDocument(payload.rawSpan) else { return [] }
        let marked = document.alertTexts.flatMap { text in
            text.text.split(separator: opening).dropFirst(text.text.first == opening ? 0 : 1)
                .compactMap { $0.split(separator: closing).first.flatMap { Int($0) } }
        }
        return Set(marked.filter(segments.indices.contains).map { segments[$0].placeholder.column })
    }
}
