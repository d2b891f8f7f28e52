import BroadsideSupport

/// What devices reported about the campaign, by arm.
extension ReportPage {
    /// Receipts of the campaign; empty if none were given.
    var receipts: String {
        guard let findings = data.receipts else { return "" }
        var html = "<h2>Who opened it</h2>\n<p>\(escapedHTML(findings.sentence))</p>\n"
        html +=
            "<div class=\"pair ones\">\n\(opensChart(findings))\(differencesChart(findings))</div>\n"
        html += byHour(findings)
        for index in findings.columns.indices { html += byColumn(findings, index) }
        let left = findings.leftOutText.map { "; of these, \($0)" } ?? ""
        html +=
            "<p class=\"note\">\(escapedHTML("\(grouped(findings.receipts)) receipts were read\(left)."))"
        if findings.namesTokens, findings.arms.contains(where: \.isHoldout) {
            html +=
                " The differences from the holdout include devices whose requests were refused, "
                + "because the holdout includes devices with dead tokens."
        } else if findings.arms.contains(where: \.isHoldout) {
            html +=
                " Devices of the holdout got no notification that they could open: to compare "
                + "arms with the holdout, give receipts that have a column 'token'."
        }
        return html + "</p>\n"
    }

    /// One line in a chart of confidence intervals.
    private struct Span {
        var name: String
        var value: Double
        var interval: ClosedRange<Double>
        var text: String
        var isFaint = false
    }

    private func opensChart(_ findings: ReceiptFindings) -> String {
        let spans = findings.shownArms.map { arm in
            let share = arm.proportion
            return Span(
                name: arm.name, value: share.share, interval: share.interval,
                text: arm.devices == 0
                    ? "no devices"
                    : "\(ReceiptFindings.percent(share.share)) "
                        + "(\(ReceiptFindings.text(share.interval))) of \(grouped(arm.devices))",
                isFaint: arm.isHoldout)
        }
        let high = spans.map(\.interval.upperBound).max() ?? 1
        return chart(
            "Devices that opened", spans, 0...max(high, 0.001),
            note: "The line is the range that contains the true share in 95 of 100 such samples.")
    }

    private func differencesChart(_ findings: ReceiptFindings) -> String {
        let comparisons = findings.comparisons
        guard !comparisons.isEmpty else { return "" }
        let spans = comparisons.map { comparison in
            let difference = comparison.difference
            return Span(
                name: comparison.name, value: difference.difference,
                interval: difference.interval,
                text: "\(ReceiptFindings.points(difference.difference)) "
                    + "(\(ReceiptFindings.points(difference.interval.lowerBound)) to "
                    + "\(ReceiptFindings.points(difference.interval.upperBound))): "
                    + comparison.verdict,
                isFaint: difference.isInconclusive)
        }
        let most =
            spans.flatMap { [abs($0.interval.lowerBound), abs($0.interval.upperBound)] }
            .max() ?? 1
        return chart(
            "Differences, in percentage points", spans, -max(most, 0.001)...max(most, 0.001),
            note: "If the range includes 0, the sample is too small to tell which arm is ahead.")
    }

    private func chart(
        _ title: String, _ spans: [Span], _ range: ClosedRange<Double>, note: String
    ) -> String {
        let width = range.upperBound - range.lowerBound
        func place(_ value: Double) -> String {
            decimal(min(100, max(0, (value - range.lowerBound) / width * 100)), places: 2)
        }
        let zero = range.lowerBound < 0 ? "<i style=\"left:\(place(0))%\"></i>" : ""
        let items = spans.map { span in
            let length = (span.interval.upperBound - span.interval.lowerBound) / width * 100
            return "<li\(span.isFaint ? " class=\"faint\"" : "")><b>\(escapedHTML(span.name))</b>"
                + "<span class=\"span\">\(zero)"
                + "<u style=\"left:\(place(span.interval.lowerBound))%;"
                + "width:\(decimal(length, places: 2))%\"></u>"
                + "<em style=\"left:\(place(span.value))%\"></em></span>"
                + "<span>\(escapedHTML(span.text))</span></li>"
        }
        return """
            <figure><figcaption><h3>\(escapedHTML(title))</h3></figcaption>
            <ul class="spans">\(items.joined())</ul>
            <p class="note">\(escapedHTML(note))</p></figure>

            """
    }

    private func byHour(_ findings: ReceiptFindings) -> String {
        let arms = findings.shownArms
        let used = (0...ReceiptFindings.hourCount).filter { hour in
            arms.contains { $0.hours[hour] > 0 }
        }
        guard !used.isEmpty else { return "" }
        let rows = used.map { hour in
            let name =
                hour == ReceiptFindings.hourCount ? "\(hour) and later" : "\(hour) to \(hour + 1)"
            return [name] + arms.map { cell($0.hours[hour], $0) }
        }
        return folded(
            "First opens by hours after the notification",
            tableHTML(["Hours"] + arms.map(\.name), rows))
    }

    private func byColumn(_ findings: ReceiptFindings, _ index: Int) -> String {
        let (arms, column) = (findings.shownArms, findings.columns[index])
        let rows = column.values.enumerated().map { place, name in
            [name.isEmpty ? "(none)" : name]
                + arms.map {
                    cell(place < $0.values[index].count ? $0.values[index][place] : 0, $0)
                }
        }
        guard !rows.isEmpty else { return "" }
        return folded(
            "First opens by \(column.name)", tableHTML([column.name] + arms.map(\.name), rows))
    }

    /// Table cell with a count and its share of the arm's devices.
    private func cell(_ count: UInt64, _ arm: ReceiptFindings.Arm) -> String {
        "\(grouped(count)) (\(Self.percent(count, of: arm.devices)))"
    }
}
