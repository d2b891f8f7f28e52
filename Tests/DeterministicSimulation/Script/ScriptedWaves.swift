import BroadsideLists
import BroadsidePolicy

/// Waves of a seed: time zones whose clocks change, the zone of each row, and the times at which
/// rows are due. The rules are computed by stepping through the minutes, without the engine's code.
struct ScriptedWaves {
    let zones: [ScriptedZone]
    /// Index of each row's zone.
    let zoneOfRow: [Int]
    /// `--deliver-at` in minutes of the day; nil: at once.
    let deliverAt: Int64?
    /// `--on` in days since 1970; nil: the date of the first start in UTC.
    let date: Int64?
    /// `--late`.
    let late: DeliverySchedule.LateRule
    /// `--quiet` in minutes of the day; nil: no quiet hours.
    let quiet: (start: Int64, end: Int64)?

    private static let day: Int64 = 86_400
    /// Approximate start of the campaign, seconds since 1970.
    private static let start: Int64 = 1_760_000_400

    /// - Parameters:
    ///   - chance: Chance that the seed has waves.
    ///   - rowCount: Number of rows of the list.
    /// - Returns: nil if all rows are due at once.
    init?(seed: UInt64, chance: Double, rowCount: Int) {
        var random = SimulationRandom(seed: seed ^ 0x7761_7665_7300_0001)
        guard random.chance(chance) else { return nil }
        let zoneCount = random.between(1...7)
        // Clock changes are as likely near the relevant times as at any other time.
        let minute = Int64(random.between(-360...1200))
        let isAtOnce = random.chance(0.2)
        let east = Int64(random.between(-48...56)) * 900
        let shown = Self.start + minute * 60 + east
        let at = shown / 60 % 1440
        var hours: (start: Int64, end: Int64)?
        if isAtOnce || random.chance(0.45) {
            let start = random.chance(0.5) ? at + 1 : Int64(random.below(1440))
            hours = (start % 1440, (start + Int64(random.between(30...700))) % 1440)
            if !isAtOnce, Self.contains(hours, minute: at) { hours = nil }
        }
        deliverAt = isAtOnce && hours != nil ? nil : at
        quiet = hours
        date =
            random.chance(0.5)
            ? nil : (Self.start + Int64(random.pick([-86_400, 0, 0, 86_400]))) / Self.day
        late = random.pick([.send, .skip, .nextDay])
        var zones: [ScriptedZone] = []
        for number in 0..<zoneCount {
            // Some zones have similar offsets, others differ by a day.
            let offset = number == 0 ? east : Int64(random.between(-48...56)) * 900
            var changes: [(time: Int64, offset: Int64)] = []
            var last = offset
            // Near the time of delivery, near the start or the end of quiet hours, or at any time.
            let places = [at, hours?.start ?? at, hours?.end ?? at, Int64(random.below(1440))]
            for _ in 0..<random.pick([0, 0, 1, 1, 2]) {
                let days = Int64(random.between(-1...1))
                let place = random.pick(places) + Int64(random.between(-3...3)) * 30
                let time = (Self.start / Self.day + days) * Self.day + place * 60 - last
                guard changes.last.map({ $0.time + 4 * 3600 < time }) ?? true else { continue }
                last += random.pick([-3600, -1800, 1800, 3600, 3600])
                changes.append((time, last))
            }
            zones.append(ScriptedZone(offset: offset, changes: changes))
        }
        self.zones = zones
        let stretch = random.pick([1, 1, 3, 40])
        zoneOfRow = (0..<rowCount).map { row in
            var random = SimulationRandom(seed: seed &+ UInt64(row / stretch) &* 0x9e37_79b9)
            return random.below(zoneCount)
        }
    }

    private static func contains(_ hours: (start: Int64, end: Int64)?, minute: Int64) -> Bool {
        guard let hours else { return false }
        return hours.start < hours.end
            ? hours.start <= minute && minute < hours.end
            : hours.start <= minute || minute < hours.end
    }

    // MARK: The rules; times are milliseconds since 1970

    /// Whether a time is within the quiet hours of a zone.
    func isQuiet(_ zone: Int, at time: UInt64) -> Bool {
        let shown = zones[zone].shown(Int64(time / 1000))
        return Self.contains(quiet, minute: shown % Self.day / 60)
    }

    /// Time of delivery in a zone, changed by `--late` if it had passed at the start; nil: the rows
    /// are not sent. Quiet hours may delay it further.
    func base(_ zone: Int, startedAt: UInt64) -> UInt64? {
        guard let deliverAt else { return startedAt }
        var day = date ?? Int64(startedAt / 1000) / Self.day
        var time = firstTime(zone, showing: day * Self.day + deliverAt * 60)
        guard time < startedAt else { return time }
        switch late {
        case .send: return startedAt
        case .skip: return nil
        case .nextDay:
            while time < startedAt {
                day += 1
                time = firstTime(zone, showing: day * Self.day + deliverAt * 60)
            }
            return time
        }
    }

    /// The first minute at which the zone's clock shows this time or a later one.
    private func firstTime(_ zone: Int, showing wanted: Int64) -> UInt64 {
        var time = wanted - 26 * 3600
        while zones[zone].shown(time) < wanted { time += 60 }
        return UInt64(time) * 1000
    }

    /// The first time, from `time` on, that is outside the quiet hours.
    func endOfQuiet(_ zone: Int, from time: UInt64) -> UInt64 {
        guard isQuiet(zone, at: time), let quiet else { return time }
        let shown = zones[zone].shown(Int64(time / 1000))
        var end = shown - shown % Self.day + quiet.end * 60
        if end <= shown { end += Self.day }
        var minute = Int64(time / 60_000) * 60
        while zones[zone].shown(minute) < end { minute += 60 }
        return UInt64(minute) * 1000
    }

    // MARK: For the engine

    /// The zones of the rows, as a pass over the list finds them. A row that is not sent has none.
    func rowZones(of plan: SimulationPlan) throws -> RowZones {
        try RowZones(
            numbers: plan.list.tokens.indices.map { row in
                !plan.isSent(row) ? 0 : RowZones.firstZone + UInt16(zoneOfRow[row])
            }, zoneCount: zones.count)
    }

    /// Rules that are read from the zones' files.
    var rules: [TimeZoneRules] {
        zones.map { zone in
            guard let rules = TimeZoneRules(file: zone.file) else {
                preconditionFailure("the file of a zone can be read")
            }
            return rules
        }
    }

    /// The schedule that the options define.
    func schedule(startedAt: UInt64) -> DeliverySchedule {
        func text(_ minute: Int64) -> String {
            func two(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
            return "\(two(minute / 60)):\(two(minute % 60))"
        }
        return DeliverySchedule(
            deliverAt: deliverAt.flatMap { TimeOfDay(text($0)) },
            date: date.map { CalendarDate(days: $0) }, zone: .utc, late: late,
            quiet: quiet.flatMap { DayPeriod("\(text($0.start))-\(text($0.end))") },
            startedAt: startedAt)
    }
}
