import BroadsideCampaigns
import BroadsideSupport

/// Options that send each row at a time of day in its own time zone.
enum LocalTimeOptions {
    static let group = OptionGroup<SendOptions>(
        title: "At local time",
        options: [
            .custom(
                "deliver-at", .text, "HH:MM",
                "send each row at this time of day in its time zone; the run waits between the waves "
                    + "(default: at once)"
            ) { (text, options) throws(BroadsideError) in try options.delivery.setTime(text) },
            .custom(
                "zone-column", .text, "NAME",
                "column with each row's IANA time zone, such as Europe/Berlin; a row whose zone is "
                    + "unknown gets --zone-default; without --zone-default, it is invalid (BadZone)"
            ) { (text, options) throws(BroadsideError) in options.delivery.zoneColumn = text },
            .custom(
                "zone-default", .text, "ZONE", "time zone of rows whose own is missing or unknown"
            ) { (text, options) throws(BroadsideError) in options.delivery.zoneDefault = text },
            .custom(
                "on", .text, "DATE",
                "with --deliver-at: the date, such as 2026-11-28 (default: the date of the first "
                    + "start, in --zone-default or else UTC)"
            ) { (text, options) throws(BroadsideError) in try options.delivery.setDate(text) },
            .custom(
                "late", .choice(DeliveryOptions.lateRules),
                DeliveryOptions.lateRules.joined(separator: "|"),
                "with --deliver-at: what to do with rows whose time has passed at the first start: send "
                    + "them at once, skip them (Late), or send them at that time of the next day "
                    + "(default: send)"
            ) { (text, options) throws(BroadsideError) in try options.delivery.setLate(text) },
            .custom(
                "quiet", .text, "HH:MM-HH:MM",
                "send no row whose local time is within these hours; the row waits until they end"
            ) { (text, options) throws(BroadsideError) in try options.delivery.setQuiet(text) },
        ])
}
