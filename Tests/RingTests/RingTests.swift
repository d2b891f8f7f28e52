import Glibc
import Testing

@testable import BroadsideRing

@Suite("The ring itself") struct RingTests {
    @Test func `Ten queued operations are submitted with one call`() throws {
        var harness = try RingHarness()
        let pair = SocketPair()
        let bytes = StableBytes([1, 2, 3])
        for index in 0..<10 { harness.ring.send(pair.near, bytes.bytes, userData: UInt64(index)) }
        let before = harness.ring.queuedCount
        #expect(before == 10)
        try harness.ring.submitAndWait(atLeast: 10, timeoutNanoseconds: 1_000_000_000)
        let after = harness.ring.queuedCount
        #expect(after == 0)
        var batch = CompletionBatch(capacity: 16)
        let count = harness.ring.reap(into: &batch)
        #expect(count == 10 && batch.count == 10)
        for position in 0..<10 {
            #expect(batch[position] == Completion(userData: UInt64(position), result: 3))
        }
        #expect(harness.ring.reap(into: &batch) == 0)
        #expect(batch.count == 0)
    }

    @Test func `A full submission queue is submitted, and all 100 operations complete`() throws {
        var harness = try RingHarness(entries: 4, bufferCount: 0, bufferSize: 0)
        let pair = SocketPair()
        let bytes = StableBytes([1])
        // More than both queues hold: 4 submissions, 16 completions.
        for index in 0..<100 { harness.ring.send(pair.near, bytes.bytes, userData: UInt64(index)) }
        for index in 0..<100 {
            #expect(try #require(try harness.next(UInt64(index))).result == 1)
        }
        #expect(pair.read(200).count == 100)
    }

    @Test func `A batch smaller than the completions leaves the rest for the next`() throws {
        var harness = try RingHarness()
        let pair = SocketPair()
        let bytes = StableBytes([1])
        for index in 0..<5 { harness.ring.send(pair.near, bytes.bytes, userData: UInt64(index)) }
        try harness.ring.submitAndWait(atLeast: 5, timeoutNanoseconds: 1_000_000_000)
        var batch = CompletionBatch(capacity: 2)
        var order: [UInt64] = []
        for expected in [2, 2, 1, 0] {
            let count = harness.ring.reap(into: &batch)
            #expect(count == expected)
            for position in 0..<count { order.append(batch[position].userData) }
        }
        #expect(order == [0, 1, 2, 3, 4])
    }

    @Test func `A write reports its file's status, and that it was removed`() throws {
        var harness = try RingHarness()
        let path = "/tmp/ring-status-\(getpid())"
        let file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        try #require(file >= 0)
        defer { close(file) }
        let status = FileStatus()
        let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: 16, alignment: 8)
        defer { bytes.deallocate() }
        func ask(_ descriptor: Int32, _ step: Int) throws -> Completion? {
            harness.ring.write(
                descriptor, UnsafeRawBufferPointer(bytes), at: UInt64(16 * step),
                thenStatusInto: status, userData: UInt64(step), failure: 100)
            return try harness.next(UInt64(step))
        }
        for step in 0..<4 {
            if step == 1 { #expect(truncate(path, 0) == 0) }
            if step == 2 { #expect(fchmod(file, 0) == 0) }
            if step == 3 { #expect(unlink(path) == 0) }
            bytes.storeBytes(of: 1000 + step, as: Int.self)
            #expect(try #require(try ask(file, step)).result == 0)
            // The status is that behind the write, and a write is no completion.
            #expect(status.byteCount == UInt64(16 * step + 16))
            #expect(status.linkCount == (step < 3 ? 1 : 0))
            #expect(status.permissions == (step < 2 ? 0o600 : 0))
            var written = 0
            #expect(pread(file, &written, 8, off_t(16 * step)) == 8 && written == 1000 + step)
        }
        // Of a file that can't be written to, the status is known all the same.
        let readOnly = open("/dev/null", O_RDONLY | O_CLOEXEC)
        defer { close(readOnly) }
        #expect(try #require(try ask(readOnly, 4)).result == 0)
        #expect(status.linkCount == 1)
        #expect(try #require(try harness.next(100)).result == -EBADF)
        #expect(try #require(try ask(-1, 5)).result == -EBADF)
    }

    /// Where the two would not fit into the queue together, they would not be linked.
    @Test func `A write and its status are linked although only one entry was free`() throws {
        var harness = try RingHarness()
        let path = "/tmp/ring-full-\(getpid())"
        let file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        try #require(file >= 0)
        defer { close(file) }
        unlink(path)
        let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: 16, alignment: 8)
        defer { bytes.deallocate() }
        let status = FileStatus()
        harness.ring.cancel(77, userData: 1)
        while harness.ring.freeCount > 1 { harness.ring.cancel(77, userData: 1) }
        harness.ring.write(
            file, UnsafeRawBufferPointer(bytes), at: 0, thenStatusInto: status, userData: 2,
            failure: 3)
        #expect(harness.ring.queuedCount == 2)
        #expect(try #require(try harness.next(2)).result == 0)
        #expect(status.byteCount == 16)
    }

    @Test func `A wait ends at its timeout, with something to submit and without`() throws {
        var harness = try RingHarness()
        let pair = SocketPair()
        harness.ring.receiveMultishot(pair.near, userData: 1)
        // With and without something to submit: the time must not be waited twice. A busy machine
        // may wake us late, so the shortest of several waits is what counts.
        for round in 0..<2 {
            var shortest = UInt64.max
            for _ in 0..<20 where shortest >= 190_000_000 {
                if round == 0 { harness.ring.poll(pair.near, userData: 2) }
                let start = monotonicNanoseconds()
                try harness.ring.submitAndWait(atLeast: 1, timeoutNanoseconds: 100_000_000)
                shortest = min(shortest, monotonicNanoseconds() - start)
            }
            #expect(shortest >= 99_000_000 && shortest < 190_000_000, "\(shortest) ns")
        }
    }

    @Test func `A wait for no completion returns at once and still submits`() throws {
        var harness = try RingHarness()
        let pair = SocketPair()
        let start = monotonicNanoseconds()
        harness.ring.receiveMultishot(pair.near, userData: 1)
        try harness.ring.submitAndWait(atLeast: 0)
        pair.write([1])
        var batch = CompletionBatch(capacity: 4)
        #expect(harness.ring.reap(into: &batch) == 0)
        try harness.ring.submitAndWait(atLeast: 0)
        #expect(harness.ring.reap(into: &batch) == 1)
        #expect(monotonicNanoseconds() - start < 30_000_000_000)
    }

    @Test func `A timeout completes with ETIME, and a cancelled one with ECANCELED`() throws {
        var harness = try RingHarness()
        let start = monotonicNanoseconds()
        harness.ring.timeout(nanoseconds: 30_000_000, userData: 2)
        harness.ring.timeout(nanoseconds: 3_600_000_000_000, userData: 3)
        #expect(try #require(try harness.next(2)).result == -ETIME)
        #expect(monotonicNanoseconds() - start >= 29_000_000)
        harness.ring.cancel(3, userData: 4)
        #expect(try #require(try harness.next(4)).result == 0)
        #expect(try #require(try harness.next(3)).result == -ECANCELED)
        harness.ring.cancel(3, userData: 5)
        #expect(try #require(try harness.next(5)).result == -ENOENT)
    }

    @Test func `A signalled event descriptor completes a poll of the ring`() async throws {
        let event = try EventDescriptor()
        let descriptor = event.descriptor
        var harness = try RingHarness()
        let counter = StableBytes(count: 8)
        harness.ring.poll(descriptor, userData: 1)
        try harness.ring.submitAndWait(atLeast: 0)
        let thread = PosixThread {
            usleep(20_000)
            EventDescriptor.signal(descriptor)
            EventDescriptor.signal(descriptor)
        }
        #expect(try #require(try harness.next(1)).result & Int32(POLLIN) != 0)
        thread.join()
        harness.ring.read(descriptor, into: counter.memory, at: .max, userData: 2)
        #expect(try #require(try harness.next(2)).result == 8)
        #expect(counter.memory.load(as: UInt64.self) == 2)
        harness.ring.read(descriptor, into: counter.memory, at: .max, userData: 3)
        #expect(try harness.next(3, withinMilliseconds: 20) == nil)
        event.signal()
        #expect(try #require(try harness.next(3)).result == 8)
        #expect(counter.memory.load(as: UInt64.self) == 1)
    }

    @Test func `Bytes that are written and synced are read back at their offset`() throws {
        var path = Array("/tmp/ring-XXXXXX".utf8CString)
        let descriptor = mkstemp(&path)
        try #require(descriptor >= 0)
        unlink(path)
        var harness = try RingHarness()
        let text = StableBytes(Array("segment".utf8))
        harness.ring.write(descriptor, text.bytes, at: 4096, userData: 1)
        #expect(try #require(try harness.next(1)).result == 7)
        harness.ring.fsync(descriptor, dataOnly: true, userData: 2)
        harness.ring.fsync(descriptor, dataOnly: false, userData: 3)
        #expect(try #require(try harness.next(2)).result == 0)
        #expect(try #require(try harness.next(3)).result == 0)
        let memory = StableBytes(count: 4200)
        harness.ring.read(descriptor, into: memory.memory, at: 0, userData: 4)
        #expect(try #require(try harness.next(4)).result == 4103)
        #expect(memory.bytes[..<4096].allSatisfy { $0 == 0 })
        #expect(memory.bytes[4096..<4103].elementsEqual("segment".utf8))
        harness.ring.write(-1, text.bytes, at: 0, userData: 5)
        #expect(try #require(try harness.next(5)).result == -EBADF)
        Socket.close(descriptor)
    }
}
