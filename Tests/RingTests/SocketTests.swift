import Glibc
import Testing

@testable import BroadsideRing

@Suite("Sockets on the ring") struct SocketTests {
    @Test(arguments: [SocketAddress.loopback(port: 0), .v6(high: 0, low: 1, scope: 0, port: 0)])
    func `Connect, accept, send, receive and close work over IPv4 and IPv6`(address: SocketAddress)
        throws
    {
        var harness = try RingHarness()
        let listener = try Socket.listen(on: address)
        let bound = try Socket.localAddress(of: listener)
        #expect(bound.port != 0 && bound.host == address.host)
        harness.ring.acceptMultishot(listener, userData: 1)
        for round in 0..<3 {
            let client = try Socket.stream(for: bound)
            harness.ring.connect(client, to: bound, userData: 2)
            #expect(try #require(try harness.next(2)).result == 0)
            let accepted = try #require(try harness.next(1))
            #expect(accepted.hasMore && accepted.result >= 0)
            let flags = fcntl(accepted.result, F_GETFD)
            #expect(flags & FD_CLOEXEC != 0)

            let text = StableBytes(Array("round \(round)".utf8))
            harness.ring.receiveMultishot(accepted.result, userData: 3)
            harness.ring.send(client, text.bytes, userData: 4)
            #expect(try #require(try harness.next(4)).result == 7)
            let received = try #require(try harness.next(3))
            #expect(harness.take(received) == Array(text.bytes))

            var before = stat()
            #expect(fstat(client, &before) == 0)
            harness.ring.close(client, userData: 5)
            #expect(try #require(try harness.next(5)).result == 0)
            // The number may be that of another test's file by now.
            var after = stat()
            #expect(fstat(client, &after) == -1 || after.st_ino != before.st_ino)
            #expect(try #require(try harness.next(3)).result == 0)
            Socket.close(accepted.result)
        }
        harness.ring.cancelAll(on: listener, userData: 6)
        let last = try #require(try harness.next(1))
        #expect(last.result == -ECANCELED && !last.hasMore)
        Socket.close(listener)
    }

    @Test func `A refused connection completes with ECONNREFUSED`() throws {
        var harness = try RingHarness()
        let listener = try Socket.listen(on: .loopback(port: 0))
        let address = try Socket.localAddress(of: listener)
        Socket.close(listener)
        let client = try Socket.stream(for: address)
        harness.ring.connect(client, to: address, userData: 2)
        #expect(try #require(try harness.next(2)).result == -ECONNREFUSED)
        Socket.close(client)
    }

    /// Each queued connect keeps its own address until the kernel took it.
    @Test func `Each of eight queued connects reaches its own address`() throws {
        var harness = try RingHarness()
        var listeners: [(descriptor: Int32, address: SocketAddress)] = []
        for _ in 0..<8 {
            let listener = try Socket.listen(on: .loopback(port: 0))
            listeners.append((listener, try Socket.localAddress(of: listener)))
        }
        var clients: [Int32] = []
        for (index, listener) in listeners.enumerated() {
            clients.append(try Socket.stream(for: listener.address))
            harness.ring.connect(clients[index], to: listener.address, userData: UInt64(index))
        }
        let queued = harness.ring.queuedCount
        #expect(queued == 8)
        for (index, listener) in listeners.enumerated() {
            #expect(try #require(try harness.next(UInt64(index))).result == 0)
            var storage = sockaddr_storage()
            var count = socklen_t(MemoryLayout<sockaddr_storage>.size)
            let peer = withUnsafeMutablePointer(to: &storage) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    getpeername(clients[index], $0, &count)
                    return SocketAddress($0, count: count)
                }
            }
            #expect(peer == listener.address)
            Socket.close(clients[index])
            Socket.close(listener.descriptor)
        }
    }

    @Test func `A send that does not wait for all completes with the bytes that fit`() throws {
        var harness = try RingHarness()
        let pair = SocketPair()
        let bytes = StableBytes((0..<4_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
        harness.ring.send(pair.near, bytes.bytes, waitForAll: false, userData: 1)
        let short = Int(try #require(try harness.next(1)).result)
        #expect(short > 0 && short < bytes.bytes.count)
        #expect(pair.read(1000) == Array(bytes.bytes[..<1000]))
    }

    @Test func `A send that waits for all completes after the last byte`() throws {
        var harness = try RingHarness()
        let pair = SocketPair()
        let bytes = StableBytes((0..<4_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
        harness.ring.send(pair.near, bytes.bytes, userData: 1)
        try harness.ring.submitAndWait(atLeast: 0)
        #expect(try harness.next(1, withinMilliseconds: 20) == nil)
        var got: [UInt8] = []
        while got.count < bytes.bytes.count {
            got += pair.read(1_000_000)
            try harness.ring.submitAndWait(atLeast: 0)
        }
        #expect(try #require(try harness.next(1)).result == 4_000_000)
        #expect(got == Array(bytes.bytes))
    }

    /// A cancelled send says how much went out, which may be part of a record.
    @Test func `A cancelled send completes with the number of bytes that were sent`() throws {
        var harness = try RingHarness()
        let pair = SocketPair()
        let bytes = StableBytes(count: 4_000_000)
        harness.ring.send(pair.near, bytes.bytes, userData: 1)
        try harness.ring.submitAndWait(atLeast: 0)
        harness.ring.cancel(1, userData: 2)
        #expect(try #require(try harness.next(2)).result == 0)
        let sent = try #require(try harness.next(1)).result
        #expect(sent > 0 && sent < 4_000_000)
    }

    @Test func `A send on a closed socket completes with EPIPE and raises no signal`() throws {
        var harness = try RingHarness()
        let pair = SocketPair()
        shutdown(pair.near, Int32(SHUT_WR))
        let bytes = StableBytes([1])
        harness.ring.send(pair.near, bytes.bytes, userData: 1)
        #expect(try #require(try harness.next(1)).result == -EPIPE)
    }

    @Test func `A shutdown ends the peer's reading`() throws {
        var harness = try RingHarness()
        let pair = SocketPair()
        harness.ring.shutdown(pair.near, how: Int32(SHUT_WR), userData: 1)
        #expect(try #require(try harness.next(1)).result == 0)
        #expect(pair.read(1).isEmpty)
    }

    @Test func `A stream socket has TCP_NODELAY and close-on-exec`() throws {
        let descriptor = try Socket.stream(for: .loopback(port: 0))
        defer { Socket.close(descriptor) }
        var on: Int32 = 0
        var count = socklen_t(4)
        getsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, &count)
        #expect(on != 0 && fcntl(descriptor, F_GETFD) & FD_CLOEXEC != 0)
    }

    @Test func `The kernel takes little more than the limit of unsent bytes from a writer`() throws
    {
        func taken(_ limit: Int32?) throws -> Int {
            let listener = try Socket.listen(on: .loopback(port: 0))
            let near = try Socket.stream(
                for: try Socket.localAddress(of: listener), unsentLimit: limit)
            defer { for descriptor in [near, listener] { Socket.close(descriptor) } }
            #expect(Socket.connect(near, to: try Socket.localAddress(of: listener)) == 0)
            _ = fcntl(near, F_SETFL, O_NONBLOCK)
            // The peer reads nothing, so all that is beyond its buffer stays unsent.
            let bytes = [UInt8](repeating: 1, count: 8 << 10)
            var count = 0
            while count < 64 << 20 {
                let written = write(near, bytes, bytes.count)
                if written < 0 { break }
                count += written
            }
            return count
        }
        let limited = try taken(64 << 10)
        let unlimited = try taken(nil)
        #expect(limited > 64 << 10 && limited < unlimited / 2, "\(limited) of \(unlimited)")
    }

    @Test func `Several listeners share a port only if both asked for it`() throws {
        let first = try Socket.listen(on: .loopback(port: 0), sharedPort: true)
        let address = try Socket.localAddress(of: first)
        let second = try Socket.listen(on: address, sharedPort: true)
        let refused = #expect(throws: RingError.self) { try Socket.listen(on: address) }
        #expect(refused?.code == EADDRINUSE)
        #expect(
            refused?.description
                == "cannot listen on \(address): the port is taken by another process")
        Socket.close(first)
        Socket.close(second)
    }
}
