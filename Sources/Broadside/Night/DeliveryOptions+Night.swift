internal import BroadsidePolicy
import BroadsideSupport

extension DeliveryOptions {
    /// Warning about a night whose rows are due on another date; nil if there is none. Without
    /// `--on`, rows are due on the date of the first start in the zone of `--zone-default`, or in
    /// UTC.
    ///
    /// - Parameters:
    ///   - night: Date of the night.
    ///   - now: Time of the night's first start, in milliseconds.
    /// - Throws: Exit code 2 if the system does not know the zone.
    func dateWarning(
        ofNight night: NightDate, at now: UInt64
    ) throws(BroadsideError) -> String? {
        guard deliverAt != nil, date == nil else { return nil }
        let due = schedule(try zone(ZoneDatabase()), startedAt: now).date.text
        guard due != night.description else { return nil }
        return "broadside: warning: --deliver-at uses today's date in \(zoneDefault ?? "UTC"), "
            + "\(due), but this is the night of \(night): to deliver on \(night), add --on \(night)"
            + (zoneDefault == nil
                ? "; to use the date in another time zone, add --zone-default ZONE" : "")
    }
}
