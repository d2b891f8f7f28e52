/// Notifications in flight on one connection to a legacy gateway, in the order in which they were
/// written. The first notification has the identifier 1. An error packet names a notification by
/// its identifier. Each row has a tag: a number that only the session's owner interprets.
///
///     written --- silence for long enough, or an error that names a later one ---> accepted
///        |------- an error names it ---> as the status of the error says
///        |------- an error names an earlier one ---> discarded: sent again, on another connection
///        '------- the connection ends without an error packet, or within one ---> in doubt
@safe package struct GatewaySession: ~Copyable {
    package let settings: BinarySettings
    // SAFETY: `capacity` elements, freed in `deinit`, and accessed only through this value. The
    // index of an identifier is its remainder by the capacity; `append` has set it for each
    // notification in flight, of which there are at most `capacity`.
    private let tags: UnsafeMutablePointer<UInt32>
    package let capacity: Int
    /// Identifier of the oldest notification in flight.
    package private(set) var firstIdentifier: UInt32 = 1
    package private(set) var count = 0
    /// Identifier of the first notification that was not completely passed to the kernel.
    private(set) var unsentIdentifier: UInt32 = 1
    private var packet: [UInt8] = []
    /// The received error packet; nil after all outcomes that follow from it were returned.
    private var errorPacket: BinaryErrorPacket?
    /// Whether nothing can be written anymore; an error packet, or the rest of it, may still
    /// arrive.
    private var isBroken = false

    /// Time for which the session waits for a reason after the gateway stopped accepting bytes,
    /// nanoseconds.
    package static var brokenLimit: UInt64 { 2_000_000_000 }

    /// - Parameter capacity: Maximum number of notifications in flight.
    package init(_ settings: BinarySettings, capacity: Int) {
        self.settings = settings
        self.capacity = capacity
        // SAFETY: `append` sets an element before it is read.
        unsafe tags = .allocate(capacity: capacity)
    }

    // SAFETY: allocated in `init`, of a trivial type.
    deinit { unsafe tags.deallocate() }

    /// Number of notifications that may still be written.
    package var room: Int { capacity - count }

    /// Identifier of the next notification.
    package var nextIdentifier: UInt32 { firstIdentifier + UInt32(count) }

    /// Adds the row whose notification is written next; returns the notification's identifier.
    package mutating func append(_ tag: UInt32) -> UInt32 {
        precondition(count < capacity)
        let identifier = nextIdentifier
        // SAFETY: a remainder by the capacity is a valid index.
        unsafe tags[Int(identifier) % capacity] = tag
        count += 1
        return identifier
    }

    /// Tag of a notification in flight.
    func tag(_ identifier: UInt32) -> UInt32 {
        precondition(identifier >= firstIdentifier && identifier < nextIdentifier)
        // SAFETY: checked to be in flight, so `append` set its element.
        return unsafe tags[Int(identifier) % capacity]
    }

    /// Tag of the oldest notification in flight; nil if there is none.
    package var oldest: UInt32? {
        // SAFETY: there is one, and `append` set its element.
        count > 0 ? unsafe tags[Int(firstIdentifier) % capacity] : nil
    }

    /// Whether the oldest notification in flight was passed to the kernel.
    package var isOldestSent: Bool { firstIdentifier < unsentIdentifier }

    /// Calls `body` with each tag in flight, oldest first.
    package func forEach(_ body: (UInt32) -> Void) {
        for offset in 0..<count {
            // SAFETY: `count` are in flight, from the first on, and `append` set their elements.
            unsafe body(tags[(Int(firstIdentifier) + offset) % capacity])
        }
    }

    package mutating func popOldest() -> UInt32? {
        guard let tag = oldest else { return nil }
        firstIdentifier += 1
        count -= 1
        return tag
    }

    /// Records that everything written so far was passed to the kernel.
    package mutating func markFlushed() { unsentIdentifier = nextIdentifier }

    /// Records that the gateway stopped reading. An error packet may still arrive until the stream
    /// ends.
    ///
    /// - Returns: Always true, because the gateway may still send the reason.
    package mutating func handleUnwritable() -> Bool {
        isBroken = true
        return true
    }

    // MARK: Outcomes

    /// Returns the next outcome of received bytes. An error packet ends a connection: notifications
    /// written before the one that it names were accepted, later ones were discarded.
    ///
    /// - Parameters:
    ///   - bytes: Received bytes.
    ///   - offset: Offset of the first unprocessed byte.
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
        // The notification that a shutdown names is the last accepted one.
        let isTaken = identifier < parsed.identifier || parsed.meaning == .shutdown
        return isTaken ? .confirmed(tag) : .refused(tag, parsed)
    }

    /// Collects received bytes. Bytes after the packet have no meaning.
    private mutating func take(_ bytes: RawSpan, from start: Int) {
        for offset in start..<bytes.byteCount where packet.count < BinaryErrorPacket.count {
            // SAFETY: any eight bits are a byte, and the load checks its bounds.
            packet.append(unsafe bytes.unsafeLoad(fromByteOffset: offset, as: UInt8.self))
        }
    }

    /// Handles the first bytes of an error packet: the gateway discards whatever it gets from now
    /// on, and silence no longer means acceptance.
    private mutating func awaitPacket() -> GatewayOutcome? {
        guard !isBroken else { return nil }
        isBroken = true
        return .errorPacketBegan
    }

    private func subject(of parsed: BinaryErrorPacket) -> GatewayOutcome.Subject {
        guard parsed.identifier > 0, parsed.identifier < nextIdentifier else { return .nothing }
        // If silence has settled the notification, the error came too late to change that.
        guard parsed.identifier >= firstIdentifier else {
            let last = parsed.meaning == .shutdown ? parsed.identifier : parsed.identifier - 1
            return .settled(refuted: Int(firstIdentifier - 1 - last))
        }
        return .inFlight(tag(parsed.identifier))
    }

    /// Returns the next outcome of elapsed time. A notification that was passed to the kernel and
    /// got no error in time counts as accepted.
    ///
    /// - Parameters:
    ///   - now: Monotonic nanoseconds, like all times here.
    ///   - phaseSince: Start of the connection's phase.
    ///   - isFlushed: Whether the buffer contains no unsent bytes.
    ///   - oldestSent: Time at which the oldest notification in flight was sent; nil if none is in
    ///     flight.
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
