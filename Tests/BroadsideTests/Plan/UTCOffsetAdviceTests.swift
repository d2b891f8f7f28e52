import BroadsidePolicy
import BroadsideSupport
import Testing

@testable import BroadsideCampaigns

/// Advice about offsets in place of time zones, and a warning about zones with a reversed sign.
@Suite struct UTCOffsetAdviceTests {
    @Test(arguments: ["-08:00", "UTC-8", "-28800"])
    func `An offset in place of a zone gets advice with the reversed sign`(text: String) {
        let advice = "For a fixed offset of UTC-8, write Etc/GMT+8 (its sign is reversed)"
        #expect(UTCOffset.advice(for: text) == advice)
        let error = #expect(throws: BroadsideError.self) {
            _ = try ZoneDatabase().rules(of: text, option: "zone-default")
        }
        #expect(error?.message.hasSuffix(". \(advice)") == true)
    }

    @Test func `A text without a zone of the same offset gets no advice`() {
        #expect(UTCOffset.advice(for: "+05:30") == nil)
        #expect(UTCOffset.advice(for: "Berlin") == nil)
        #expect(UTCOffset.advice(for: "+0000") == "For an offset of 0, write UTC")
    }

    @Test func `One warning has the meaning of all zones whose sign is reversed`() {
        let zones = ["Etc/GMT-8", "Europe/Berlin", "Etc/GMT+9", "Etc/GMT", "Etc/GMT0", "Etc/UTC"]
        let warning = UTCOffset.warning(ofZones: zones)
        #expect(warning?.hasSuffix("reversed: Etc/GMT-8 is UTC+8, Etc/GMT+9 is UTC-9") == true)
        #expect(UTCOffset.warning(ofZones: ["Etc/GMT", "Etc/GMT0", "Etc/UTC"]) == nil)
        let more = (1...5).map { "Etc/GMT+\($0)" }
        #expect(UTCOffset.warning(ofZones: more)?.hasSuffix("UTC-3 (and 2 others)") == true)
    }
}
