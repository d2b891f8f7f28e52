import BroadsideEngine
import BroadsideLists
import BroadsideObservability
import BroadsidePayloads
internal import BroadsidePolicy
import BroadsideSupport

extension Plan {
    /// Description of the run in a few lines, which fit the width of the descriptor's terminal.
    ///
    /// - Parameter ahead: Rows that the run has yet to send; nil if only the list's size is known.
    func description(
        of list: TokenList, size: ListSize, ahead: RowsAhead? = nil, alert: AlertText?,
        waves: WavePlan? = nil,
        for descriptor: Int32
    ) -> String {
        var lines = [list.description(options.shard)]
        if let name = options.name { lines.insert("name         \(name)", at: 0) }
        if let labels = CampaignLabel.text(options.labels) {
            lines.append("labels       \(labels)")
        }
        if let part = options.part, let campaign = options.campaignID {
            lines.append("part         \(part.text) of campaign \(hexadecimal(campaign))")
        }
        lines.append("rows         \(size.text)")
        for rule in options.rules.descriptions {
            let blanks = String(repeating: " ", count: max(1, 13 - rule.option.count))
            lines.append(rule.option + blanks + rule.text)
        }
        if let text = options.armsDescription { lines.append("arms         \(text)") }
        if let text = options.earlierDescription { lines.append("skipped      \(text)") }
        if let text = options.delivery.description { lines.append("delivery     \(text)") }
        if let waves {
            lines += waves.planLines(
                deadline: options.deadline, expiration: options.expiration)
        }
        lines.append(
            "endpoint     \(hostAndPort)\(whose)\(protocolDescription)"
                + (route.proxy.map { " through the proxy \($0.hostAndPort)" } ?? ""))
        lines.append("credential   \(credential.summary)")
        lines.append("topic        \(requestDescription)")
        lines += headerLines
        lines.append("payload      \(payloads.description)")
        if let alert {
            lines.append(
                "alert        \(alert.line)\(alert.isFirstRows ? " (the first row's)" : "")")
        }
        let room = binaryWait == nil ? "streams" : "notifications in flight on"
        lines.append(
            "connections  \(shape.words(options)), at most \(streamsPerConnection) \(room) each"
                + silenceLine)
        if !options.keepsTokens { lines.append("tokens       not kept in the ledger") }
        let time = options.sendingTime(of: ahead ?? RowsAhead(size, options))
        lines.append("rate         \(options.rateDescription)\(time)")
        if let end = endDescription { lines.append("at the end   \(end)") }
        if options.hook != nil {
            lines.append(
                "hook         called when the run has started, stopped or finished"
                    + (options.delivery.isUsed ? ", and at each wave" : ""))
        }
        let text = ForeignText.escapedLines(SecretText.masked(lines.joined(separator: "\n")))
        return folded(text, indent: 13, for: descriptor)
    }

    /// Start of the year 10,000 in seconds since 1970. Only earlier times are shown as dates.
    private static let dateSecondsLimit: UInt64 = 253_402_300_800

    /// The lines about the collapse ID and the expiration, if they are set.
    private var headerLines: [String] {
        var lines: [String] = []
        if options.wireProtocol == .http2, let collapse = options.collapseID {
            lines.append("collapse ID  \(collapse)")
        }
        switch options.expiration {
        case .at(0): lines.append("expiration   0: one attempt, and nothing is stored")
        case .at(let seconds):
            let isDate = seconds < Self.dateSecondsLimit
            lines.append("expiration   \(isDate ? universalTime(seconds * 1000) : "\(seconds)")")
        case .after(let seconds):
            lines.append("expiration   \(durationText(Double(seconds))) after the first start")
        case nil: break
        }
        return lines
    }

    /// The text that names Apple's environment, to append to the endpoint; empty for other
    /// endpoints.
    private var whose: String {
        appleEnvironment.map { " (Apple, \($0.rawValue))" } ?? ""
    }

    /// Destinations of the results; nil if there are none.
    private var endDescription: String? {
        guard !options.opensNoConnection, let ledger = options.ledger else { return nil }
        var parts = ["each row's outcome is in ledger \(ledger)"]
        if let report = options.report { parts.append("report \(report)") }
        if let summary = options.summary, summary != "-" { parts.append("summary \(summary)") }
        if let deadline = options.deadline {
            parts.append(
                "rows that are not sent within \(durationText(Double(deadline) / 1e9)) of the first start "
                    + "remain")
        }
        return parts.joined(separator: "; ")
    }
}

extension PayloadFiles {
    /// Human-readable sizes of the payloads.
    var description: String {
        guard set.isPersonal else { return "\(set.templates[0].constantCount) bytes" }
        let counts = set.templates.map(\.constantCount)
        let (least, most) = (counts.min() ?? 0, counts.max() ?? 0)
        let size = least == most ? "\(least)" : "\(least) to \(most)"
        let files = counts.count == 1 ? "" : "\(counts.count) files, "
        let names = columns.filter { $0.location != Self.topicLocation }.map(\.name)
        let own = names.isEmpty ? "" : " and each row's \(names.joined(separator: ", "))"
        return "\(files)\(size) bytes\(own)"
            + (fittedColumns.isEmpty
                ? "" : "; \(fittedColumns.joined(separator: ", ")) is shortened so that it fits")
    }

    /// Columns whose values are shortened so that the payload fits.
    var fittedColumns: [String] {
        var columns: [String] = []
        for case let column? in set.templates.map(\.fittedColumn) where !columns.contains(column) {
            columns.append(column)
        }
        return columns
    }
}
