import BroadsidePolicy
package import BroadsideSupport

/// Rows that are due at the same time.
package struct Wave: Sendable, Equatable {
    /// Time at which the rows become due, in milliseconds since 1970.
    package let atMilliseconds: UInt64
    /// Whether the rows were already due when the campaign began, or when the run continued it.
    package let isAtOnce: Bool
    /// Date and time of day in the first of the wave's time zones, such as `2026-11-28 09:00`.
    package let localText: String
    /// Time zones of the rows, in the order in which the list names them.
    package private(set) var zones: [String] = []
    /// Number of rows.
    package private(set) var rows: UInt64 = 0

    package init(atMilliseconds: UInt64, isAtOnce: Bool, localText: String) {
        self.atMilliseconds = atMilliseconds
        self.isAtOnce = isAtOnce
        self.localText = localText
    }

    /// Adds the rows of a zone.
    package mutating func add(_ zone: String, rows: UInt64) {
        assert(!zones.contains(zone), "a zone's rows are added once")
        zones.append(zone)
        self.rows += rows
    }

    /// Human-readable time in UTC, such as `2026-11-28 08:00 UTC`.
    package var timeText: String {
        let text = universalTime(atMilliseconds)
        return isAtOnce ? "at once" : "\(text.prefix(10)) \(text.dropFirst(11).prefix(5)) UTC"
    }

    /// Human-readable rows and zones, such as `12,345 rows in Europe/Berlin and 3 others`.
    package var rowsText: String {
        "\(rows == 1 ? "1 row" : "\(grouped(rows)) rows") in \(zonesText)"
    }

    /// Human-readable zones, such as `Europe/Berlin and 3 others`.
    var zonesText: String {
        let others = zones.count - 1
        let more = others < 1 ? "" : others == 1 ? " and 1 other" : " and \(others) others"
        return "\(Self.zoneText(zones.first ?? "-"))\(more)"
    }

    /// Human-readable zone: its name, with the offset of a zone such as `Etc/GMT-8 (UTC+8)`, in
    /// whose name the sign is reversed.
    package static func zoneText(_ name: String) -> String {
        printable(name) + (UTCOffset(zone: name).map { " (\($0.text))" } ?? "")
    }

    /// Whether all zones of another wave are zones of this one.
    package func hasZones(of other: Wave) -> Bool { other.zones.allSatisfy(Set(zones).contains) }

    /// Whether at least one zone of another wave is a zone of this one.
    package func sharesZone(with other: Wave) -> Bool {
        !Set(zones).isDisjoint(with: other.zones)
    }

    /// Human-readable lines, one per wave, at most `linesLimit`.
    package static func lines(_ waves: [Wave]) -> [String] {
        var lines = waves.prefix(linesLimit).map { "\($0.timeText): \($0.rowsText)" }
        if waves.count > linesLimit {
            let rest = waves.dropFirst(linesLimit)
            lines.append(
                "\(rest.count) more: \(grouped(rest.reduce(0) { $0 + $1.rows })) rows")
        }
        return lines
    }

    private static let linesLimit = 60

    package var json: JSONLine {
        var line = JSONLine()
        line.add("at", universalTime(atMilliseconds))
        line.add("at_once", isAtOnce)
        line.add("rows", rows)
        line.addRaw(
            "zones", "[" + zones.map { JSONLine.quoted($0) }.joined(separator: ",") + "]")
        return line
    }
}

/// The waves of a campaign, and which of them its run is sending or waiting for. Rows that quiet
/// hours interrupted belong to a later wave as well.
package struct WaveProgress: Sendable, Equatable {
    package let waves: [Wave]
    /// Index of the latest wave that has begun; nil if none has begun.
    package let current: Int?
    /// Index of the next wave; nil if there is none.
    package let next: Int?
    /// Whether the run is waiting for the wave `next`.
    package let isWaiting: Bool
    /// Time from which quiet hours may delay rows, in milliseconds since 1970; nil: never.
    package let quietAtMilliseconds: UInt64?

    package init(
        waves: [Wave], current: Int?, next: Int?, isWaiting: Bool,
        quietAtMilliseconds: UInt64? = nil
    ) {
        assert(
            [current, next].compactMap(\.self).allSatisfy(waves.indices.contains),
            "both are waves of the campaign")
        assert((current ?? -1) < (next ?? .max), "the next wave comes after the current one")
        self.waves = waves
        self.current = current
        self.next = next
        self.isWaiting = isWaiting
        self.quietAtMilliseconds = quietAtMilliseconds
    }

    /// Waves that have not begun.
    var laterWaves: ArraySlice<Wave> { next.map { waves[$0...] } ?? [] }

    /// Human-readable text about the next wave; nil if there is none.
    package func nextText(now: UInt64) -> String? {
        guard let next else { return nil }
        let wave = waves[next]
        let wait = wave.atMilliseconds - min(wave.atMilliseconds, now)
        let time =
            wave.isAtOnce
            ? "at once" : "at \(wave.timeText), in \(durationText(Double(wait) / 1000))"
        return "wave \(next + 1) of \(waves.count) \(time): \(wave.rowsText)"
    }

    /// Human-readable text about the current wave; nil if none has begun.
    package var currentText: String? {
        guard let current else { return nil }
        let wave = waves[current]
        return "wave \(current + 1) of \(waves.count): \(wave.timeText), \(wave.rowsText)"
    }

    /// JSON object about the current and the next wave, for progress and status.
    ///
    /// - Parameter hasEnded: Whether the run has ended, so that it waits no longer.
    func position(hasEnded: Bool) -> JSONLine {
        var line = JSONLine()
        line.add("count", waves.count)
        line.add("current", current.map { UInt64($0 + 1) })
        line.add("next", next.map { UInt64($0 + 1) })
        line.add("next_at", next.map { universalTime(waves[$0].atMilliseconds) })
        line.add("next_rows", next.map { waves[$0].rows })
        line.add("waiting", isWaiting && !hasEnded)
        return line
    }
}
