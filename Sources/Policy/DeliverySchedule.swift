/// Decides when the rows of each time zone are due (`--deliver-at`, `--on`, `--late`, `--quiet`).
///
///     time of day, date, zone --> instant --passed at the start?--> late: at once, never, or the
///                                    |                              next day
///                                    '--inside quiet hours?--> the end of these
///
/// All times are milliseconds since 1970.
public struct DeliverySchedule: Hashable, Sendable {
    /// What happens to rows whose time had passed at the campaign's first start.
    public enum LateRule: String, CaseIterable, Sendable {
        /// The rows are sent at once.
        case send
        /// The rows are not sent.
        case skip
        /// The rows are sent at the same time of the next day.
        case nextDay = "next-day"
    }

    /// Instant at which the rows of a zone are due.
    public enum Instant: Hashable, Sendable {
        /// The rows are due from this time on.
        case at(UInt64)
        /// The time has passed, and the rows are not sent.
        case missed
    }

    /// Time of day at which rows are sent; nil: at once.
    public var deliverAt: TimeOfDay?
    /// Date on which rows are sent.
    public var date: CalendarDate
    /// Treatment of rows whose time had passed at the first start.
    public var late: LateRule
    /// Hours in which no row is sent; nil: none.
    public var quiet: DayPeriod?
    /// First start of the campaign.
    public var startedAt: UInt64

    /// Creates a schedule.
    ///
    /// - Parameters:
    ///   - date: Date of delivery; nil: the date of the first start in `zone`.
    ///   - zone: Zone of the default date.
    public init(
        deliverAt: TimeOfDay?, date: CalendarDate?, zone: TimeZoneRules, late: LateRule,
        quiet: DayPeriod?, startedAt: UInt64
    ) {
        self.deliverAt = deliverAt
        self.date = date ?? CalendarDate(ofLocal: zone.local(at: Int64(startedAt / 1000)))
        self.late = late
        self.quiet = quiet
        self.startedAt = startedAt
    }

    /// Instant at which the rows of a zone are due, as decided at the first start.
    public func instant(in zone: TimeZoneRules) -> Instant {
        guard let deliverAt else { return .at(endOfQuiet(in: zone, from: startedAt)) }
        let time = Self.milliseconds(
            zone.time(showing: date.localMidnight + deliverAt.seconds))
        guard time < startedAt else { return .at(endOfQuiet(in: zone, from: time)) }
        switch late {
        case .send: return .at(endOfQuiet(in: zone, from: startedAt))
        case .skip: return .missed
        case .nextDay:
            // If the date is in the past, the next day may have passed, too.
            let local = zone.local(at: Int64(startedAt / 1000))
            var day = max(date.next, CalendarDate(ofLocal: local))
            while true {
                let time = Self.milliseconds(
                    zone.time(showing: day.localMidnight + deliverAt.seconds))
                if time >= startedAt { return .at(endOfQuiet(in: zone, from: time)) }
                day = day.next
            }
        }
    }

    /// First time from `now` on at which rows due at `instant` may be sent.
    public func dueTime(_ instant: UInt64, in zone: TimeZoneRules, now: UInt64) -> UInt64 {
        let due = now <= instant ? instant : endOfQuiet(in: zone, from: now)
        assert(due >= now, "no row is due in the past")
        return due
    }

    /// First time from `time` on that is outside of the quiet hours.
    private func endOfQuiet(in zone: TimeZoneRules, from time: UInt64) -> UInt64 {
        let seconds = Int64(time / 1000)
        let local = zone.local(at: seconds)
        let second = CalendarDate.secondOfDay(local)
        guard let quiet, quiet.contains(second: second) else { return time }
        let date = CalendarDate(ofLocal: local)
        let endDate = second < quiet.end.seconds ? date : date.next
        let end = zone.firstTime(
            from: seconds, showing: endDate.localMidnight + quiet.end.seconds)
        assert(end > seconds, "quiet hours end after each of their times")
        return Self.milliseconds(end)
    }

    /// First time after `now` at which the quiet hours of a zone begin, or at which the zone's
    /// clock is set back into the quiet hours; nil if there are no quiet hours.
    public func nextQuiet(in zone: TimeZoneRules, after now: UInt64) -> UInt64? {
        guard let quiet else { return nil }
        let seconds = Int64(now / 1000)
        let local = zone.local(at: seconds)
        let date = CalendarDate(ofLocal: local)
        let isToday = CalendarDate.secondOfDay(local) < quiet.start.seconds
        let start = zone.firstTime(
            from: seconds,
            showing: (isToday ? date : date.next).localMidnight + quiet.start.seconds)
        assert(start > seconds, "quiet hours begin later")
        var change = zone.nextChange(after: seconds)
        while let time = change, time < start {
            if quiet.contains(second: CalendarDate.secondOfDay(zone.local(at: time))) {
                return Self.milliseconds(time)
            }
            change = zone.nextChange(after: time)
        }
        return Self.milliseconds(start)
    }

    private static func milliseconds(_ seconds: Int64) -> UInt64 {
        UInt64(max(0, seconds)) * 1000
    }
}
