import Testing

@testable import BroadsideCampaigns

/// The file with which several starts share a night's date.
@Suite(.timeLimit(.minutes(60))) struct NightDateFileTests {
    private static let hour: UInt64 = 3_600_000
    /// 23:55 on the day called `evening`, in a zone without clock changes.
    private static let late: UInt64 = 1_795_566_900_000
    private let evening = NightDate("2026-11-25")!

    @Test func `A date file counts for 20 hours after the first start of its night`() {
        let file = NightDateFile(evening, at: Self.late)
        // The first start could not make a note, for example because the disk was full.
        #expect(file.date(at: Self.late + 20 * Self.hour - 1, NightHistory()) == evening)
        #expect(file.date(at: Self.late + 20 * Self.hour, NightHistory()) == nil)
        // A clock that was set back begins no other night.
        #expect(file.date(at: Self.late - 30 * Self.hour, NightHistory()) == evening)

        var history = NightHistory()
        history.take(.intended, of: evening, at: Self.late)
        history.take(.begun, of: evening, at: Self.late + 1)
        let morning = NightDateFile(evening, at: Self.late + 8 * Self.hour)
        #expect(morning.date(at: Self.late + 20 * Self.hour - 1, history) == evening)
        #expect(morning.date(at: Self.late + 20 * Self.hour, history) == nil)
    }

    @Test func `A date file is read as it was written, and other text is none`() throws {
        let file = NightDateFile(evening, at: Self.late)
        #expect(file.text == "2026-11-25 1795566900000\n")
        let read = try #require(NightDateFile(file.text))
        #expect(read.date == evening && read.writtenAtMilliseconds == Self.late)
        for text in [
            "", "\n", "2026-11-25", "2026-11-25\n", "2026-11-25 1795566900000",
            "2026-11-25  1\n", "2026-02-30 1\n", "2026-11-25 -1\n", "2026-11-25 1\n\n",
            "2026-11-25 \(UInt64.max)\n", "2026-11-25 253402300800000\n",
        ] {
            #expect(NightDateFile(text) == nil, "\(text)")
        }
    }
}
