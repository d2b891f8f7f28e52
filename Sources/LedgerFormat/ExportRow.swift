import BroadsidePrimitives
public import BroadsideRows
import BroadsideSupport

/// The values of a line of an export, in the order of its columns.
public struct ExportRow: Sendable {
    /// Number of the row, from 0; not a column.
    public var row: UInt64 = 0
    /// 1-based number of the line on which the row starts; nil if the list is unavailable.
    public var line: UInt64?
    /// Digits of the token, or the text in the list if it is not a token; empty if unavailable.
    var token: [UInt8] = []
    /// Fingerprint of an accepted row's token, or the hash that replaced the fingerprint. Used
    /// until the token is read from the list; not a column.
    var fingerprint: UInt64 = 0
    /// State of the row.
    public var state: RowState = .remaining
    /// HTTP status; nil if there was no response.
    public var status: UInt16?
    /// Text of the reason; empty if there is none.
    public var reason: [UInt8] = []
    /// Timestamp from APNs, in milliseconds since 1970.
    public var timestamp: UInt64?
    /// Number of attempts, over all runs. Those of a run that left the row in doubt count as one.
    public var attempts: UInt16 = 0
    /// The row's apns-id.
    public var notificationID: [UInt8] = []
    /// Time of the verdict in milliseconds since 1970; nil while the row is open.
    public var settledAtMilliseconds: UInt64?
    /// Name of the arm, empty if the row has none; nil if the campaign has no arms.
    var arm: [UInt8]?
    /// Topic that the row was sent with, empty if none was recorded; nil if rows name no topics.
    package var topic: [UInt8]?

    /// The apns-unique-id of an accepted row, empty if none was recorded; nil if the export has no
    /// column for it.
    package var uniqueID: [UInt8]?

    /// Name of the arm; nil if the row has none.
    public var armName: String? {
        arm.flatMap { $0.isEmpty ? nil : String(decoding: $0, as: UTF8.self) }
    }

    /// Creates an empty row.
    init() {}

    /// Name of the column for the arm. Only exports of campaigns with arms have this column.
    static let armColumn = "arm"
    /// Name of the column for the topic, which follows the column for the arm. An export has this
    /// column only if rows name their topics.
    static let topicColumn = "topic"

    /// The names of the columns.
    static let columns = [
        "line", "token", "state", "status", "reason", "apns_timestamp_ms", "attempts", "apns_id",
        "settled_at_ms",
    ]
}

/// Column that an export has only on request. It follows all other columns.
public enum ExportColumn: String, CaseIterable, Sendable {
    /// The apns-unique-id, which APNs returns in the development environment.
    case uniqueID = "unique_id"
}

/// Format of an export.
public enum ExportFormat: String, CaseIterable, Sendable {
    /// A header, then one line per row, each ending with LF. Fields are quoted as in RFC 4180 if
    /// necessary. Always UTF-8: invalid bytes become U+FFFD. A reason, or an invalid token of the
    /// list, gets an apostrophe in front if a spreadsheet would treat it as a formula.
    case csv
    /// One JSON object per line, with null for absent values.
    case jsonl

    /// The format that a file name implies.
    public enum Implied: Sendable, Equatable {
        case format(ExportFormat)
        /// The ending of another kind of data file, such as `.parquet`.
        case unknown(ending: String)
    }

    /// Returns the format that a file name implies; nil if its ending is not that of a known kind
    /// of file. `.gz` and `.zst` at the end are ignored.
    public static func implied(by fileName: String) -> Implied? {
        var name = fileName.lowercased()
        for compression in [".gz", ".zst"] where name.hasSuffix(compression) {
            name.removeLast(compression.count)
        }
        if name.hasSuffix(".csv") { return .format(.csv) }
        if name.hasSuffix(".jsonl") || name.hasSuffix(".ndjson") { return .format(.jsonl) }
        let others = [
            ".json", ".tsv", ".tab", ".parquet", ".xlsx", ".xls", ".avro", ".orc", ".arrow", ".xml",
        ]
        return others.first(where: name.hasSuffix).map { .unknown(ending: $0) }
    }

    /// Appends the header, if the format has one.
    ///
    /// - Parameters:
    ///   - hasArms: Whether the campaign has arms.
    ///   - hasTopics: Whether its rows name their topics.
    ///   - further: Optional columns that were requested.
    public func appendHeader(
        to output: inout [UInt8], hasArms: Bool = false, hasTopics: Bool = false,
        further: Set<ExportColumn> = []
    ) {
        guard self == .csv else { return }
        let columns =
            ExportRow.columns + (hasArms ? [ExportRow.armColumn] : [])
            + (hasTopics ? [ExportRow.topicColumn] : [])
            + ExportColumn.allCases.filter(further.contains).map(\.rawValue)
        output.append(contentsOf: columns.joined(separator: ",").utf8)
        output.append(0x0A)
    }

    /// Appends a row and its line end.
    public func append(_ row: ExportRow, to output: inout [UInt8]) {
        switch self {
        case .csv: appendCSV(row, to: &output)
        case .jsonl: appendJSON(row, to: &output)
        }
    }

    private func appendCSV(_ row: ExportRow, to output: inout [UInt8]) {
        let comma: UInt8 = 0x2C
        if let line = row.line { appendNumber(line, to: &output) }
        output.append(comma)
        appendField(ExportFormat.withoutFormula(row.token), to: &output)
        output.append(comma)
        output.append(contentsOf: row.state.name.utf8)
        output.append(comma)
        if let status = row.status { appendNumber(UInt64(status), to: &output) }
        output.append(comma)
        appendField(ExportFormat.withoutFormula(row.reason), to: &output)
        output.append(comma)
        if let timestamp = row.timestamp { appendNumber(timestamp, to: &output) }
        output.append(comma)
        appendNumber(UInt64(row.attempts), to: &output)
        output.append(comma)
        appendField(row.notificationID, to: &output)
        output.append(comma)
        if let settled = row.settledAtMilliseconds { appendNumber(settled, to: &output) }
        output.append(
            contentsOf: rowEnd(arm: row.arm, topic: row.topic, uniqueID: row.uniqueID))
    }

    /// Returns text from a server or device in a form that no spreadsheet executes: an apostrophe
    /// precedes text that would start a formula. The digits of a token never start one.
    private static func withoutFormula(_ text: [UInt8]) -> [UInt8] {
        switch text.first {
        case UInt8(ascii: "="), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "@"),
            UInt8(ascii: "\t"), UInt8(ascii: "\r"):
            [UInt8(ascii: "'")] + text
        default: text
        }
    }

    /// Returns a reason formatted as a field, without the separators before and after it.
    func reasonField(_ reason: [UInt8]) -> [UInt8] {
        var field: [UInt8] = []
        switch self {
        case .csv: appendField(ExportFormat.withoutFormula(reason), to: &field)
        case .jsonl: appendString(reason, to: &field)
        }
        return field
    }

    /// Appends a field, in quotes if it has a comma, a quote or a line end (RFC 4180 section 2).
    /// Invalid UTF-8 becomes U+FFFD.
    private func appendField(_ field: [UInt8], to output: inout [UInt8]) {
        if field.contains(where: { $0 >= 0x80 }) {
            appendQuoted(Array(String(decoding: field, as: UTF8.self).utf8), to: &output)
        } else {
            appendQuoted(field, to: &output)
        }
    }

    private func appendQuoted(_ field: [UInt8], to output: inout [UInt8]) {
        let needsQuotes = field.contains { $0 == 0x2C || $0 == 0x22 || $0 == 0x0A || $0 == 0x0D }
        guard needsQuotes else {
            output.append(contentsOf: field)
            return
        }
        output.append(0x22)
        for byte in field {
            if byte == 0x22 { output.append(0x22) }
            output.append(byte)
        }
        output.append(0x22)
    }

    private func appendJSON(_ row: ExportRow, to output: inout [UInt8]) {
        appendKey(0, to: &output)
        appendOptional(row.line, to: &output)
        appendKey(1, to: &output)
        appendString(row.token, to: &output)
        appendKey(2, to: &output)
        appendString(Array(row.state.name.utf8), to: &output)
        appendKey(3, to: &output)
        appendOptional(row.status.map(UInt64.init), to: &output)
        appendKey(4, to: &output)
        appendString(row.reason, to: &output)
        appendKey(5, to: &output)
        appendOptional(row.timestamp, to: &output)
        appendKey(6, to: &output)
        appendNumber(UInt64(row.attempts), to: &output)
        appendKey(7, to: &output)
        appendString(row.notificationID, to: &output)
        appendKey(8, to: &output)
        appendOptional(row.settledAtMilliseconds, to: &output)
        output.append(
            contentsOf: rowEnd(arm: row.arm, topic: row.topic, uniqueID: row.uniqueID))
    }

    /// Returns the text after the time of the verdict: the arm if the campaign has arms, the topic
    /// if rows name their topics, the apns-unique-id if it was requested, and the line's end.
    func rowEnd(arm: [UInt8]?, topic: [UInt8]?, uniqueID: [UInt8]?) -> [UInt8] {
        var text: [UInt8] = []
        for (name, value) in [
            (ExportRow.armColumn, arm), (ExportRow.topicColumn, topic),
            (ExportColumn.uniqueID.rawValue, uniqueID),
        ] {
            guard let value else { continue }
            switch self {
            case .csv:
                text.append(0x2C)
                appendField(value, to: &text)
            case .jsonl:
                text += ",\"\(name)\":".utf8
                appendString(value, to: &text)
            }
        }
        return text + (self == .csv ? "\n" : "}\n").utf8
    }

    private func appendKey(_ column: Int, to output: inout [UInt8]) {
        output.append(column == 0 ? 0x7B : 0x2C)
        output.append(0x22)
        output.append(contentsOf: ExportRow.columns[column].utf8)
        output.append(contentsOf: "\":".utf8)
    }

    private func appendOptional(_ number: UInt64?, to output: inout [UInt8]) {
        if let number {
            appendNumber(number, to: &output)
        } else {
            output.append(contentsOf: "null".utf8)
        }
    }

    /// Appends a text as a JSON string; null if the text is empty. Invalid UTF-8 becomes U+FFFD.
    private func appendString(_ text: [UInt8], to output: inout [UInt8]) {
        guard !text.isEmpty else {
            appendOptional(nil, to: &output)
            return
        }
        output.append(0x22)
        let string = String(decoding: text, as: UTF8.self)
        // RFC 8259 permits bidirectional marks, and control characters beyond ASCII, but they are
        // unsafe on a terminal.
        if text.contains(where: { $0 >= 0x80 }),
            string.unicodeScalars.contains(where: ForeignText.isInvisible)
        {
            output += JSONLine.quoted(string).utf8.dropFirst()
            return
        }
        for byte in string.utf8 {
            switch byte {
            case 0x22, 0x5C:
                output.append(0x5C)
                output.append(byte)
            case 0..<0x20, 0x7F:
                output.append(contentsOf: "\\u00".utf8)
                output.append(HexDigits.digit(byte >> 4))
                output.append(HexDigits.digit(byte & 15))
            default: output.append(byte)
            }
        }
        output.append(0x22)
    }

    private func appendNumber(_ number: UInt64, to output: inout [UInt8]) {
        let start = output.count
        var rest = number
        repeat {
            output.append(0x30 + UInt8(rest % 10))
            rest /= 10
        } while rest > 0
        output[start...].reverse()
    }
}
