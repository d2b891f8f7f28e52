import BroadsideRing
import Glibc

/// A ring with what a test needs around it: completions are kept until the test asks for them.
struct RingHarness: ~Copyable {
    var ring: Ring
    private var batch: CompletionBatch
    private var seen: [Completion] = []

    init(
        entries: UInt32 = 64, bufferCount: Int = 8, bufferSize: Int = 4096, batchCapacity: Int = 32
    ) throws {
        ring = try Ring(entries: entries, bufferCount: bufferCount, bufferSize: bufferSize)
        batch = CompletionBatch(capacity: batchCapacity)
    }

    /// The next completion with that user data, oldest first; nil when none comes in time.
    mutating func next(_ userData: UInt64, withinMilliseconds limit: UInt64 = 60_000) throws
        -> Completion?
    {
        let end = monotonicNanoseconds() + limit * 1_000_000
        while true {
            if let index = seen.firstIndex(where: { $0.userData == userData }) {
                return seen.remove(at: index)
            }
            let now = monotonicNanoseconds()
            if now >= end { return nil }
            try ring.submitAndWait(atLeast: 1, timeoutNanoseconds: end - now)
            for position in 0..<ring.reap(into: &batch) { seen.append(batch[position]) }
        }
    }

    /// Received bytes, copied; the buffer goes back.
    mutating func take(_ completion: Completion) -> [UInt8] {
        let bytes = Array(ring.unsafeBytes(of: completion))
        if let identifier = completion.bufferID { ring.giveBack(identifier) }
        return bytes
    }
}

func monotonicNanoseconds() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

/// Two connected sockets of one process.
struct SocketPair: ~Copyable {
    let near: Int32
    let far: Int32

    init() {
        var pair: [Int32] = [0, 0]
        precondition(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair) == 0)
        near = pair[0]
        far = pair[1]
    }

    deinit {
        close(near)
        close(far)
    }

    func write(_ bytes: [UInt8]) {
        precondition(Glibc.write(far, bytes, bytes.count) == bytes.count)
    }

    func read(_ count: Int) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        let got = Glibc.read(far, &bytes, count)
        return Array(bytes.prefix(max(0, got)))
    }
}

/// Memory that stays where it is while the kernel looks at it.
final class StableBytes {
    let memory: UnsafeMutableRawBufferPointer

    init(_ bytes: [UInt8]) {
        memory = .allocate(byteCount: max(1, bytes.count), alignment: 8)
        memory.copyBytes(from: bytes)
    }

    convenience init(count: Int) { self.init([UInt8](repeating: 0, count: count)) }

    deinit { memory.deallocate() }

    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(memory) }
}
