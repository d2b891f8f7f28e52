import BroadsideLedgerFormat
public import BroadsidePolicy
package import BroadsideSupport

/// Options that decide when each row is sent, by the row's time zone.
public struct DeliveryOptions: Sendable, Equatable {
    /// Time of day at which each row is sent; nil: at once.
    public var deliverAt: TimeOfDay?
    /// Column with the IANA time zone of each row; nil: all rows have `zoneDefault`.
    public var zoneColumn: String?
    /// Time zone of rows without a known time zone; nil: these rows are invalid.
    public var zoneDefault: String?
    /// Date of delivery; nil: the date of the first start, in `zoneDefault` or in UTC.
    public var date: CalendarDate?
    /// Treatment of rows whose time has passed at the first start; nil: `send`.
    public var late: DeliverySchedule.LateRule?
    /// Hours in which no row is sent; nil: none.
    public var quiet: DayPeriod?

    /// Creates options that send all rows at once.
    public init() {}

    /// Whether rows may have to wait for their delivery time.
    public var isUsed: Bool { deliverAt != nil || quiet != nil }

    /// Checks the combination of the options.
    ///
    /// - Throws: Exit code 2, with the option.
    public func check() throws(BroadsideError) {
        let dependent = [("on", date != nil), ("late", late != nil)]
        if deliverAt == nil, let (name, _) = dependent.first(where: \.1) {
            throw .usage(name, "requires --deliver-at: add --deliver-at HH:MM")
        }
        let zones = [("zone-column", zoneColumn != nil), ("zone-default", zoneDefault != nil)]
        if !isUsed, let (name, _) = zones.first(where: \.1) {
            throw .usage(
                name,
                "requires --deliver-at or --quiet: add --deliver-at HH:MM, or remove this option")
        }
        if isUsed, zoneColumn == nil, zoneDefault == nil {
            throw .usage(
                deliverAt == nil ? "quiet" : "deliver-at",
                "needs the rows' time zones: add --zone-column NAME, or --zone-default ZONE for all "
                    + "rows")
        }
        if let deliverAt, let quiet, quiet.contains(deliverAt) {
            throw .usage(
                "deliver-at",
                "\(deliverAt.text) is within the quiet hours \(quiet.text): name another time, or "
                    + "other hours")
        }
    }

    /// Human-readable description of when rows are sent; nil: at once.
    var description: String? {
        guard isUsed else { return nil }
        var text = deliverAt.map { "\($0.text) local time" } ?? "at once"
        if let date { text += " on \(date.text)" }
        if let zoneColumn {
            text += ", by the zone in column '\(printable(zoneColumn))'"
            if let zoneDefault { text += ", else \(zoneDefault)" }
        } else if let zoneDefault {
            text += " in \(zoneDefault)"
        }
        switch late {
        case .skip: text += "; a row whose time has passed is skipped"
        case .nextDay: text += "; a row whose time has passed is sent on the next day"
        case .send, nil: break
        }
        if let quiet { text += "; no row from \(quiet.start.text) to \(quiet.end.text)" }
        return text
    }

    /// Rules as stored in a campaign's identity; nil: all rows are sent at once.
    var rules: DeliveryRules? {
        guard isUsed else { return nil }
        var rules = DeliveryRules()
        rules.deliverAt = deliverAt?.text
        rules.zoneColumn = zoneColumn
        rules.zoneDefault = zoneDefault
        rules.on = date?.text
        rules.late = late.flatMap { $0 == .send ? nil : $0.rawValue }
        rules.quiet = quiet?.text
        return rules
    }

    /// Columns that the list needs, and the option that requires them.
    var columns: [(name: String, location: String)] {
        guard isUsed, let zoneColumn else { return [] }
        return [(zoneColumn, "--zone-column")]
    }
}

extension DeliveryOptions {
    /// The values of `--late`.
    package static let lateRules = DeliverySchedule.LateRule.allCases.map(\.rawValue)

    /// Parses an option's text and sets the time of day.
    package mutating func setTime(_ text: String) throws(BroadsideError) {
        guard let time = TimeOfDay(text) else {
            throw .usage(
                "deliver-at",
                "'\(wordExcerpt(text))' is not a time of day: write HH:MM, such as 09:00")
        }
        deliverAt = time
    }

    /// Parses an option's text and sets the date.
    package mutating func setDate(_ text: String) throws(BroadsideError) {
        guard let date = CalendarDate(text) else {
            throw .usage(
                "on", "'\(wordExcerpt(text))' is not a date: write YYYY-MM-DD, such as 2026-11-28")
        }
        self.date = date
    }

    /// Parses an option's text and sets the rule for late rows.
    package mutating func setLate(_ text: String) throws(BroadsideError) {
        guard let rule = DeliverySchedule.LateRule(rawValue: text) else {
            throw .usage("late", "'\(wordExcerpt(text))' is unknown: use send, skip or next-day")
        }
        late = rule
    }

    /// Parses an option's text and sets the quiet hours.
    package mutating func setQuiet(_ text: String) throws(BroadsideError) {
        guard let period = DayPeriod(text) else {
            throw .usage(
                "quiet",
                "'\(wordExcerpt(text))' is not a range of hours: write HH:MM-HH:MM, such as 22:00-08:00"
            )
        }
        quiet = period
    }
}
