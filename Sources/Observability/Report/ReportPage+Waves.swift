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
            let wave = data.waves[index]
            let own = runs.filter { $0.wave == index && $0.mark.settled > 0 }.map(\.mark)
            let planned = universalTime(wave.atMilliseconds)
            return [
                "\(index + 1)",
                wave.isAtOnce
                    ? "at once" : "\(planned.prefix(10)) \(planned.dropFirst(11).prefix(5)) UTC",
                wave.localText, wave.zones, grouped(wave.rows),
                beginning(of: index, runs, axis),
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
            + "<p>The columns Accepted, Rejected and Others count the rows that the runs of this "
            + "wave settled. A run that sent several waves counts for the last of them.\(more)"
            + "</p></div>\n"
    }

    /// The note about the waves of a merged ledger.
    private var wavesOfParts: String {
        "<h2>Waves</h2>\n<div class=\"box\"><p>Each of the \(grouped(data.partsWithWaves)) merged "
            + "ledgers had its own waves, because each began at a different time. The report of "
            + "each original ledger has a table of its waves; the copy here has none.</p></div>\n"
    }

    /// A run, and the wave to which its rows count: the last one that it sent.
    private struct RunOfWave {
        let mark: ReportData.RunMark
        let wave: Int
    }

    /// The runs that settled rows or began a wave. If it is not recorded which wave a run sent, that
    /// is the latest wave whose time had come.
    private var runsOfWaves: [RunOfWave] {
        // A run may begin a wave and settle no row of it, if all rows wait to be sent again.
        data.runs.filter { $0.settled > 0 || $0.waves != nil }.map { run in
            let sent = run.waves?.last { data.waves.indices.contains($0) }
            let due = data.waves.lastIndex { $0.atMilliseconds <= run.startedAtMilliseconds }
            return RunOfWave(mark: run, wave: sent ?? due ?? 0)
        }
    }

    /// Text about the time at which a wave began. If its first rows were sent together with a later
    /// wave, the text names that wave.
    private func beginning(of index: Int, _ runs: [RunOfWave], _ axis: TimeAxis) -> String {
        let first = runs.first { run in
            run.wave == index || run.mark.waves?.contains(index) ?? (run.wave > index)
        }
        guard let first else { return "not yet" }
        return first.wave == index
            ? axis.text(atMilliseconds: first.mark.startedAtMilliseconds)
            : "with wave \(first.wave + 1)"
    }
}
