import BroadsidePolicy
import Testing

/// Offsets from UTC in place of time zones.
@Suite struct UTCOffsetTests {
    @Test(
        arguments: [
            ("-08:00", "UTC-8", "Etc/GMT+8"), ("+0530", "UTC+5:30", nil),
            ("-8", "UTC-8", "Etc/GMT+8"),
            ("UTC-8", "UTC-8", "Etc/GMT+8"), ("GMT+5:30", "UTC+5:30", nil),
            ("+00:00", "UTC", "UTC"),
            ("-28800", "UTC-8", "Etc/GMT+8"), ("-3600", "UTC-1", "Etc/GMT+1"),
            ("32400", "UTC+9", "Etc/GMT-9"), ("20700", "UTC+5:45", nil),
            ("+14", "UTC+14", "Etc/GMT-14"), ("-12", "UTC-12", "Etc/GMT+12"),
        ] as [(String, String, String?)])
    func `A text that is an offset has its meaning and the name of its zone`(
        text: String, meaning: String, zone: String?
    ) {
        let offset = UTCOffset(text)
        #expect(offset?.text == meaning)
        #expect(offset?.zoneName == zone)
        if let zone, zone != "UTC" { #expect(UTCOffset(zone: zone) == offset) }
    }

    @Test(arguments: [
        "", "-", "8", "08:00", "UTC", "GMT8", "-13", "+15", "-08:60", "-8:0", "-1234567", "12345",
        "Europe/Berlin", "CET+1", "Etc/GMT-8", "GMT+25",
    ])
    func `A text that is not an offset has no meaning`(text: String) {
        #expect(UTCOffset(text) == nil)
    }

    @Test func `The sign in the name of a zone is reversed, and 0 has no sign`() {
        #expect(UTCOffset(zone: "Etc/GMT-8")?.minutes == 480)
        #expect(UTCOffset(zone: "Etc/GMT+9")?.minutes == -540)
        for name in ["Etc/GMT", "Etc/GMT0", "Etc/GMT-0", "Etc/UTC", "GMT-8", "Etc/GMT-15", "UTC"] {
            #expect(UTCOffset(zone: name) == nil, "\(name)")
        }
    }
}
