import BroadsideSupport
import Testing

@testable import BroadsideCampaigns

/// The error of a start whose date is not noted.
@Suite struct NightFailureTests {
    private static let hour: UInt64 = 3_600_000
    private static let now: UInt64 = 1_795_566_900_000
    private let date = NightDate("2026-11-25")!

    private func message(_ exitCode: Int32, length: UInt64) -> String {
        let error = BroadsideError("wrong", exitCode: exitCode)
        return NightRun.naming(date, error, at: Self.now, length: length).message
    }

    @Test func `An error names the date if midnight comes within the length of a night`() throws {
        let today = NightDate(localDayOf: Self.now)
        let hours = try #require(
            (1...25).first { NightDate(localDayOf: Self.now + $0 * Self.hour) != today })
        #expect(
            message(2, length: hours * Self.hour)
                == "wrong; after midnight, run the same command with --date 2026-11-25")
        #expect(message(2, length: (hours - 1) * Self.hour) == "wrong")
        // Another night runs, and may run past midnight.
        #expect(message(7, length: 0) == "wrong, then run the same command with --date 2026-11-25")
    }
}
