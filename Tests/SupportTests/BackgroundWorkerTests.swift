import BroadsideSupport
import Glibc
import Testing

struct BackgroundWorkerTests {
    @Test func `A background worker never blocks, and of waiting jobs the latest is done`() throws {
        var ends: [Int32] = [0, 0]
        var begun: [Int32] = [0, 0]
        #expect(pipe(&ends) == 0 && pipe(&begun) == 0)
        let (gate, note) = (ends[0], begun[1])
        let worker = BackgroundWorker<Int, Int> { job in
            _ = write(note, "a", 1)
            var byte: UInt8 = 0
            _ = read(gate, &byte, 1)
            return job
        }
        #expect(worker.isIdle)
        // Each of these would be waited for forever: the first until a byte comes.
        try worker.put(1)
        #expect(worker.take() == nil && !worker.isIdle)
        // The first job has begun: else the second could begin in its place.
        var byte: UInt8 = 0
        #expect(read(begun[0], &byte, 1) == 1)
        try worker.put(2)
        try worker.put(3)
        #expect(write(ends[1], "aaa", 3) == 3)
        var results: [Int] = []
        while results.last != 3 {
            if let result = worker.take() { results.append(result) }
            usleep(1000)
        }
        #expect(!results.contains(2), "\(results)")
        #expect(worker.isIdle)
        #expect(write(ends[1], "a", 1) == 1)
        try worker.put(4)
        while worker.isIdle == false, worker.take() != 4 { usleep(1000) }
        #expect(worker.isIdle)
    }

    @Test func `A result wakes the thread that waits for it`() throws {
        let events = BoundedQueue<Bool>(limit: 1)
        let owner = try WorkerThread {
            let signals = SignalWatch()
            let worker = BackgroundWorker<Int, Int>(wakes: true) { $0 }
            try? worker.put(1)
            let event = signals.wait(milliseconds: 30_000)
            if case .finished = event { events.put(worker.take() == 1) } else { events.put(false) }
        }
        owner.join()
        #expect(events.take() == true)
    }
}
