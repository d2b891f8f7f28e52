import BroadsidePolicy
import BroadsideSupport
import Testing

@testable import BroadsideCampaigns

/// The date on which the rows of a night are due, beside the night's own.
@Suite struct NightDeliveryTests {
    /// 2026-11-30 23:30 UTC, half past midnight in Berlin.
    private static let start: UInt64 = 1_796_081_400_000

    private func warning(
        _ night: String, _ zone: String? = nil, on date: String? = nil
    ) throws -> String? {
        var delivery = DeliveryOptions()
        delivery.deliverAt = TimeOfDay("19:00")
        delivery.zoneColumn = "tz"
        delivery.zoneDefault = zone
        delivery.date = date.flatMap { CalendarDate($0) }
        return try delivery.dateWarning(ofNight: #require(NightDate(night)), at: Self.start)
    }

    @Test func `A night that begins on another date of the default zone is a warning, or in UTC`()
        throws
    {
        let late = try warning("2026-11-30", "Europe/Berlin")
        #expect(late?.contains("today's date in Europe/Berlin, 2026-12-01, but this is") == true)
        #expect(late?.hasSuffix("add --on 2026-11-30") == true)
        let early = try warning("2026-12-01")
        #expect(early?.contains("today's date in UTC, 2026-11-30, but this is") == true)
        #expect(early?.hasSuffix("add --zone-default ZONE") == true)
        #expect(try warning("2026-12-01", "Europe/Berlin") == nil)
        #expect(try warning("2026-11-30") == nil)
        #expect(try warning("2026-11-30", "Europe/Berlin", on: "2026-11-30") == nil)
    }
}
