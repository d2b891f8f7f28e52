import APNs

/// What is out on one connection to a legacy gateway: rows in the order written, numbered from 1 by
/// the identifier that errors name.
///
///     written --- silence for long enough, or an error that names a later one ---> accepted
///        |------- an error names it ---> what its status means
///        |------- an error names an earlier one ---> discarded: again, on another connection
///        '------- the connection ends without an error packet, or within one ---> in doubt
@safe struct BinaryConnection: ~Copyable {
    private let tags: UnsafeMutablePointer<RowTag>
    private let capacity: Int
    /// The identifier of the oldest row that is out.
    private(set) var firstIdentifier: UInt32 = 1
    private(set) var count = 0
    /// The first identifier that was not handed to the kernel as a whole yet.
    private(set) var unsentIdentifier: UInt32 = 1
    private var packet: [UInt8] = []
    /// Nothing can be written any more; what the gateway says about it, or the rest of it, may still
    /// arrive.
    var isBroken = false

    /// - Parameter capacity: The most rows that may be out.
    init(capacity: Int) {
        self.capacity = capacity
        unsafe tags = .allocate(capacity: capacity)
    }

    deinit { unsafe tags.deallocate() }

    /// Rows that may still be written.
    var room: Int { capacity - count }

    /// The identifier behind the last that was given.
    var nextIdentifier: UInt32 { firstIdentifier + UInt32(count) }

    /// Takes a row that is written next; returns its identifier.
    mutating func append(_ tag: RowTag) -> UInt32 {
        precondition(count < capacity)
        let identifier = nextIdentifier
        unsafe tags[Int(identifier) % capacity] = tag
        count += 1
        return identifier
    }

    /// A row that is out.
    func tag(_ identifier: UInt32) -> RowTag {
        precondition(identifier >= firstIdentifier && identifier < nextIdentifier)
        return unsafe tags[Int(identifier) % capacity]
    }

    /// The oldest row that is out.
    var oldest: RowTag? {
        count > 0 ? unsafe tags[Int(firstIdentifier) % capacity] : nil
    }

    /// True where the kernel has the oldest.
    var isOldestSent: Bool { firstIdentifier < unsentIdentifier }

    /// Calls `body` with each row that is out, oldest first.
    func forEach(_ body: (RowTag) -> Void) {
        for offset in 0..<count {
            unsafe body(tags[(Int(firstIdentifier) + offset) % capacity])
        }
    }

    mutating func popOldest() -> RowTag? {
        guard let tag = oldest else { return nil }
        firstIdentifier += 1
        count -= 1
        return tag
    }

    /// All that was written so far is with the kernel.
    mutating func noteFlushed() { unsentIdentifier = nextIdentifier }

    /// Takes received octets in; the packet once it is whole. What follows it means nothing.
    mutating func receive(_ bytes: RawSpan) -> [UInt8]? {
        for offset in 0..<bytes.byteCount where packet.count < BinaryErrorPacket.count {
            packet.append(unsafe bytes.unsafeLoad(fromByteOffset: offset, as: UInt8.self))
        }
        return packet.count == BinaryErrorPacket.count ? packet : nil
    }
}
