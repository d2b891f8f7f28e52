internal import Glibc

/// Returns the local time of day with the zone's name, such as `00:55:02 CET`; nil if local time is
/// UTC. The date precedes the time if it differs from the date in UTC.
package func localTime(_ milliseconds: UInt64) -> String? {
    let seconds = time_t(clamping: milliseconds / 1000)
    guard let local = CalendarTime(seconds, isLocal: true),
        let utc = CalendarTime(seconds, isLocal: false),
        local.offset != 0
    else { return nil }
    guard local.day != utc.day else { return "\(local.clock)\u{a0}\(local.zone)" }
    return "\(local.date)\u{a0}\(local.clock)\u{a0}\(local.zone)"
}

/// Returns the local date and time of day with the zone's name: `2026-11-23 19:00 CET`.
package func localDateAndTime(_ milliseconds: UInt64) -> String {
    guard let local = CalendarTime(time_t(clamping: milliseconds / 1000), isLocal: true) else {
        return "-"
    }
    return "\(local.date) \(local.clock.prefix(5)) \(local.zone)"
}

/// Returns the local calendar date: `2026-11-23`; nil if the time cannot be converted.
package func localDate(_ milliseconds: UInt64) -> String? {
    CalendarTime(time_t(clamping: milliseconds / 1000), isLocal: true)?.date
}

/// Returns the local time of day with the zone's name: `00:55:02 CET`.
package func localClock(_ milliseconds: UInt64) -> String {
    CalendarTime(time_t(clamping: milliseconds / 1000), isLocal: true).map {
        "\($0.clock) \($0.zone)"
    } ?? "-"
}

/// A time in calendar form.
private struct CalendarTime {
    /// The date, such as `2026-11-23`.
    var date: String
    /// The time of day, such as `00:55:02`.
    var clock: String
    var zone: String
    /// Day of the month.
    var day: Int32
    /// Seconds east of UTC.
    var offset: Int

    init?(_ seconds: time_t, isLocal: Bool) {
        var seconds = seconds
        // SAFETY: both outlive the call; the zone's name is copied immediately.
        var fields = unsafe tm()
        let convert = unsafe isLocal ? localtime_r : gmtime_r
        guard unsafe convert(&seconds, &fields) != nil else { return nil }
        func two(_ value: Int32) -> String { value < 10 ? "0\(value)" : "\(value)" }
        let time = unsafe [fields.tm_hour, fields.tm_min, fields.tm_sec]
        let days = unsafe (fields.tm_year + 1900, fields.tm_mon + 1, fields.tm_mday)
        zone = unsafe fields.tm_zone.map { unsafe String(cString: $0) } ?? "local"
        offset = unsafe fields.tm_gmtoff
        (day, clock) = (days.2, time.map(two).joined(separator: ":"))
        date = "\(days.0)-\(two(days.1))-\(two(days.2))"
    }
}

/// The offset of local time from UTC, and the zone's name.
package struct ClockZone: Sendable, Equatable {
    /// Seconds east of UTC.
    package var offset: Int
    package var name: String

    package static let utc: Self = ClockZone(offset: 0, name: "UTC")

    package init(offset: Int, name: String) {
        self.offset = offset
        self.name = name
    }

    /// Returns the local zone at a time, milliseconds since 1970.
    package static func local(at milliseconds: UInt64) -> Self {
        guard let local = CalendarTime(time_t(clamping: milliseconds / 1000), isLocal: true),
            local.offset != 0
        else { return .utc }
        return ClockZone(offset: local.offset, name: local.zone)
    }

    /// Shifts a time so that `timeText`, which shows UTC, shows the time in this zone.
    package func shifted(_ milliseconds: UInt64) -> UInt64 {
        let shift = UInt64(abs(offset)) * 1000
        return offset < 0 ? milliseconds - min(milliseconds, shift) : milliseconds &+ shift
    }
}
