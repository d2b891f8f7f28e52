import BroadsideSupport
import Testing

@testable import BroadsideCampaigns

@Suite struct RunDeadlineTests {
    private static let firstStart: UInt64 = 1_780_326_000_000

    /// So much monotonic time after the process began, with a wall clock that is off by so much.
    private func now(after nanoseconds: UInt64, off milliseconds: Int64 = 0) -> Now {
        let wall = Int64(Self.firstStart + nanoseconds / millisecond) + milliseconds
        return Now(nanoseconds: 77 * second + nanoseconds, wallMilliseconds: UInt64(wall))
    }

    @Test(arguments: [0, 3 * 3_600_000, -3_600_000, -1_780_326_000_000] as [Int64])
    func `A wall clock that jumps does not move the deadline of a process`(jump: Int64) {
        let deadline = RunDeadline(
            7200 * second, firstStart: Self.firstStart, now: now(after: second))
        #expect(!deadline.hasPassed(now(after: 7200 * second - 1, off: jump)))
        #expect(deadline.hasPassed(now(after: 7200 * second, off: jump)))
    }

    @Test func `A later process finds by the wall clock how much of the time is left`() {
        let late = now(after: second, off: 7_200_000)
        let passed = RunDeadline(7200 * second, firstStart: Self.firstStart, now: late)
        #expect(passed.hasPassed(late) && passed.milliseconds(from: late) == 0)
        let left = RunDeadline(7202 * second, firstStart: Self.firstStart, now: late)
        #expect(!left.hasPassed(late) && left.milliseconds(from: late) == 1000)
        #expect(left.milliseconds(from: now(after: second + 1)) == 1000, "rounded up")
    }

    @Test func `A deadline beyond all times never passes`() {
        let deadline = RunDeadline(.max, firstStart: .max - 5, now: now(after: 0))
        #expect(!deadline.hasPassed(now(after: 1_000_000_000 * second)))
    }
}
