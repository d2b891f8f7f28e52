import BroadsideLedgerFormat
import BroadsideRows
import Testing

@testable import BroadsideObservability

/// The times at which runs settled rows, where the clock was set back between them.
@Suite struct SettlementTimelineTests {
    @Test func `A row counts for the run that settled it if the clock was set back`() {
        let start: UInt64 = 1_795_264_562_000
        // Run 2 began an hour before run 1 by the clock, which was set back once more during run 2.
        let epochs = [
            Manifest.Epoch(number: 1, startedAtMilliseconds: start),
            Manifest.Epoch(number: 2, startedAtMilliseconds: start - 3_600_000),
        ]
        var course = SettlementTimeline(epochs: epochs)
        course.add(.accepted, in: 1, at: start + 500)
        course.add(.rejected, in: 2, at: start - 3_600_000 + 2_500)
        course.add(.accepted, in: 2, at: start - 7_200_000)
        // No such run is in the manifest.
        course.add(.accepted, in: 3, at: start)
        #expect(course.bins(of: 1).map(\.accepted) == [1])
        #expect(course.seconds(of: 1) == 0.5 && course.seconds(of: 2) == 2.5)
        #expect(course.bins(of: 2).map(\.accepted) == [1, 0, 0])
        #expect(course.bins(of: 2).map(\.rejected) == [0, 0, 1])
    }
}
