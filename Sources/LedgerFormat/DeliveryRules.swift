/// The rules about when rows are sent; part of the campaign's identity.
public struct DeliveryRules: Codable, Hashable, Sendable {
    /// Time of day for sending, such as `09:00`; nil if rows are sent immediately.
    public var deliverAt: String?
    /// Column of the time zones; nil if all rows have `zoneDefault`.
    public var zoneColumn: String?
    /// Time zone of rows that name no time zone; nil if such rows are invalid.
    public var zoneDefault: String?
    /// Date of sending, such as `2026-11-28`; nil: the date of the first start.
    public var on: String?
    /// Treatment of rows whose time has already passed: `skip` or `next-day`; nil if they are sent.
    public var late: String?
    /// Quiet hours, such as `22:00-08:00`; nil: none.
    public var quiet: String?

    /// Creates rules by which all rows are sent immediately.
    public init() {}

    /// Describes the first difference from other rules; nil if there is none.
    ///
    /// - Parameter other: The rules of the new run. `self` has the rules with which the campaign
    ///   started.
    func firstDifference(from other: DeliveryRules) -> String? {
        func differ(_ option: String, _ path: KeyPath<Self, String?>) -> String? {
            let (own, others) = (self[keyPath: path], other[keyPath: path])
            return own == others
                ? nil : "--\(option) was \(own ?? "not set"), now it is \(others ?? "not set")"
        }
        return differ("deliver-at", \.deliverAt) ?? differ("zone-column", \.zoneColumn)
            ?? differ("zone-default", \.zoneDefault) ?? differ("on", \.on)
            ?? differ("late", \.late) ?? differ("quiet", \.quiet)
    }
}
