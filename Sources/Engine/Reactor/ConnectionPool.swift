import BroadsidePolicy
import BroadsideRing
import BroadsideSupport

/// The connections of a reactor: their slots, the addresses that they go to, and how many there are to
/// be.
///
/// Slots lie in memory that never moves. There are as many as have been of use, so that those which
/// never are cost nothing.
@safe struct ConnectionPool<Records: RecordLayer & ~Copyable>: ~Copyable {
    // SAFETY: room for `capacity` slots that never move, of which the first `count` are made; freed
    // in `deinit`. Only the reactor's thread reaches them, and no method of a slot knows the pool.
    private let memory: UnsafeMutablePointer<Connection<Records>>
    /// The most slots that there may be.
    let capacity: Int
    private(set) var count = 0

    /// What a connection's record layer and its protocol are made with.
    let recordConfiguration: Records.Configuration
    let sessionConfiguration: ProtocolSession.Configuration
    /// The server behind a proxy, for messages; nil without one.
    let tunnelTarget: String?
    var addresses: AddressBook
    /// Connections that this reactor keeps up, and those that it opens at its start.
    var share: Int
    let initialCount: Int
    /// The slots of the connections that call the provider token expired, one for each such response, and
    /// whether it is their first: the run has not said yet what to do.
    var expiredOn: [(slot: Int, isFirst: Bool)] = []
    /// Attempts at a connection so far.
    var begun = 0
    /// Look-ups of the name that failed.
    var resolutionFailures = 0
    /// Whether it was told that the look-up which is out takes long.
    var didReportSlowLookup = false
    /// Where the round over the connections starts, so that none is always first.
    private var rotation = 0
    /// Since when no connection is ready, monotonic nanoseconds; nil while one is.
    private(set) var disabledSince: UInt64?
    /// What `--pace adaptive` knows of them together.
    var latencyMonitor: LatencyMonitor

    /// A draining connection and its replacement live side by side.
    static var slotsEachConnection: Int { 2 }

    init(
        settings: ReactorSettings, recordConfiguration: Records.Configuration,
        addresses: AddressBook,
        initialCount: Int, now: Now
    ) {
        capacity = settings.connections * Self.slotsEachConnection
        // SAFETY: `count` says that no slot is made.
        unsafe memory = .allocate(capacity: capacity)
        self.recordConfiguration = recordConfiguration
        sessionConfiguration = ProtocolSession.Configuration(settings)
        tunnelTarget = settings.tunnelTarget
        self.addresses = addresses
        share = initialCount
        self.initialCount = initialCount
        disabledSince = now.nanoseconds
        latencyMonitor = LatencyMonitor(now: now)
    }

    deinit {
        // SAFETY: the first `count` slots are made, and each is moved out once.
        // `deinitialize(count:)` ends nothing that cannot be copied once it is optimized (Swift
        // 6.3).
        for index in 0..<count { _ = unsafe (memory + index).move() }
        unsafe memory.deallocate()
    }

    /// Makes slots until there are enough for the share, and one connection at least: a turn goes round
    /// them.
    mutating func grow(make: () -> Connection<Records>) {
        let wanted = max(1, share) * Self.slotsEachConnection
        precondition(wanted <= capacity)
        while count < wanted {
            // SAFETY: the slot lies below `capacity`, and was not made before.
            unsafe (memory + count).initialize(to: make())
            count += 1
        }
    }

    subscript(index: Int) -> Connection<Records> {
        // SAFETY: the index is checked: the slot is made, and stays where it is as long as self.
        unsafeAddress {
            precondition(index >= 0 && index < count)
            return unsafe UnsafePointer(memory + index)
        }
        nonmutating unsafeMutableAddress {
            precondition(index >= 0 && index < count)
            return unsafe memory + index
        }
    }

    /// The slot that a turn looks at after so many others.
    func slot(_ step: Int) -> Int { (rotation + step) % count }

    /// The next turn begins with another slot.
    mutating func rotate() { rotation = (rotation + 1) % count }

    // MARK: What stands

    /// True while a connection stands that may carry requests.
    var hasReady: Bool {
        (0..<count).contains { self[$0].phase == .open && self[$0].isReady }
    }

    /// Connections that the kernel made and that carry requests or soon will.
    var establishedCount: Int {
        (0..<count).count { self[$0].phase == .handshaking || self[$0].phase == .open }
    }

    /// Connections that count towards the share.
    var activeCount: Int { (0..<count).count { self[$0].isActive } }

    /// Connections over which responses may still come.
    var openCount: Int { (0..<count).count { self[$0].isReady && self[$0].isListening } }

    /// Requests that were written to connections and have no response yet.
    var openRequests: Int { (0..<count).reduce(0) { $0 + self[$1].openCount } }

    /// True if every slot is free.
    var areAllClosed: Bool { (0..<count).allSatisfy { self[$0].phase == .idle } }

    /// Notes whether a connection can carry requests.
    ///
    /// - Returns: What it is now, if that changed.
    mutating func updateReadiness(now: UInt64) -> Bool? {
        let isReady = hasReady
        guard isReady == (disabledSince != nil) else { return nil }
        disabledSince = isReady ? nil : now
        return isReady
    }

    /// What does not hold although it always has to; nil if all is well.
    func brokenInvariant(inFlight: Int) -> String? {
        if openRequests != inFlight {
            return "\(openRequests) open requests, \(inFlight) in flight"
        }
        if activeCount > share { return "\(activeCount) connections, \(share) are to be" }
        for index in 0..<count {
            if let broken = self[index].brokenInvariant { return "connection \(index): \(broken)" }
        }
        return nil
    }

    // MARK: In words

    /// Who is at a connection's other end, for messages: behind a proxy the proxy alone until its
    /// tunnel stands.
    func peer(_ index: Int) -> String {
        let address = addresses.entries[self[index].address].address
        guard let tunnelTarget else { return "\(address)" }
        let isProxys = self[index].phase == .connecting || self[index].records?.closedEarly != nil
        return isProxys ? "the proxy \(address)" : "\(tunnelTarget) through the proxy \(address)"
    }

    /// The step in which a connection that fails now is.
    func step(_ index: Int) -> ConnectionTrouble.Kind {
        let isProxys = tunnelTarget != nil
        switch self[index].phase {
        case .idle, .connecting: return isProxys ? .proxy : .connect
        case .handshaking: return self[index].records?.closedEarly != nil ? .proxy : .tls
        case .open where !self[index].isReady: return .protocol
        case .open, .draining, .flushing, .closing: return .lost
        }
    }

    /// What went wrong with a connection now.
    func trouble(
        _ index: Int, _ problem: String, step: ConnectionTrouble.Kind? = nil
    ) -> ConnectionTrouble {
        ConnectionTrouble(step ?? self.step(index), with: peer(index), problem)
    }

    /// A record layer's trouble.
    func trouble(_ index: Int, _ error: RecordLayerError) -> ConnectionTrouble {
        error.namesPeer
            ? ConnectionTrouble(step(index), error.message) : trouble(index, error.message)
    }

    /// A connection that ended without a word of ours.
    func troubleAtEnd(_ index: Int, errno: Int32) -> ConnectionTrouble {
        if errno == 0, let error = self[index].records?.closedEarly {
            return ConnectionTrouble(step(index), error.message)
        }
        return trouble(
            index, errno == 0 ? "the server closed the connection" : describe(errno: errno))
    }
}
