internal import BroadsideRows

/// Time zones whose rows are not sent, because the zone is unknown or its time has passed. Such a
/// row does not make a later row with the same token a duplicate.
package struct UnsentZones: Sendable {
    /// Rule by which rows name their time zones.
    let rule: RowZones.Rule
    /// Returns whether the rows of a zone are skipped in a campaign that started at the given time,
    /// in milliseconds since 1970.
    let isMissed: @Sendable (String, UInt64) -> Bool

    package init(
        _ rule: RowZones.Rule, isMissed: @escaping @Sendable (String, UInt64) -> Bool
    ) {
        self.rule = rule
        self.isMissed = isMissed
    }
}

/// The test of a list's rows for time zones that get no request.
struct UnsentZonesPass: ~Copyable {
    private let zones: UnsentZones
    private let startedAt: UInt64
    private var numbers: ZoneNumbers
    /// Whether the time of a zone has passed, by the zone's number minus `RowZones.firstZone`; nil
    /// if this was not determined yet.
    private var missed: [Bool?] = []

    init(_ zones: UnsentZones, layout: RowLayout, startedAt: UInt64) {
        self.zones = zones
        self.startedAt = startedAt
        numbers = ZoneNumbers(zones.rule, layout: layout)
    }

    /// Whether the latest row gets no request.
    mutating func isUnsent(_ reader: borrowing RowReader) -> Bool {
        let number = numbers.number(of: reader)
        guard number >= RowZones.firstZone else { return true }
        let index = Int(number - RowZones.firstZone)
        while missed.count <= index { missed.append(nil) }
        assert(missed.count <= RowZones.zonesLimit, "so many zones have numbers")
        if let known = missed[index] { return known }
        let isMissed = zones.isMissed(numbers.name(of: number), startedAt)
        missed[index] = isMissed
        return isMissed
    }
}
