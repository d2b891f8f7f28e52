import BroadsideSupport
import Testing

@testable import BroadsideSimulator

@Suite struct TimerQueueTests {
    @Test func `Responses leave in the order of their times, and of insertion at equal ones`() {
        var queue = TimerQueue()
        var random: UInt64 = 1
        var expected: [(UInt64, UInt32)] = []
        for number in UInt32(0)..<5000 {
            random = splitmix64(random)
            // Few distinct times, so that many are equal.
            let due = random % 64
            expected.append((due, number))
            queue.push(response(number), due: due)
        }
        expected.sort { $0.0 != $1.0 ? $0.0 < $1.0 : $0.1 < $1.1 }
        var order: [UInt32] = []
        for now in UInt64(0)..<64 {
            while let next = queue.pop(now: now) { order.append(next.streamID) }
        }
        #expect(order == expected.map(\.1))
        #expect(queue.count == 0)
    }

    @Test func `No response is due before its time`() {
        var queue = TimerQueue()
        #expect(queue.firstDue == nil)
        queue.push(response(1), due: 10)
        #expect(queue.firstDue == 10)
        #expect(queue.pop(now: 9)?.streamID == nil)
        #expect(queue.pop(now: 10)?.streamID == 1)
        #expect(queue.pop(now: 11)?.streamID == nil)
    }

    private func response(_ streamID: UInt32) -> PendingResponse {
        PendingResponse(
            slot: 0, generation: 0, streamID: streamID, isAuthenticated: true, response: .accepted,
            identifier: NotificationIDText(repeating: 0))
    }
}
