public import BroadsideRows
public import FoundationEssentials
internal import BroadsidePrimitives

/// Row of a ledger.
public struct LedgerRow: Sendable, Equatable {
    /// Number of the row's line in the list, from 1; nil if the list can't be found.
    public let line: UInt64?
    /// Device token, in hexadecimal digits, or the text that an invalid row has instead of a token;
    /// nil if neither is known.
    public let token: String?
    /// State of the row.
    public let state: RowState
    /// Status of the response; nil if there was none.
    public let status: Int?
    /// Reason of the outcome, such as `Unregistered`; nil if there is none.
    public let reason: String?
    /// Time at which APNs found the token to be unregistered; nil if APNs sent no such time.
    public let unregisteredAt: Date?
    /// Number of requests that were sent for the row, over all runs. The requests of a run that left
    /// the row in doubt count as one, although there may have been none or several.
    public let attempts: Int
    /// Identifier of the notification; nil for a legacy gateway.
    public let notificationID: String?
    /// Time at which the row was settled; nil if it is not settled.
    public let settledAt: Date?
    /// Topic of the request, if the campaign's rows name their topics. nil in other campaigns, and
    /// for a row that was settled without a request.
    public let topic: String?
}

/// Reads the rows of a ledger in the format of `ExportFormat.jsonl`: one object per line, with its
/// keys in a fixed order.
struct LedgerRowReader {
    private var rest: [UInt8] = []

    /// Maximum length of a row, bytes.
    private static let rowByteLimit = 1 << 20

    /// Returns the rows that end in the next piece of the text; nil if the text has another format.
    mutating func rows(in piece: [UInt8]) -> [LedgerRow]? {
        var rows: [LedgerRow] = []
        var start = piece.startIndex
        while let end = piece[start...].firstIndex(of: 0x0A) {
            let line = rest + piece[start..<end]
            rest = []
            guard let row = Self.row(line) else { return nil }
            rows.append(row)
            start = end + 1
        }
        rest += piece[start...]
        return rest.count <= Self.rowByteLimit ? rows : nil
    }

    private static func row(_ line: [UInt8]) -> LedgerRow? {
        var values = Values(line)
        guard let number = values.next("line"), let token = values.next("token"),
            let state = values.next("state")?.text.flatMap(RowState.init(name:)),
            let status = values.next("status"), let reason = values.next("reason"),
            let timestamp = values.next("apns_timestamp_ms"),
            let attempts = values.next("attempts")?.number, let identifier = values.next("apns_id"),
            let settled = values.next("settled_at_ms")
        else { return nil }
        // Only campaigns with arms have `arm`, and only campaigns with topics per row have `topic`.
        _ = values.next("arm")
        let topic = values.next("topic")
        return LedgerRow(
            line: number.number, token: token.text, state: state,
            status: status.number.map { Int(clamping: $0) },
            reason: reason.text.flatMap { $0.isEmpty ? nil : $0 },
            unregisteredAt: timestamp.number.map(Date.init(milliseconds:)),
            attempts: Int(clamping: attempts), notificationID: identifier.text,
            settledAt: settled.number.map(Date.init(milliseconds:)), topic: topic?.text)
    }

    private enum Value {
        case null
        case number(UInt64)
        case text(String)

        var number: UInt64? {
            if case .number(let number) = self { return number }
            return nil
        }

        var text: String? {
            if case .text(let text) = self { return text }
            return nil
        }
    }

    /// Reads the values of a JSON object, whose keys have a fixed order.
    private struct Values {
        private let line: [UInt8]
        private var offset = 0

        init(_ line: [UInt8]) { self.line = line }

        mutating func next(_ key: String) -> Value? {
            let name = (offset == 0 ? "{\"" : ",\"") + key + "\":"
            guard line[offset...].starts(with: name.utf8) else { return nil }
            offset += name.utf8.count
            guard offset < line.count else { return nil }
            if line[offset] == UInt8(ascii: "\"") { return string() }
            let end = line[offset...].firstIndex { $0 == 0x2C || $0 == 0x7D } ?? line.endIndex
            defer { offset = end }
            let word = String(decoding: line[offset..<end], as: UTF8.self)
            return word == "null" ? .null : UInt64(word).map { .number($0) }
        }

        private mutating func string() -> Value? {
            let start = offset
            var end = start + 1
            var isPlain = true
            while end < line.count, line[end] != UInt8(ascii: "\"") {
                isPlain = isPlain && line[end] != UInt8(ascii: "\\")
                end += line[end] == UInt8(ascii: "\\") ? 2 : 1
            }
            guard end < line.count else { return nil }
            offset = end + 1
            if isPlain { return .text(String(decoding: line[(start + 1)..<end], as: UTF8.self)) }
            let quoted = Array(line[start...end])
            return (try? JSONCoding.decode(String.self, from: quoted)).map { .text($0) }
        }
    }
}
