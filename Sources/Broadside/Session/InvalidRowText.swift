import BroadsideAPNs
import BroadsideLists
import BroadsidePayloads
import BroadsidePolicy
import BroadsideRows
import BroadsideSupport

/// Text about an invalid row.
struct InvalidRowText {
    /// Problem of the row.
    let problem: String
    /// Advice for lists with such rows: a question, or a sentence without its period.
    let advice: String

    init(_ problem: String, _ advice: String) {
        self.problem = problem
        self.advice = advice
    }
}

extension FirstRowsCheck.Sample {
    /// Line and problem of the row. The advice follows if it names the cause, or a change that
    /// repairs all such rows.
    func explanation(_ list: TokenList) -> String {
        let text = text(list)
        let problem =
            switch finding.reason {
            case .badValue, .noPayload, .payloadTooLarge:
                cause(list).map { "on line \(line), \($0)" } ?? text.problem
            default: text.problem
            }
        if isInOtherEncoding || finding.reason == .malformedRow || jsonProblem != nil {
            return "\(problem): \(text.advice)"
        }
        guard finding.reason == .malformedToken, let kind else { return problem }
        return "\(problem); such rows have \(kind.content)"
    }

    /// Problem of the row, and advice for lists with such rows.
    func text(_ list: TokenList) -> InvalidRowText {
        switch finding.reason {
        case .malformedRow: malformedRowText(list)
        case .malformedToken: malformedTokenText(list)
        case .missingColumn: finding.isPersonal ? missingValueText(list) : missingTokenText(list)
        case .badZone: zoneText
        default: valueText(list)
        }
    }

    private func malformedRowText(_ list: TokenList) -> InvalidRowText {
        if isOverwritten {
            return InvalidRowText(
                "the row on line \(line) contains zero bytes",
                "the list is damaged, and other rows may be missing; replace it with an intact copy"
            )
        }
        if escapesQuotes {
            return InvalidRowText(
                "the row on line \(line) has quotes after backslashes (\\\") in a quoted field",
                "write such quotes twice (\"\") and without backslashes, in Spark with "
                    + "option(\"escape\", \"\\\"\")"
            )
        }
        let breach = "the row on line \(line) breaks the rules of its format"
        if let description {
            return InvalidRowText(
                breach,
                "such rows have \(description.content), which are not in quotes: "
                    + description.advice(isColumn: true)
            )
        }
        if let bracketedField {
            let names = (try? list.columnNames()) ?? []
            let name =
                names.indices.contains(bracketedField)
                ? "column '\(printable(names[bracketedField], limit: 40))'"
                : "field \(bracketedField + 1)"
            return InvalidRowText(
                "\(name) on line \(line) is an array or object, which is not in quotes",
                "put such values in quotes, and write quotes in them twice (\"\")"
            )
        }
        return InvalidRowText(
            breach,
            list.format.separator == nil
                ? "does it have more than \(RowChunk.rowByteCountMax >> 20) MiB?"
                : "does it have more fields than the header, text after a closing quote, or more "
                    + "than \(RowChunk.rowByteCountMax >> 20) MiB?"
        )
    }

    private func malformedTokenText(_ list: TokenList) -> InvalidRowText {
        if let jsonProblem { return jsonText(jsonProblem) }
        if isNested {
            let column = tokenColumn(list)
            return InvalidRowText(
                "'\(printable(column))' on line \(line) is an array or object",
                "name a key inside an object with --token-column, as in "
                    + "\(shownColumn(column)).value, and write one row per value of an array"
            )
        }
        let problem = "line \(line) is '\(text)'"
        if let kind {
            let advice = kind.advice(isColumn: list.format != .lines)
            return InvalidRowText(problem, "such rows have \(kind.content): \(advice)")
        }
        if let digitCount, digitCount > 0 {
            return InvalidRowText(
                "\(problem), which has \(digitCount) digits",
                "a device token has an even number of digits, at most "
                    + "\(TokenText.maximumDigitCount): were some of them cut off?"
            )
        }
        return InvalidRowText(
            problem,
            "expected an even number of hexadecimal digits; is it the right file, with the right "
                + "--format and --token-column?"
        )
    }

    /// Text about a line of JSON Lines that is not a JSON object.
    private func jsonText(_ problem: PayloadCheck.Problem) -> InvalidRowText {
        let what = "line \(line) is not a JSON object"
        if let digitCount, digitCount > 0 {
            return InvalidRowText(
                what, "is it a list with one token per line? Then add --format lines")
        }
        guard let column = problem.column, column > 1 else {
            return InvalidRowText(
                what, "write each row as an object on a line of its own, as jq -c does")
        }
        return InvalidRowText("\(what) (column \(column))", problem.message)
    }

    private func missingTokenText(_ list: TokenList) -> InvalidRowText {
        let column = tokenColumn(list)
        return InvalidRowText(
            lack(of: column),
            nullKeys.contains(column)
                ? "leave out such rows, or name another column with --token-column"
                : "name the tokens' column with --token-column\(keyAdvice(column, list))"
        )
    }

    /// Text about a row that lacks a column of its payload or topic. (A header without the column
    /// is refused earlier.)
    private func missingValueText(_ list: TokenList) -> InvalidRowText {
        let column = list.layout.names[finding.culprit?.field ?? 0]
        let keys = keyAdvice(column, list)
        if finding.culprit?.use == .topic {
            return InvalidRowText(
                "\(lack(of: column)), from which the topic is made",
                "name another column in --topic, or write a default, as in "
                    + "{{app|com.example.app}}\(keys)"
            )
        }
        return InvalidRowText(
            "\(lack(of: column)), from which the payload is made",
            "name another column in the payload, or write a default, as in {{name|friend}}\(keys)"
        )
    }

    private var zoneText: InvalidRowText {
        InvalidRowText(
            "line \(line) names no time zone that this system knows",
            ZoneDatabase().packageAdvice
                ?? "does --zone-column name a column of time zones such as Europe/Berlin? "
                + (UTCOffset.advice(for: zone).map { "\($0). " } ?? "")
                + "Rows without a zone get --zone-default"
        )
    }

    /// Text about a row whose payload or topic can't be made from its values.
    private func valueText(_ list: TokenList) -> InvalidRowText {
        let problem =
            "line \(line) is \(finding.reason.text)\(cause(list).map { ", because \($0)" } ?? "")"
        if finding.reason == .badValue, isNested {
            let name = finding.culprit.map { shownColumn(list.layout.names[$0.field]) } ?? "name"
            return InvalidRowText(problem, "name a key inside it, as in {{\(name).first}}")
        }
        if isInOtherEncoding { return InvalidRowText(problem, list.encodingAdvice()) }
        let made = finding.isOfTopic ? "the payload and the topic are made" : "the payload is made"
        return InvalidRowText(problem, "check the columns that \(made) from")
    }

    /// Description of the wrong value, with its column.
    private func cause(_ list: TokenList) -> String? {
        guard let culprit = finding.culprit else { return nil }
        let column = "column '\(printable(list.layout.names[culprit.field], limit: 40))'"
        if case .payloadOver(let limit) = culprit.use {
            return "the payload has more than \(grouped(limit)) bytes; its longest value, in "
                + "\(column), has \(grouped(valueByteCount))"
        }
        if isNested { return "'\(value)' in \(column) is an array or object" }
        if isInOtherEncoding { return "'\(value)' in \(column) is not UTF-8 text" }
        let wanted =
            switch culprit.use {
            case .text: "is not UTF-8 text"
            case .badge where value.drop(while: { $0 == " " }).hasPrefix("-"):
                "is not a badge, which is 0 or above"
            case .integer, .badge: "is not a whole number"
            case .interruptionLevel:
                "is not an interruption level (passive, active, time-sensitive, critical)"
            case .boolean: "is not true or false"
            case .collapseID: "is not usable in a collapse ID"
            case .payloadOver: "is too long"
            case .payloadName: "names no payload"
            case .topic: "does not make a topic for this push type"
            case .topicBeyondLimit:
                "makes more than the \(RowTopics.limit) topics that a run may have"
            }
        return "'\(value)' in \(column) \(wanted)"
    }

    /// Whether the row's value is invalid because it is not UTF-8 text.
    private var isInOtherEncoding: Bool { finding.reason == .badValue && !isNested && !isUTF8 }

    private func tokenColumn(_ list: TokenList) -> String {
        list.layout.names.first ?? TokenList.defaultTokenColumn
    }

    /// Problem of a row that lacks a value in a column.
    private func lack(of column: String) -> String {
        "line \(line) has \(nullKeys.contains(column) ? "null in" : "no") '\(printable(column))'"
    }

    /// Advice about the keys of a JSON Lines list, after a colon; empty if the row has the key.
    private func keyAdvice(_ column: String, _ list: TokenList) -> String {
        if nullKeys.contains(column) { return "" }
        return ((try? list.keyAdvice(for: column)) ?? nil).map { ": \($0)" } ?? ""
    }
}

extension InvalidRowsGuard.Verdict {
    /// Error that refuses a list before anything is sent.
    ///
    /// - Parameters:
    ///   - sample: Invalid row that is explained.
    ///   - percent: Value of `--max-invalid`.
    ///   - reasons: Number of invalid rows by reason, as text; empty if all have one reason.
    func refusal(
        of list: TokenList, _ sample: FirstRowsCheck.Sample?, _ percent: Double, reasons: String
    ) -> BroadsideError {
        let text = sample?.text(list)
        let problem = text.map { ", \($0.problem)" } ?? ""
        let advice = text?.advice ?? "is it the right file?"
        switch self {
        case .noRow:
            return .request(
                list.name,
                " contains no rows, so no device gets this campaign: is it the "
                    + "right file?")
        case .noValidRow(let rows):
            let subject =
                rows == 1 ? "its row is invalid" : "all of its \(grouped(rows)) rows are invalid"
            return .request(list.name, ": \(subject)\(reasons)\(problem): \(advice)")
        case .tooMany(let invalid, let rows):
            let period = advice.hasSuffix("?") ? "" : "."
            return .request(
                list.name,
                ": \(FirstRowsCheck.share(invalid, of: rows)) rows read are invalid\(reasons)\(problem): "
                    + "\(advice)\(period) If these rows need not be sent, raise --max-invalid, which "
                    + "is \(percentNumber(percent))")
        }
    }
}
