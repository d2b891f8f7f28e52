import BroadsidePolicy
import BroadsideRing
import BroadsideSupport

/// Connections of a reactor: their slots, their addresses and their target number.
///
/// Slots are in memory that never moves. They are created on demand, so that unused ones cost
/// nothing.
@safe struct ConnectionPool<Records: RecordLayer & ~Copyable>: ~Copyable {
    // SAFETY: room for `capacity` slots that never move, of which the first `count` exist; freed in
    // `deinit`. Only the reactor's thread accesses them, and no method of a slot accesses the pool.
    private let memory: UnsafeMutablePointer<Connection<Records>>
    /// Maximum number of slots.
    let capacity: Int
    private(set) var count = 0

    /// Configuration of a connection's record layer and protocol.
    let recordConfiguration: Records.Configuration
    let sessionConfiguration: ProtocolSession.Configuration
    /// `HOST:PORT` of the server behind a proxy, for messages; nil without a proxy.
    let tunnelTarget: String?
    var addresses: AddressBook
    /// Number of connections that this reactor keeps open, and number of connections that it opens
    /// at its start.
    var share: Int
    let initialCount: Int
    /// One entry for each ExpiredProviderToken response that awaits the run's decision: the
    /// connection's slot, and whether the response was the connection's first.
    var expiryReports: [(slot: Int, isFirst: Bool)] = []
    /// Number of connections that were replaced because a row needs another connection, since the
    /// last new connection that had another first response.
    var replacedAtOnce = 0
    /// The `keyVersion` of the run's directives for which the connections are suited.
    var keyVersion: UInt32 = 1
    /// Number of connection attempts so far.
    var begun = 0
    /// Number of failed lookups of the name.
    var resolutionFailures = 0
    /// Whether the slowness of the current lookup was reported.
    var didReportSlowLookup = false
    /// The slot at which the next iteration starts, so that no connection is always first.
    private var rotation = 0
    /// Time since which no connection has been ready, monotonic nanoseconds; nil if a connection is
    /// ready.
    private(set) var disabledSince: UInt64?
    /// State of `--pace adaptive` that connections share.
    var latencyMonitor: LatencyMonitor

    /// Slots per connection: a draining connection and its replacement exist side by side.
    static var slotsEachConnection: Int { 2 }

    init(
        settings: ReactorSettings, recordConfiguration: Records.Configuration,
        addresses: AddressBook,
        initialCount: Int, now: Now
    ) {
        capacity = settings.connections * Self.slotsEachConnection
        // SAFETY: `count` is 0, so that no slot exists.
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
        // SAFETY: the first `count` slots exist, and each is moved out once. An optimized
        // `deinitialize(count:)` does not end noncopyable values (Swift 6.3).
        for index in 0..<count { _ = unsafe (memory + index).move() }
        unsafe memory.deallocate()
    }

    /// Creates slots until there are enough for the reactor's share of the run's connections.
    /// Creates at least one, because an iteration visits the slots in turn.
    mutating func grow(make: () -> Connection<Records>) {
        let wanted = max(1, share) * Self.slotsEachConnection
        precondition(wanted <= capacity)
        while count < wanted {
            // SAFETY: the index is below `capacity`, and the slot does not exist yet.
            unsafe (memory + count).initialize(to: make())
            count += 1
        }
    }

    subscript(index: Int) -> Connection<Records> {
        // SAFETY: the index is checked: the slot exists and does not move during the life of
        // `self`.
        unsafeAddress {
            precondition(index >= 0 && index < count)
            return unsafe UnsafePointer(memory + index)
        }
        nonmutating unsafeMutableAddress {
            precondition(index >= 0 && index < count)
            return unsafe memory + index
        }
    }

    /// Slot that an iteration visits at this step.
    func slot(_ step: Int) -> Int { (rotation + step) % count }

    /// Makes the next iteration start with a different slot.
    mutating func rotate() { rotation = (rotation + 1) % count }

    // MARK: Counts

    /// Whether any connection may carry requests.
    var hasReady: Bool {
        (0..<count).contains { self[$0].phase == .open && self[$0].isReady }
    }

    /// Number of connections that carry requests now or as soon as their handshake is complete.
    var establishedCount: Int {
        (0..<count).count { self[$0].phase == .handshaking || self[$0].phase == .open }
    }

    /// Number of connections that count towards the reactor's share.
    var activeCount: Int { (0..<count).count { self[$0].isActive } }

    /// Number of connections on which responses may still come.
    var openCount: Int { (0..<count).count { self[$0].isReady && self[$0].isListening } }

    /// Number of requests in flight.
    var openRequests: Int { (0..<count).reduce(0) { $0 + self[$1].openCount } }

    /// Whether each slot is free.
    var areAllClosed: Bool { (0..<count).allSatisfy { self[$0].phase == .idle } }

    /// Checks whether any connection can carry requests, and stores the result.
    ///
    /// - Returns: The result if it changed; nil otherwise.
    mutating func updateReadiness(now: UInt64) -> Bool? {
        let isReady = hasReady
        guard isReady == (disabledSince != nil) else { return nil }
        disabledSince = isReady ? nil : now
        return isReady
    }

    /// Description of a violated invariant; nil if there is none.
    func brokenInvariant(inFlight: Int) -> String? {
        if openRequests != inFlight {
            return "\(openRequests) open requests, \(inFlight) in flight"
        }
        if activeCount > share {
            return "\(activeCount) active connections, more than the reactor's share of \(share)"
        }
        for index in 0..<count {
            if let broken = self[index].brokenInvariant { return "connection \(index): \(broken)" }
        }
        return nil
    }

    // MARK: Messages

    /// Peer of a connection, for messages. If there is a proxy, this is the proxy alone until the
    /// tunnel is open.
    func peer(_ index: Int) -> String {
        let address = addresses.entries[self[index].address].address
        guard let tunnelTarget else { return "\(address)" }
        let isProxys = self[index].phase == .connecting || self[index].records?.closedEarly != nil
        return isProxys ? "the proxy \(address)" : "\(tunnelTarget) through the proxy \(address)"
    }

    /// Kind of trouble to report if the connection fails in its current phase.
    func step(_ index: Int) -> ConnectionTrouble.Kind {
        let isProxys = tunnelTarget != nil
        switch self[index].phase {
        case .idle, .connecting: return isProxys ? .proxy : .connect
        case .handshaking: return self[index].records?.closedEarly != nil ? .proxy : .tls
        case .open where !self[index].isReady: return .protocol
        case .open, .draining, .flushing, .closing: return .lost
        }
    }

    /// Trouble of a connection in its current phase.
    func trouble(
        _ index: Int, _ problem: String, step: ConnectionTrouble.Kind? = nil
    ) -> ConnectionTrouble {
        ConnectionTrouble(step ?? self.step(index), with: peer(index), problem)
    }

    /// Trouble reported by the record layer.
    func trouble(_ index: Int, _ error: RecordLayerError) -> ConnectionTrouble {
        error.namesPeer
            ? ConnectionTrouble(step(index), error.message) : trouble(index, error.message)
    }

    /// Trouble to report after the peer or the kernel has ended the connection.
    func troubleAtEnd(_ index: Int, errno: Int32) -> ConnectionTrouble {
        if errno == 0, let error = self[index].records?.closedEarly {
            return ConnectionTrouble(step(index), error.message)
        }
        guard errno == 0 else { return trouble(index, describe(errno: errno)) }
        // A gateway has no other way to refuse a certificate after the handshake.
        let isRefusal =
            self[index].isReady && !self[index].session.respondsToEach && self[index].responses == 0
        return trouble(
            index,
            "the server closed the connection"
                + (isRefusal
                    ? " before it accepted a row: it may refuse the client certificate" : ""))
    }
}
