/// What is out on one connection to a legacy gateway: rows in the order written, numbered from 1 by
/// the identifier that errors name. What a row is, is its owner's matter: here it is a number, its tag.
///
///     written --- silence for long enough, or an error that names a later one ---> accepted
///        |------- an error names it ---> what its status means
///        |------- an error names an earlier one ---> discarded: again, on another connection
///        '------- the connection ends without an error packet, or within one ---> in doubt
@safe package struct GatewaySession: ~Copyable {
    package let settings: BinarySettings
    // SAFETY: `capacity` places, freed in `deinit`, and reached only through this value. An
    // identifier's place is its remainder by the capacity; `append` set it for each that is out,
    // and no more than `capacity` are.
    private let tags: UnsafeMutablePointer<UInt32>
    package let capacity: Int
    /// The identifier of the oldest row that is out.
    package private(set) var firstIdentifier: UInt32 = 1
    package private(set) var count = 0
    /// The first identifier that was not handed to the kernel as a whole yet.
    private(set) var unsentIdentifier: UInt32 = 1
    private var packet: [UInt8] = []
    /// The packet, while not all of what it says was told.
    private var errorPacket: BinaryErrorPacket?
    /// Nothing can be written any more; what the gateway says about it, or the rest of it, may still
    /// arrive.
    private var isBroken = false

    /// A connection that takes nothing any more gets so long to say why, to the end.
    package static var brokenLimit: UInt64 { 2_000_000_000 }

    /// - Parameter capacity: The most rows that may be out.
    package init(_ settings: BinarySettings, capacity: Int) {
        self.settings = settings
        self.capacity = capacity
        // SAFETY: a place is set by `append` before it is read.
        unsafe tags = .allocate(capacity: capacity)
    }

    // SAFETY: allocated in `init`, of a trivial type.
    deinit { unsafe tags.deallocate() }

    /// Rows that may still be written.
    package var room: Int { capacity - count }

    /// The identifier behind the last that was given.
    package var nextIdentifier: UInt32 { firstIdentifier + UInt32(count) }

    /// Takes a row that is written next; returns its identifier.
    package mutating func append(_ tag: UInt32) -> UInt32 {
        precondition(count < capacity)
        let identifier = nextIdentifier
        // SAFETY: a remainder by the capacity is a place.
        unsafe tags[Int(identifier) % capacity] = tag
        count += 1
        return identifier
    }

    /// A row that is out.
    func tag(_ identifier: UInt32) -> UInt32 {
        precondition(identifier >= firstIdentifier && identifier < nextIdentifier)
        // SAFETY: checked to be out: `append` set its place.
        return unsafe tags[Int(identifier) % capacity]
    }

    /// The oldest row that is out.
    package var oldest: UInt32? {
        // SAFETY: one is out, and `append` set its place.
        count > 0 ? unsafe tags[Int(firstIdentifier) % capacity] : nil
    }

    /// True where the kernel has the oldest.
    package var isOldestSent: Bool { firstIdentifier < unsentIdentifier }

    /// Calls `body` with each row that is out, oldest first.
    package func forEach(_ body: (UInt32) -> Void) {
        for offset in 0..<count {
            // SAFETY: as many are out, from the first on, and `append` set their places.
            unsafe body(tags[(Int(firstIdentifier) + offset) % capacity])
        }
    }

    package mutating func popOldest() -> UInt32? {
        guard let tag = oldest else { return nil }
        firstIdentifier += 1
        count -= 1
        return tag
    }

    /// All that was written so far is with the kernel.
    package mutating func markFlushed() { unsentIdentifier = nextIdentifier }

    /// The gateway reads no more, and its packet may be on its way: only the stream's end says that
    /// none comes.
    package mutating func handleUnwritable() -> Bool {
        isBroken = true
        return true
    }

    // MARK: Outcomes

    /// What received bytes mean: an error packet is the last word of a connection. All that was
    /// written before the one that it names was accepted, all behind it was discarded.
    ///
    /// - Parameters:
    ///   - bytes: What was received.
    ///   - offset: The first of them that was not looked at.
    package mutating func nextOutcome(in bytes: RawSpan, at offset: inout Int) -> GatewayOutcome? {
        if offset < bytes.byteCount {
            take(bytes, from: offset)
            offset = bytes.byteCount
            guard packet.count == BinaryErrorPacket.count else { return awaitPacket() }
            guard let parsed = BinaryErrorPacket(packet) else { return .unreadable }
            errorPacket = parsed
            return .errorPacket(parsed, subject(of: parsed))
        }
        guard let parsed = errorPacket else { return nil }
        let identifier = firstIdentifier
        guard let tag = popOldest() else {
            errorPacket = nil
            return .over
        }
        if identifier > parsed.identifier { return .discarded(tag) }
        // The one that a shutdown names is the last that was taken.
        let isTaken = identifier < parsed.identifier || parsed.meaning == .shutdown
        return isTaken ? .confirmed(tag) : .refused(tag, parsed)
    }

    /// Takes received bytes in. What follows the packet means nothing.
    private mutating func take(_ bytes: RawSpan, from start: Int) {
        for offset in start..<bytes.byteCount where packet.count < BinaryErrorPacket.count {
            // SAFETY: any eight bits are a byte, and the load checks its bounds.
            packet.append(unsafe bytes.unsafeLoad(fromByteOffset: offset, as: UInt8.self))
        }
    }

    /// The gateway has begun to say what is wrong: it discards what else it gets, and its silence is over.
    private mutating func awaitPacket() -> GatewayOutcome? {
        guard !isBroken else { return nil }
        isBroken = true
        return .errorPacketBegan
    }

    private func subject(of parsed: BinaryErrorPacket) -> GatewayOutcome.Subject {
        guard parsed.identifier > 0, parsed.identifier < nextIdentifier else { return .nothing }
        // An error about one that silence has settled came too late to change it.
        guard parsed.identifier >= firstIdentifier else { return .settled }
        return .inFlight(tag(parsed.identifier))
    }

    /// Notifications that the kernel has and of which the gateway has said nothing for long enough
    /// were accepted.
    ///
    /// - Parameters:
    ///   - now: Monotonic nanoseconds, as all of them.
    ///   - phaseSince: Since when the connection is in its phase.
    ///   - isFlushed: Nothing that was written waits in our buffer.
    ///   - oldestSent: When the oldest row that is out was sent; nil if none is.
    package mutating func nextExpired(
        now: UInt64, phaseSince: UInt64, isFlushed: Bool, oldestSent: UInt64?
    ) -> GatewayOutcome? {
        if isBroken { return now - phaseSince > Self.brokenLimit ? .unexplained : nil }
        if isFlushed { markFlushed() }
        guard let tag = oldest, let sent = oldestSent, isOldestSent else { return nil }
        guard now > sent, now - sent > settings.silence else { return nil }
        _ = popOldest()
        return .confirmed(tag)
    }
}
