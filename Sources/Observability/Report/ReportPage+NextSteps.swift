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
        let ledger = shellWord(data.ledgerPath)
        if !data.isInProgress {
            if let retryable { add(retryable, nil) }
            for step in data.steps {
                add(step.text.prefix(1).uppercased() + step.text.dropFirst() + ".", step.command)
            }
        }
        if (summary.reasons["Unregistered"] ?? 0) + (summary.reasons["ExpiredToken"] ?? 0) > 0 {
            let list = data.listPath.map(shellWord) ?? "TOKENS"
            add(
                "Remove the dead tokens from the list.",
                "broadside prune --ledger \(ledger) --tokens \(list) --output tokens.clean.txt")
        }
        if summary.acceptsBySilence {
            add(
                "A gateway also accepts notifications for apps that were removed. Its feedback service "
                    + "lists those tokens.",
                "broadside feedback --endpoint HOST --certificate FILE --ledger gone")
        }
        add(
            "Export the outcome of each row.",
            "broadside ledger export --ledger \(ledger) --output outcomes.csv")
        return "<h2>What to do next</h2>\n<div class=\"box\">\(html)</div>\n"
    }

    /// Sentence about rows that only a retry sends, and about the effect of a retry; nil if there
    /// are none.
    private var retryable: String? {
        let summary = data.summary
        let texts = [(summary.failed, "failed"), (summary.unknown, "unknown")].filter { $0.0 > 0 }
            .map { "\(grouped($0.0)) row\($0.0 == 1 ? "" : "s") ended \($0.1)" }
        guard !texts.isEmpty else { return nil }
        return texts.joined(separator: ", and ") + "."
            + (summary.unknown > 0
                ? " A row that is unknown may have reached its device already." : "")
    }
}
