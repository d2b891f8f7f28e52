import BroadsideLists
import BroadsideRows
import BroadsideSupport

/// Columns of a file of receipts. For a column that is not named, its usual names are tried.
public struct ReceiptColumns: Sendable {
    /// Column of the device token; nil: its usual names are tried.
    public var token: String?
    /// Column of the notification's apns-id; nil: its usual names are tried.
    public var notification: String?
    /// Column of the time; nil: its usual names are tried.
    public var time: String?
    /// Further columns. Opened notifications are counted separately for each value of these
    /// columns.
    public var by: [String]

    /// Usual names of columns, in upper or lower case.
    private static let usualNotifications = ["apns_id", "apns-id", "apnsId"]
    private static let usualTokens = ["token", "device_token", "deviceToken", "push_token"]
    private static let usualTimes = ["time", "timestamp", "event_time", "opened_at", "date"]

    /// Names the columns.
    ///
    /// - Parameters:
    ///   - token: Column of the device token; nil: its usual names are tried.
    ///   - notification: Column of the apns-id; nil: its usual names are tried.
    ///   - time: Column of the time; nil: its usual names are tried.
    ///   - by: Further columns. Opened notifications are counted separately for each value of these
    ///     columns.
    public init(
        token: String? = nil, notification: String? = nil, time: String? = nil, by: [String] = []
    ) {
        self.token = token
        self.notification = notification
        self.time = time
        self.by = by
    }

    /// Returns the column that identifies the row or the device, and whether this column has
    /// tokens.
    func key(of path: String) throws(BroadsideError) -> (column: String, isToken: Bool) {
        guard token == nil || notification == nil else {
            throw .usage("id-column", "and --token-column exclude each other: give one of them")
        }
        if let notification { return (notification, false) }
        if let token { return (token, true) }
        if let found = try find(Self.usualNotifications, in: path) { return (found, false) }
        if let found = try find(Self.usualTokens, in: path) { return (found, true) }
        let list = try TokenList(
            .file(path), format: nil, tokenColumn: nil, option: "receipts", isInspected: false)
        let isPlain = !list.format.hasHeader && !list.format.namesColumnsInEachRow
        throw .usage(
            "receipts",
            "\(printable(path)) has neither a column apns_id nor a column token: "
                + (isPlain ? "write a header" : "name one with --id-column or --token-column"))
    }

    /// Returns the column of the time. If the file has no such column, returns the first usual
    /// name.
    func time(of path: String) throws(BroadsideError) -> String {
        if let time { return time }
        return try find(Self.usualTimes, in: path) ?? Self.usualTimes[0]
    }

    /// Returns the first of the given columns that the file has; nil if it has none of them.
    private func find(_ names: [String], in path: String) throws(BroadsideError) -> String? {
        for name in names {
            do throws(BroadsideError) {
                let list = try TokenList(
                    .file(path), format: nil, tokenColumn: name, option: "receipts",
                    isInspected: false)
                guard list.format.hasHeader || list.format.namesColumnsInEachRow else { continue }
                if try hasValue(list) { return name }
            } catch {
                if error.isFaultyList || error.exitCode != ExitCode.badRequest { throw error }
                // If the file can't be opened, trying another column is useless.
                if !(try fileExists(path)) { throw error }
            }
        }
        return nil
    }

    /// Whether any of the first rows has a value in the column. If the file has no rows, the column
    /// only has to be in the header.
    private func hasValue(_ list: TokenList) throws(BroadsideError) -> Bool {
        var rows = try RowCursor(list, rowsAtOnce: 1_000)
        var count = 0
        while count < 1_000, try rows.next() != nil {
            count += 1
            if rows.reader.field(0).isText { return true }
        }
        return count == 0
    }
}
