import BroadsideAPNs
import BroadsideLedgerFormat
package import BroadsideLists
package import BroadsideObservability
package import BroadsidePolicy
import BroadsideRows
import BroadsideSupport

/// The waves of a campaign whose rows are sent at a local time. A wave begins when the rows of one
/// or more time zones are due.
package struct WavePlan: Sendable {
    /// Zones of the list's rows, and the number of rows of each.
    package let zones: RowZones
    private let schedule: DeliverySchedule
    private let rules: [TimeZoneRules]
    /// Time at which each zone's rows are due, as decided at the first start.
    private let instants: [DeliverySchedule.Instant]
    /// The waves as decided at the first start, in order. The first wave may consist of rows that
    /// are sent at once.
    package let waves: [Wave]
    /// Number of rows of each zone that are left to be sent.
    private var left: [UInt64]
    /// Whether `zones` also has rows that earlier runs settled.
    private var hasSettledRows = false
    /// Rows that are due at this time are sent at once: the first start or the start of a resume,
    /// or the time at which quiet hours interrupted the run.
    private var start: UInt64
    /// The waves in which the rows that are left are sent, in order. Quiet hours may have delayed
    /// them since the first start.
    private(set) var coming: [Wave]

    /// Finds the zones of all rows.
    ///
    /// - Parameters:
    ///   - selection: Rows of the run, and those that it skips.
    ///   - left: Work that earlier runs left, so that the waves contain only rows that need work;
    ///     nil: the waves contain all rows.
    ///   - startedAt: First start of the campaign, milliseconds since 1970.
    /// - Returns: nil if all rows are sent at once.
    init?(
        _ options: DeliveryOptions, _ list: TokenList, _ selection: ListSelection,
        left: consuming ResumePlan? = nil, startedAt: UInt64
    ) throws(BroadsideError) {
        guard options.isUsed else { return nil }
        let database = ZoneDatabase()
        let schedule = options.schedule(try options.zone(database), startedAt: startedAt)
        let zones = try RowZones(
            list, selection, left: left, rule: options.zoneRule(database))
        self.init(
            zones, rules: zones.zones.map { database.rules(named: $0.name) ?? .utc }, schedule)
    }

    /// Decides when the rows of the zones are due.
    ///
    /// - Parameter rules: Rules of each zone.
    package init(_ zones: RowZones, rules: [TimeZoneRules], _ schedule: DeliverySchedule) {
        precondition(rules.count == zones.zones.count, "each zone has its rules")
        self.zones = zones
        self.rules = rules
        self.schedule = schedule
        instants = rules.map { schedule.instant(in: $0) }
        (left, start) = (zones.zones.map(\.rows), schedule.startedAt)
        // An erasure changes neither the number nor the order of the campaign's waves.
        waves = Self.waves(
            zones, rules, instants, rows: zones.zones.map { $0.rows + $0.erasedRows }, from: start)
        coming = Self.waves(zones, rules, instants, rows: left, from: start)
    }

    /// Plans the waves of a run that continues the campaign now.
    ///
    /// - Parameter left: Number of rows of each zone that are left; nil: all rows of `zones`, which
    ///   has no rows that earlier runs settled.
    mutating func resume(at now: UInt64, left: [UInt64]? = nil) {
        assert(left?.count ?? zones.zones.count == zones.zones.count, "each zone has its rows")
        if let left { (self.left, hasSettledRows) = (left, true) }
        start = now
        plan(at: now)
    }

    /// Plans the waves to come again, because quiet hours may have begun since the start.
    mutating func plan(at now: UInt64) {
        let times = instants.indices.map { zone -> DeliverySchedule.Instant in
            guard case .at(let instant) = instants[zone], let due = dueTime(zone, now: now) else {
                return .missed
            }
            return .at(max(due > now ? due : instant, start))
        }
        coming = Self.waves(zones, rules, times, rows: left, from: start)
    }

    /// The waves that earlier runs have sent, in order.
    var earlier: [Wave] {
        let rows = zip(zones.zones, left).map { $0.rows - min($0.rows, $1) }
        return Self.waves(zones, rules, instants, rows: rows, from: schedule.startedAt)
    }

    /// - Parameters:
    ///   - times: Time at which each zone's rows are sent.
    ///   - rows: Number of rows of each zone.
    ///   - start: Rows of this time are sent at once.
    private static func waves(
        _ zones: RowZones, _ rules: [TimeZoneRules], _ times: [DeliverySchedule.Instant],
        rows: [UInt64], from start: UInt64
    ) -> [Wave] {
        var waves: [UInt64: Wave] = [:]
        for (number, zone) in zones.zones.enumerated() where rows[number] > 0 {
            guard case .at(let time) = times[number] else { continue }
            let empty = Wave(
                atMilliseconds: time, isAtOnce: time <= start,
                localText: localText(time, in: rules[number]))
            waves[time, default: empty].add(zone.name, rows: rows[number])
        }
        assert(waves.values.allSatisfy { $0.atMilliseconds >= start }, "no wave was due earlier")
        return waves.values.sorted { $0.atMilliseconds < $1.atMilliseconds }
    }

    /// Human-readable local time in a zone: `2026-11-28 09:00`.
    private static func localText(_ milliseconds: UInt64, in zone: TimeZoneRules) -> String {
        let local = zone.local(at: Int64(milliseconds / 1000))
        let text = universalTime(UInt64(max(0, local)) * 1000)
        return "\(text.prefix(10)) \(text.dropFirst(11).prefix(5))"
    }

    /// Human-readable time at which a row is sent; nil if its time has passed or the row has no
    /// zone.
    func deliveryText(ofRow row: UInt64) throws(BroadsideError) -> String? {
        guard let number = try zones.numbers(of: row..<row + 1).first,
            number >= RowZones.firstZone
        else { return nil }
        let zone = Int(number - RowZones.firstZone)
        guard case .at(let time) = instants[zone],
            let index = waves.firstIndex(where: { $0.atMilliseconds == time })
        else { return nil }
        let wave = waves[index]
        let local = Self.localText(time, in: rules[zone])
        return "wave \(index + 1) of \(waves.count): "
            + (wave.isAtOnce ? "at once, \(local)" : "\(wave.timeText), \(local)")
            + " in \(Wave.zoneText(zones.zones[zone].name))"
    }

    /// Number of rows that are left, and not sent because their time had passed at the first start.
    package var missedRows: UInt64 {
        zip(left, instants).reduce(0) { $0 + ($1.1 == .missed ? $1.0 : 0) }
    }

    /// Earliest time at which the rows of a zone may be sent, at least `now`; nil if they are not
    /// sent.
    private func dueTime(_ zone: Int, now: UInt64) -> UInt64? {
        guard case .at(let instant) = instants[zone] else { return nil }
        return schedule.dueTime(instant, in: rules[zone], now: now)
    }

    /// Rows that are due at a time.
    package func due(at now: UInt64) -> DueRows {
        DueRows(zones) { zone in
            guard let time = dueTime(zone, now: now) else { return .skip }
            return time <= now ? .send : .wait
        }
    }

    /// All rows, for a dry run. A dry run ignores the times at which rows are due.
    var anyTime: DueRows {
        DueRows(zones) { instants[$0] == .missed ? .skip : .send }
    }

    /// First time after `now` at which more rows are due; nil if there is none.
    func next(after now: UInt64) -> UInt64? {
        zones.zones.indices.compactMap { zone -> UInt64? in
            guard zones.zones[zone].rows > 0, let time = dueTime(zone, now: now), time > now else {
                return nil
            }
            return time
        }.min()
    }

    /// First time after `now` at which quiet hours begin in a zone whose rows are due at `now`; nil
    /// if there is none.
    package func nextQuiet(after now: UInt64) -> UInt64? {
        zones.zones.indices.compactMap { zone -> UInt64? in
            guard zones.zones[zone].rows > 0, let time = dueTime(zone, now: now), time <= now
            else { return nil }
            return schedule.nextQuiet(in: rules[zone], after: now)
        }.min()
    }

    /// Whether waves that have begun may have unsettled rows; false if all rows of these waves are
    /// settled. Rows that wait for the end of quiet hours count as rows of these waves.
    ///
    /// - Parameters:
    ///   - rows: Number of rows of the campaign; nil: unknown.
    ///   - settled: Number of rows that are settled and not sent again.
    package func mayHaveLeft(at now: UInt64, rows: UInt64?, settled: UInt64) -> Bool {
        guard let rows else { return true }
        return settled + laterRows(at: now) < rows
    }

    /// Number of rows that become due for the first time after `now`.
    package func laterRows(at now: UInt64) -> UInt64 {
        zip(zones.zones, instants).reduce(0) { sum, zone in
            guard case .at(let instant) = zone.1, instant > now else { return sum }
            return sum + zone.0.rows
        }
    }

    /// Number of rows that are due at a time.
    func dueRows(at now: UInt64) -> UInt64 {
        zones.zones.indices.reduce(0) { sum, zone in
            guard let time = dueTime(zone, now: now), time <= now else { return sum }
            return sum + zones.zones[zone].rows
        }
    }

    /// Lines of the plan: the waves, and the rows that belong to no wave.
    ///
    /// - Parameters:
    ///   - deadline: Nanoseconds from the first start; nil: none.
    ///   - expiration: Expiration of the notifications; nil: none.
    func planLines(deadline: UInt64?, expiration: Expiration? = nil) -> [String] {
        var lines = Wave.lines(coming).enumerated().map { index, line in
            (index == 0 ? "waves        " : "             ") + line
        }
        if let time = schedule.deliverAt, let first = coming.first, first.isAtOnce {
            let isLate = waves.first.map { $0.isAtOnce && $0.hasZones(of: first) } ?? false
            lines[0] += ": \(time.text) has passed there\(isLate ? " (--late)" : "")"
        }
        // It is not known how many of the rows without a known zone are left.
        if !hasSettledRows { lines += unnamedLines }
        if missedRows > 0 {
            lines.append("             too late: \(grouped(missedRows)) rows are skipped")
        }
        let unsent = rows(dueFrom: end(deadline))
        if unsent > 0 {
            lines.append(
                "             \(grouped(unsent)) rows are due after --deadline, and remain")
        }
        let expired = expiredRows(expiration, deadline: deadline)
        if expired > 0 {
            lines.append(
                "             \(grouped(expired)) rows are due after --expiration: APNs tries to "
                    + "deliver each only once, and does not store it")
        }
        return lines
    }

    /// Lines of the plan about rows without a known zone.
    private var unnamedLines: [String] {
        var lines: [String] = []
        if zones.unnamedRows > 0 {
            lines.append(
                "             by --zone-default: \(grouped(zones.unnamedRows)) of these rows have no zone"
            )
        }
        if let misnamedText { lines.append("             by --zone-default: \(misnamedText)") }
        if zones.unknownRows > 0, let first = zones.firstUnknown {
            let rows =
                zones.unknownRows == 1 ? "1 row names" : "\(grouped(zones.unknownRows)) rows name"
            lines.append(
                "             no zone: \(rows) an unknown zone, the first on line \(first.line) "
                    + "('\(first.text)')")
        }
        return lines
    }

    /// Number of rows that are left and due from a time on, until another time.
    private func rows(dueFrom time: UInt64, until end: UInt64 = .max) -> UInt64 {
        coming.filter { $0.atMilliseconds >= time && $0.atMilliseconds < end }
            .reduce(0) { $0 + $1.rows }
    }

    /// Time at which the campaign stops sending, milliseconds since 1970.
    ///
    /// - Parameter deadline: Nanoseconds from the first start; nil: none.
    private func end(_ deadline: UInt64?) -> UInt64 {
        guard let deadline else { return .max }
        let (time, isFar) = schedule.startedAt.addingReportingOverflow(deadline / millisecond)
        return isFar ? .max : time
    }

    /// Time at which the notifications expire, milliseconds since 1970. With an expiration of 0,
    /// APNs stores no notification, so none expires.
    private func end(_ expiration: Expiration?) -> UInt64 {
        guard let expiration, expiration.fixedUnixSeconds != 0 else { return .max }
        let seconds = expiration.unixSeconds(startUnixSeconds: schedule.startedAt / 1_000)
        let (time, isFar) = seconds.multipliedReportingOverflow(by: 1_000)
        return isFar ? .max : time
    }

    /// Number of rows that are sent although their notification has expired when they are due.
    private func expiredRows(_ expiration: Expiration?, deadline: UInt64?) -> UInt64 {
        rows(dueFrom: end(expiration), until: end(deadline))
    }

    /// Warning about rows that are due when their notification has expired; nil if there are none.
    ///
    /// - Parameter deadline: Nanoseconds from the first start; nil: none.
    func expirationWarning(_ expiration: Expiration?, deadline: UInt64?) -> String? {
        let rows = expiredRows(expiration, deadline: deadline)
        guard rows > 0, let expiration, let last = coming.last else { return nil }
        return "broadside: warning: --expiration \(expiration.text) ends before "
            + "\(grouped(rows)) rows are due, so APNs tries to deliver each of these notifications "
            + "only once, and stores none for devices that are offline: "
            + (start == schedule.startedAt
                ? "write a time after \(last.timeText)"
                : "a resume can't change it, but with --deadline it leaves such rows unsent")
    }

    /// Warning about a deadline before the next wave; nil if some rows are due before the deadline.
    /// If a resume begins after the deadline, another message says so.
    ///
    /// - Parameter deadline: Nanoseconds from the first start; nil: none.
    func deadlineWarning(_ deadline: UInt64?) -> String? {
        let end = end(deadline)
        guard let next = coming.first, end > start, next.atMilliseconds >= end else { return nil }
        return "broadside: warning: --deadline ends before any row is due, so nothing is sent: the "
            + "\(start == schedule.startedAt ? "first" : "next") wave is due at \(next.timeText): "
            + "allow more time"
    }

    /// Warning for a resume about rows that are due when their notification has expired; nil if
    /// there are none. If the expiration has passed, another warning says so.
    func resumeWarning(_ options: SendOptions) -> String? {
        guard end(options.expiration) > start else { return nil }
        return expirationWarning(options.expiration, deadline: options.deadline)
    }

    /// Text about rows whose zone is unknown, perhaps misspelled; nil if there are none.
    private var misnamedText: String? {
        zones.firstMisnamed.map { first in
            let rows =
                zones.misnamedRows == 1
                ? "1 row names" : "\(grouped(zones.misnamedRows)) rows name"
            return
                "\(rows) an unknown zone, the first on line \(first.line) ('\(first.text)')"
        }
    }

    /// Checks the zones and the date of a campaign before it begins. Warns about rows that get the
    /// default zone because their own zone may be misspelled.
    ///
    /// - Throws: Exit code 2 if most zones that rows name are unknown, or if the date is past.
    func check(_ send: SendOptions) throws(BroadsideError) {
        let options = send.delivery
        if let date = options.date, date.isOverEverywhere(at: schedule.startedAt / 1_000) {
            throw .usage(
                "on",
                "\(date.text) is past in every time zone: name a later date, or leave out "
                    + "--deliver-at to send now")
        }
        if let warning = UTCOffset.warning(ofZones: zones.usedNames) { standardErrorLine(warning) }
        if let warning = nightWarning(send) { standardErrorLine(warning) }
        if let warning = expirationWarning(send.expiration, deadline: send.deadline) {
            standardErrorLine(warning)
        }
        if let warning = capWarning(send.cap) { standardErrorLine(warning) }
        guard let text = misnamedText, let column = options.zoneColumn,
            let zone = options.zoneDefault
        else { return }
        let named = zones.zones.reduce(0) { $0 + $1.rows } - zones.unnamedRows
        assert(
            named >= zones.misnamedRows, "the default zone includes all rows without a known zone")
        guard zones.misnamedRows <= named / 2 else {
            throw .usage(
                "zone-column",
                "'\(printable(column))': \(text): "
                    + (ZoneDatabase().packageAdvice
                        ?? "does the column contain time zones such as Europe/Berlin? "
                        + (zones.firstMisnamed.flatMap { UTCOffset.advice(for: $0.text) }
                            .map { "\($0). " } ?? "")
                        + "To send these rows with --zone-default, leave the column empty in them"))
        }
        standardErrorLine(
            "broadside: warning: --zone-column: \(text): such rows get --zone-default \(zone)")
    }

    /// Warning about a night whose waves take longer than the length of a night; nil if they take
    /// less.
    func nightWarning(_ send: SendOptions) -> String? {
        guard let length = send.nightLength, let last = waves.last,
            last.atMilliseconds > schedule.startedAt + length / millisecond
        else { return nil }
        let hours = durationText(Double(last.atMilliseconds - schedule.startedAt) / 1_000)
        return
            "broadside: warning: the last wave is due at \(last.timeText), \(hours) after the "
            + "start, but a night lasts \(durationText(Double(length) / 1_000_000_000)). A later "
            + "start would begin the next night instead of continuing this one: raise "
            + "--night-length, or make one campaign per region with --where and --name"
    }

    /// Warning about a cap that a campaign of every day reaches by its own late waves; nil if there
    /// is none.
    ///
    /// The cap's period ends at the first start, but rows of the day before were sent up to the
    /// time of its last wave. A cap that rows without a delay would reach as well is meant to skip
    /// days, so it causes no warning.
    func capWarning(_ cap: FrequencyCap?) -> String? {
        guard let cap, let last = waves.last else { return nil }
        let (hour, day): (UInt64, UInt64) = (3_600_000, 86_400_000)
        let (count, period) = (UInt64(cap.count), cap.milliseconds)
        assert(period > 0, "a cap has a period")
        let delay = last.atMilliseconds - schedule.startedAt
        let daysBefore = (period - 1) / day
        let daysBeforeLastWave = (period + delay) / day
        guard daysBefore < count, daysBeforeLastWave >= count else { return nil }
        let room = count * day - min(count * day, delay)
        // An hour is left for the time that the last wave takes, and for a change of clocks.
        let hours = room / hour - min(room / hour, 1)
        let remedy =
            hours > 0
            ? "write --cap \(count)/\(hours)h"
            : "make one campaign per region with --where and --name, so that its waves are closer "
                + "together"
        return "broadside: warning: the last wave is due at \(last.timeText), "
            + "\(durationText(Double(delay) / 1_000)) after the start, but --cap counts the last "
            + "\(durationText(Double(period) / 1_000)) before the start. If this campaign is sent "
            + "every day, rows of late waves are skipped on some days (FrequencyCap) because of its "
            + "own earlier notifications: \(remedy)"
    }

    /// Time from which quiet hours may delay rows; nil: never. They may delay rows from now on if
    /// some rows wait for their end, or if waves follow that may meet other quiet hours.
    func quietStart(_ now: UInt64) -> UInt64? {
        guard schedule.quiet != nil else { return nil }
        return next(after: now) == nil ? nextQuiet(after: now) : now
    }
}

extension DeliveryOptions {
    /// Rules of the default time zone; nil if there is none.
    func zone(_ database: ZoneDatabase) throws(BroadsideError) -> TimeZoneRules? {
        try zoneDefault.map { (name) throws(BroadsideError) in
            try database.rules(of: name, option: "zone-default")
        }
    }

    /// Schedule of the deliveries of a campaign.
    ///
    /// - Parameter zone: Rules of the default time zone; nil if there is none.
    func schedule(_ zone: TimeZoneRules?, startedAt: UInt64) -> DeliverySchedule {
        DeliverySchedule(
            deliverAt: deliverAt, date: date, zone: zone ?? .utc, late: late ?? .send,
            quiet: quiet, startedAt: startedAt)
    }

    /// Zones whose rows get no request; nil if rows have no zone.
    func unsentZones() throws(BroadsideError) -> UnsentZones? {
        guard isUsed else { return nil }
        let database = ZoneDatabase()
        let zone = try zone(database)
        return UnsentZones(zoneRule(database)) { [self] name, startedAt in
            schedule(zone, startedAt: startedAt)
                .instant(in: database.rules(named: name) ?? .utc) == .missed
        }
    }

    /// Rule that determines the zone of each row.
    func zoneRule(_ database: ZoneDatabase) -> RowZones.Rule {
        RowZones.Rule(column: zoneColumn, defaultZone: zoneDefault) {
            database.rules(named: $0) != nil
        }
    }
}
