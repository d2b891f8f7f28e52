import BroadsideHygiene
import BroadsideLists
import BroadsidePayloads
import BroadsideRows
import BroadsideSupport

/// Values that are probably mistakes, found in the rows to send. Each kind causes a warning: words
/// such as NULL, escapes such as `\n`, damaged texts, keys of JSON Lines that no row has, alerts
/// without text, and repeated tokens.
struct RowValues {
    private var words: MissingWords
    private var escapes: TabEscapes
    private var damage: DamagedTexts
    /// For each field, whether any row has a value.
    private var hasValue: [Bool]
    /// Number of rows with a token.
    private var rows: UInt64 = 0
    /// Number of rows whose alert has no text, and the line of the first such row.
    private var blankAlerts: UInt64 = 0
    private var firstBlankLine: UInt64 = 0
    /// Fingerprints of the first tokens.
    private var tokens: Set<UInt64> = []
    /// Number of rows whose token occurs in an earlier row, and the line of the first such row.
    /// Only the first `tokensLimit` rows are checked.
    private var repeated: UInt64 = 0
    private var firstRepeatedLine: UInt64 = 0

    /// Limit on the rows whose tokens are compared.
    private static let tokensLimit: UInt64 = 1_000

    /// - Parameter payloads: Payloads that are made from the rows.
    init(_ layout: RowLayout, _ payloads: PayloadSet) {
        words = MissingWords(layout)
        escapes = TabEscapes(layout)
        damage = DamagedTexts(layout, payloads: payloads)
        hasValue = layout.names.map { _ in false }
    }

    /// Checks the row that was read last.
    ///
    /// - Parameters:
    ///   - token: Fingerprint of the row's token; nil if the row is invalid.
    ///   - hasBlankAlert: Whether the row's values make an alert without text.
    mutating func take(
        _ row: RowReader.Row, of reader: borrowing RowReader, token: UInt64?, hasBlankAlert: Bool
    ) {
        words.take(row, of: reader)
        escapes.take(row, of: reader)
        guard let token else { return }
        damage.take(row, of: reader)
        rows += 1
        for field in hasValue.indices where !hasValue[field] {
            if reader.field(field).form != .missing { hasValue[field] = true }
        }
        if hasBlankAlert {
            if blankAlerts == 0 { firstBlankLine = row.line }
            blankAlerts += 1
        }
        guard rows <= Self.tokensLimit, !tokens.insert(token).inserted else { return }
        if repeated == 0 { firstRepeatedLine = row.line }
        repeated += 1
    }

    /// Warns about the values of the rows, except alerts without text.
    ///
    /// - Parameter knowsSkips: Whether all rows that were checked are sent. If some may be skipped
    ///   because of their tokens, there is no warning about repeated tokens.
    func warn(_ list: TokenList, _ plan: Plan, knowsSkips: Bool) {
        MissingValues.warn(of: words, in: list.layout, of: list)
        MissingValues.warn(of: escapes, in: list.layout, of: list)
        if plan.options.payloadCheck == .error {
            MissingValues.warn(of: damage, in: list.layout, of: list)
        }
        guard rows > 0 else { return }
        if list.format.namesColumnsInEachRow {
            let subject =
                rows == 1 ? "the row lacks" : "none of the \(grouped(rows)) rows read so far has"
            for (name, location) in plan.payloads.columns {
                guard let field = list.layout.field(named: name), !hasValue[field] else { continue }
                let advice = ((try? list.keyAdvice(for: name)) ?? nil).map { ": \($0)" } ?? ""
                standardErrorLine(
                    "broadside: warning: \(location): \(subject) '\(printable(name))'\(advice)")
            }
        }
        guard knowsSkips, repeated > 0, !plan.options.skipsDuplicates, !plan.options.sendsDuplicates
        else {
            return
        }
        let count = min(rows, Self.tokensLimit)
        let subject =
            repeated == 1
            ? "1 of the first \(grouped(count)) rows has the token of an earlier row, on line "
            : "\(grouped(repeated)) of the first \(grouped(count)) rows have the token of an earlier "
                + "row, the first on line "
        standardErrorLine(
            "broadside: warning: \(list.name): \(subject)\(firstRepeatedLine): each row is sent, so a "
                + "device gets the notification more than once: add --duplicates skip, or, if that is "
                + "intended, --duplicates send")
    }

    /// Warns about rows whose values make an alert without text.
    func warnOfBlankAlerts(_ list: TokenList, _ plan: Plan) {
        guard blankAlerts > 0, plan.options.pushType == .alert, plan.options.payloadCheck == .error
        else { return }
        let (verb, location) = blankAlerts == 1 ? ("makes", "on") : ("make", "the first on")
        standardErrorLine(
            "broadside: warning: \(list.name): \(grouped(blankAlerts)) of \(grouped(rows)) rows "
                + "read \(verb) an alert without text, \(location) line \(firstBlankLine): write "
                + "a default for empty values, as in {{name|friend}}")
    }
}
