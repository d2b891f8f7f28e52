import BroadsideLedgerFormat
public import BroadsideLedgers
import BroadsideRows
public import BroadsideSupport

extension NightsReport {
    /// Writes one line of JSON per night, newest first.
    public func writeJSON(to output: OutputFile) throws(BroadsideError) {
        let outliers = NightOutlier.find(in: nights)
        for (night, unusual) in zip(nights, outliers) {
            try output.write(Array(night.json(unusual).object.utf8) + [0x0a])
        }
        try output.finish()
    }
}

extension Night {
    /// JSON object of a night. Its keys are the same for each night; unknown values are null.
    func json(_ unusual: [NightOutlier]) -> JSONLine {
        var line = JSONLine()
        line.add("ledger", path)
        line.add("name", figures == nil ? nil : title)
        line.add("group", figures == nil ? nil : group)
        line.add("started_at", startedAtMilliseconds.map(timeText))
        line.add("outcome", figures?.outcome.rawValue ?? (isCopy ? "copy" : "unreadable"))
        line.addRaw("limited", figures?.isLimited.map { "\($0)" } ?? "null")
        line.add("rows", figures?.rows)
        for state in RowState.settledStates {
            line.add(state.name, figures?.counts[state])
        }
        line.add("in_doubt", figures?.counts[.inDoubt])
        line.add("remaining", figures?.remaining)
        line.add("dead", figures?.dead)
        line.add("running_seconds", figures?.runningSeconds, places: 3)
        line.add("rate", figures?.speed, places: 3)
        line.add("list_age_seconds", figures?.listAgeSeconds, places: 0)
        let words = unusual.map { JSONLine.quoted($0.text) }
        line.addRaw("unusual", "[\(words.joined(separator: ","))]")
        if case .unreadable(let problem) = content {
            line.add("error", problem)
        } else {
            line.add("error", String?.none)
        }
        if case .copy(let original) = content {
            line.add("copy_of", original)
        } else {
            line.add("copy_of", String?.none)
        }
        return line
    }
}
