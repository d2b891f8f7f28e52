import BroadsideHygiene
import Testing

@Suite struct RegistrationTimeTests {
    /// 2026-09-21T14:13:20Z.
    private let time = RegistrationTime(nowMilliseconds: 1_790_000_000_000)

    private func milliseconds(_ text: String) -> Int64? {
        time.milliseconds(Array(text.utf8).span.bytes)
    }

    @Test(
        arguments: [
            ("1230768000", 1_230_768_000_999), ("2009-01-01", 1_230_854_399_999),
            ("1790000000", 1_790_000_000_999), ("1790086400", 1_790_086_400_999),
            ("1790086400000", 1_790_086_400_000), ("1767268800000000", 1_767_268_800_000),
            ("1767268800000000000", 1_767_268_800_000), ("20260101120000", 1_767_268_800_999),
            ("2026-01-01 12:00:00 UTC", 1_767_268_800_999), ("2026-01-01", 1_767_311_999_999),
            // Where the device is, the day may have begun.
            ("2026-09-22", 1_790_121_599_999), ("2026-09-22 09:00", 1_790_067_659_999),
        ] as [(String, Int64)])
    func `A time at which a device can have registered is read`(text: String, expected: Int64) {
        #expect(milliseconds(text) == expected)
    }

    @Test(
        arguments: [
            ("2026-01-01T12:00:00.0481Z", 49), ("2026-01-01 12:00:00.048000", 48),
            ("2026-01-01 12:00:00.048000001 UTC", 49), ("2026-01-01T14:00:00,0001+02:00", 1),
            ("1767268800.0481", 49), ("1767268800.048000", 48), ("1767268800048.5", 49),
            ("1767268800048.0001", 49), ("1767268800048.000", 48), ("1767268800048100", 49),
            ("1767268800048000", 48), ("1767268800048000.9", 49), ("1767268800048000001", 49),
        ] as [(String, UInt64)])
    func `A token registered a fraction of a millisecond after APNs' timestamp lives`(
        text: String, roundedUp: UInt64
    ) throws {
        let registered = try #require(milliseconds(text))
        let timestamp = 1_767_268_800_000 + roundedUp
        #expect(DeadTokens.lives(registeredAt: registered, diedAt: timestamp - 1))
        #expect(!DeadTokens.lives(registeredAt: registered, diedAt: timestamp))
    }

    @Test(arguments: [
        "0", "1", "-1", "1230767999", "2008-12-31", "1970-01-01 00:00:00", "0001-01-01T00:00:00Z",
        // Since 2001, in seconds and milliseconds.
        "785000000", "785000000.123456", "785000000000",
        // A serial day of a spreadsheet, Windows' and .NET's ticks, WebKit's microseconds since 1601.
        "46023", "134117856000000000", "639028656000000000", "13411785600000000",
        // Half of YYYYMMDDHHMMSS, and more than it.
        "202601011200", "260101120000", "20260101120000123", "20261301120000",
        "1790086401", "1790086400001", "2026-09-23", "2999-01-01", "9999-12-31", "2147483647",
        "NULL", "",
    ])
    func `A time at which no device can have registered is unreadable`(text: String) {
        #expect(milliseconds(text) == nil)
    }

    @Test func `A clock of any value bounds only the latest registration time`() {
        let text = Array("1790000000".utf8)
        for (now, isRead) in [(0, false), (1_789_999_999_999, true), (UInt64.max, true)] {
            let time = RegistrationTime(nowMilliseconds: now).milliseconds(text.span.bytes)
            #expect((time != nil) == isRead)
        }
    }
}
