import BroadsideSupport
import Foundation
import Synchronization
import Testing

/// Jobs that wait for a thread.
@Suite(.timeLimit(.minutes(60))) struct BoundedQueueTests {
    @Test func `Each job is taken once, in the order of its giver`() {
        let queue = BoundedQueue<(giver: Int, number: Int)>(limit: 4_000)
        let taken = Mutex<[[Int]]>(Array(repeating: [], count: 4))
        let done = DispatchGroup()
        done.enter()
        Thread.detachNewThread {
            while let job = queue.take() {
                taken.withLock { $0[job.giver].append(job.number) }
                if taken.withLock({ $0.allSatisfy { $0.count == 1_000 } }) { queue.close() }
            }
            done.leave()
        }
        for giver in 0..<4 {
            Thread.detachNewThread { for number in 0..<1_000 { queue.put((giver, number)) } }
        }
        done.wait()
        #expect(taken.withLock { $0 } == Array(repeating: Array(0..<1_000), count: 4))
    }

    @Test func `A close wakes all waiting threads and leaves nothing to take`() {
        let queue = BoundedQueue<Int>(limit: 3)
        let done = DispatchGroup()
        for _ in 0..<3 {
            done.enter()
            Thread.detachNewThread {
                while queue.take() != nil {}
                done.leave()
            }
        }
        queue.close()
        done.wait()
        queue.put(1)
        #expect(queue.take() == nil)
    }

    @Test func `All waiting jobs are taken at once in order, and none after a close`() {
        let queue = BoundedQueue<Int>(limit: 3)
        #expect(queue.takeWaiting() == [])
        for number in 0..<3 { queue.put(number) }
        #expect(queue.take() == 0)
        #expect(queue.takeWaiting() == [1, 2])
        #expect(queue.takeWaiting() == [])
        queue.put(3)
        queue.close()
        #expect(queue.takeWaiting() == [])
    }
}
