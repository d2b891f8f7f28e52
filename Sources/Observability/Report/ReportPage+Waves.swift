import BroadsideSupport

/// The waves of the campaign: when each was due, when it was sent, and its rows.
extension ReportPage {
    /// Table of the waves; empty if rows are not sent in waves.
    var waves: String {
        if data.partsWithWaves > 0 { return wavesOfParts }
        guard !data.waves.isEmpty else { return "" }
        let axis = axis
        let runs = runsOfWaves
        let rows = data.waves.indices.map { index in
            let (wave, own) = (data.waves[index], runs[index])
            let planned = universalTime(wave.atMilliseconds)
            return [
                "\(index + 1)",
                wave.isAtOnce
                    ? "at once" : "\(planned.prefix(10)) \(planned.dropFirst(11).prefix(5)) UTC",
                wave.localText, wave.zones, grouped(wave.rows),
                own.first.map { axis.text(atMilliseconds: $0.startedAtMilliseconds) }
                    ?? later(than: index, runs),
                own.isEmpty ? "" : grouped(own.reduce(0) { $0 + $1.accepted }),
                own.isEmpty ? "" : grouped(own.reduce(0) { $0 + $1.rejected }),
                own.isEmpty ? "" : grouped(own.reduce(0) { $0 + $1.others }),
            ]
        }
        let more =
            data.waves.count == Telemetry.wavesLimit ? " Only the first waves are listed." : ""
        return "<h2>Waves</h2>\n<div class=\"box\">"
            + tableHTML(
                [
                    "Wave", "Due", "Local time", "Time zones", "Rows", "Began (\(axis.zone.name))",
                    "Accepted", "Rejected", "Others",
                ], rows, textColumns: [0, 1, 2, 3, 5], isStacked: true)
            + "<p>The columns Accepted, Rejected and Others count the rows that were settled from "
            + "the start of this wave to the start of the next.\(more)</p></div>\n"
    }

    /// The note about the waves of a merged ledger.
    private var wavesOfParts: String {
        "<h2>Waves</h2>\n<div class=\"box\"><p>Each of the \(grouped(data.partsWithWaves)) merged "
            + "ledgers had its own waves, because each began at a different time. The report of "
            + "each original ledger has a table of its waves; the copy here has none.</p></div>\n"
    }

    /// The runs of each wave: the runs that began to send after the wave's time and before the next
    /// wave's time.
    private var runsOfWaves: [[ReportData.RunMark]] {
        var runs = [[ReportData.RunMark]](repeating: [], count: data.waves.count)
        for run in data.runs where run.accepted + run.rejected + run.others > 0 {
            let wave = data.waves.lastIndex { $0.atMilliseconds <= run.startedAtMilliseconds }
            runs[wave ?? 0].append(run)
        }
        assert(runs.joined().count <= data.runs.count, "each run is one of one wave at most")
        return runs
    }

    /// Text about a wave without runs of its own: it was sent with the next wave that has runs.
    private func later(than index: Int, _ runs: [[ReportData.RunMark]]) -> String {
        runs[index...].firstIndex { !$0.isEmpty }.map { "with wave \($0 + 1)" } ?? "not yet"
    }
}
