import BroadsideSupport
import Foundation
import Testing

/// Times as text, beside Foundation's.
@Suite struct TimeTests {
    @Test func `A time is printed as ISO 8601 in UTC, to seconds and milliseconds`() {
        let seconds = ISO8601DateFormatter()
        let fractions = ISO8601DateFormatter()
        fractions.formatOptions = [.withInternetDateTime, .withFractionalSeconds]
        var random = SystemRandomNumberGenerator()
        var times = (0..<2_000).map { _ in
            UInt64.random(in: 0..<253_402_300_800_000, using: &random)
        }
        // Leap days, and the days around them and around the turn of a year and of a century.
        for day in [11_015, 11_016, 11_017, 10_956, 10_957, 47_540, 47_541, 47_542, 58_440] {
            times += [UInt64(day) * 86_400_000, UInt64(day) * 86_400_000 + 86_399_999]
        }
        for time in times {
            let date = Date(timeIntervalSince1970: Double(time / 1000))
            #expect(universalTime(time) == seconds.string(from: date))
            let exact = Date(timeIntervalSince1970: Double(time) / 1000 + 0.0001)
            #expect(timeText(time) == fractions.string(from: exact))
        }
    }
}
