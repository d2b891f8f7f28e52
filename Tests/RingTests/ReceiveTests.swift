import Glibc
import Testing

@testable import BroadsideRing

@Suite("Multishot receive") struct ReceiveTests {
    @Test func `One multishot receive completes for each of 50 messages`() throws {
        var harness = try RingHarness()
        let pair = SocketPair()
        harness.ring.receiveMultishot(pair.near, userData: 7)
        for round in 0..<50 {
            let sent = [UInt8](repeating: UInt8(round), count: round + 1)
            pair.write(sent)
            let completion = try #require(try harness.next(7))
            #expect(completion.hasMore && completion.bufferID != nil)
            #expect(Int(completion.result) == sent.count)
            #expect(harness.ring.lentBufferCount == 1)
            #expect(harness.take(completion) == sent)
            let lent = harness.ring.lentBufferCount
            #expect(lent == 0)
        }
    }

    @Test func `The bytes of a completion can be read as a span`() throws {
        var harness = try RingHarness()
        let pair = SocketPair()
        harness.ring.receiveMultishot(pair.near, userData: 7)
        pair.write([1, 2, 3])
        let completion = try #require(try harness.next(7))
        let span = harness.ring.bytes(of: completion)
        let sum = span.withUnsafeBytes { $0.reduce(0) { $0 + Int($1) } }
        let count = span.byteCount
        #expect(count == 3 && sum == 6)
    }

    @Test func `A message longer than a buffer fills several`() throws {
        var harness = try RingHarness(bufferCount: 4, bufferSize: 100)
        let pair = SocketPair()
        let sent = (0..<250).map { UInt8($0) }
        pair.write(sent)
        harness.ring.receiveMultishot(pair.near, userData: 1)
        var got: [UInt8] = []
        var identifiers: Set<UInt16> = []
        for _ in 0..<3 {
            let completion = try #require(try harness.next(1))
            identifiers.insert(try #require(completion.bufferID))
            got += harness.ring.unsafeBytes(of: completion)
        }
        #expect(got == sent && identifiers.count == 3)
    }

    @Test func `A receive without free buffers ends with ENOBUFS and can be armed again`() throws {
        var harness = try RingHarness(bufferCount: 2, bufferSize: 16)
        let pair = SocketPair()
        pair.write([UInt8](repeating: 1, count: 64))
        harness.ring.receiveMultishot(pair.near, userData: 1)
        let first = try #require(try harness.next(1))
        let second = try #require(try harness.next(1))
        let last = try #require(try harness.next(1))
        #expect(first.result == 16 && second.result == 16)
        #expect(last.result == -ENOBUFS && !last.hasMore && last.bufferID == nil)
        #expect(harness.take(first).count + harness.take(second).count == 32)
        harness.ring.receiveMultishot(pair.near, userData: 2)
        #expect(try #require(try harness.next(2)).result == 16)
        #expect(try #require(try harness.next(2)).result == 16)
    }

    @Test func `The end of the peer completes a receive with 0`() throws {
        var harness = try RingHarness()
        let pair = SocketPair()
        harness.ring.receiveMultishot(pair.near, userData: 1)
        pair.write([9])
        let completion = try #require(try harness.next(1))
        #expect(harness.take(completion) == [9])
        shutdown(pair.far, Int32(SHUT_WR))
        let end = try #require(try harness.next(1))
        #expect(end.result == 0 && !end.hasMore)
        #expect(harness.take(end).isEmpty)
        let lent = harness.ring.lentBufferCount
        #expect(lent == 0)
    }

    @Test func `Cancelling all operations on a descriptor completes each with ECANCELED`() throws {
        var harness = try RingHarness()
        let pair = SocketPair()
        harness.ring.receiveMultishot(pair.near, userData: 1)
        harness.ring.poll(pair.near, userData: 2)
        try harness.ring.submitAndWait(atLeast: 0)
        harness.ring.cancelAll(on: pair.near, userData: 3)
        #expect(try #require(try harness.next(3)).result == 2)
        #expect(try #require(try harness.next(1)).result == -ECANCELED)
        #expect(try #require(try harness.next(2)).result == -ECANCELED)
    }

    @Test func `A ring that is dropped with receives in flight consumes nothing later`() throws {
        let pair = SocketPair()
        for _ in 0..<20 {
            var harness = try RingHarness(bufferCount: 64)
            harness.ring.receiveMultishot(pair.near, userData: 1)
            try harness.ring.submitAndWait(atLeast: 0)
        }
        pair.write([5])
        var harness = try RingHarness()
        harness.ring.receiveMultishot(pair.near, userData: 1)
        let completion = try #require(try harness.next(1))
        #expect(harness.take(completion) == [5])
    }
}
