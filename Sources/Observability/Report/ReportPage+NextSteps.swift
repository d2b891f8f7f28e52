import BroadsideLedgerFormat
import BroadsideLists
import BroadsideRows
import BroadsideSupport

/// Next steps: resume, retry, prune, export.
extension ReportPage {
    /// Recommended actions, as HTML.
    var nextSteps: String {
        let summary = data.summary
        var html = ""
        func add(_ text: String, _ command: String?) {
            html += "<p>\(optionsUnbroken(escapedHTML(text)))</p>"
            html += command.map { "<code>\(optionsUnbroken(escapedHTML($0)))</code>\n" } ?? "\n"
        }
        let (program, ledger) = (shellWord(data.program), shellWord(data.ledgerPath))
        if !data.isInProgress {
            if let emptyHanded { add(emptyHanded + ".", nil) }
            if let retryable { add(retryable, nil) }
            for step in data.steps {
                add(step.text.prefix(1).uppercased() + step.text.dropFirst() + ".", step.command)
            }
        }
        if outcome.count(.dead) > 0 {
            if data.keepsTokens {
                add("Remove the dead tokens from the list.", prune)
            } else {
                let reasons = Night.deadReasons.map { " --reason \($0)" }.joined()
                add(
                    "Remove the dead tokens from the list. The ledger keeps no tokens, so prune "
                        + "can't use it. An export finds these tokens in the list that was sent.",
                    "\(program) ledger export --ledger \(ledger)\(reasons) --output dead.csv")
            }
        }
        if summary.acceptsBySilence {
            add(
                "A gateway also accepts notifications for apps that were removed. Its feedback service "
                    + "lists those tokens.",
                "\(program) feedback --endpoint HOST --certificate FILE --ledger gone")
        }
        if data.hasLedger {
            add(
                "Export the outcome of each row.",
                "\(program) ledger export --ledger \(ledger) --output outcomes.csv")
        }
        return "<h2>What to do next</h2>\n<div class=\"box\">\(html)</div>\n"
    }

    /// The warning with which a complete campaign ended that reached no device, or almost none; nil
    /// for any other campaign.
    var emptyHanded: String? {
        isComplete && !data.isInProgress ? data.summary.emptyHandedText : nil
    }

    /// Command that removes the dead tokens from the list. It includes the options that are needed
    /// to read the list.
    private var prune: String {
        let list = data.listPath ?? "TOKENS"
        let format = data.identity.flatMap { ListFormat(rawValue: $0.listFormat) } ?? .lines
        var words = ["--ledger", data.ledgerPath, "--tokens", list]
        let named = ListFormat.named(list) ?? .lines
        if format.name != named.name { words += ["--format", format.name] }
        let column = data.identity?.columns.first ?? TokenList.defaultTokenColumn
        if format != .lines, column != TokenList.defaultTokenColumn {
            words += ["--token-column", column]
        }
        words += ["--output", prunedName(list, format)]
        return ([data.program, "prune"] + words).map(shellWord).joined(separator: " ")
    }

    /// Name such as `tokens.clean.csv.gz` for a list `/lists/tokens.csv.gz`.
    private func prunedName(_ list: String, _ format: ListFormat) -> String {
        guard data.listPath != nil else {
            return "tokens.clean." + (format == .lines ? "txt" : format.name)
        }
        var name = list.parts(atLast: "/").map { String($0.behind) } ?? list
        var compression = ""
        if ListCompression.named(name) != nil, let parts = name.parts(atLast: ".") {
            (name, compression) = (String(parts.before), ".\(parts.behind)")
        }
        let parts = name.parts(atLast: ".")
        return parts.map { "\($0.before).clean.\($0.behind)\(compression)" }
            ?? "\(name).clean\(compression)"
    }

    /// The sentence about rows that only a retry sends, and about the effect of a retry; nil if
    /// there are no such rows.
    private var retryable: String? {
        let summary = data.summary
        let unknown = summary.retryable(.unknown)
        let texts = [(summary.retryable(.failed), "failed"), (unknown, "unknown")]
            .filter { $0.0 > 0 }
            .map { "\(grouped($0.0)) row\($0.0 == 1 ? "" : "s") ended \($0.1)" }
        guard !texts.isEmpty else { return nil }
        return texts.joined(separator: ", and ") + "."
            + (unknown > 0
                ? " A row that is unknown may have reached its device already." : "")
    }
}
