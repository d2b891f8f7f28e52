import BroadsidePolicy
import BroadsideRing
import BroadsideSupport

/// Addresses of the endpoint as a reactor uses them: connections are spread over all of them,
/// except those that `AddressHealth` pauses.
struct AddressBook {
    struct Entry {
        var address: SocketAddress
        /// Whether the last lookup of the name returned the address. If not, the address is not
        /// tried.
        var isNamed = true
        var attempts = 0
        /// Backoff for connections to the address, if their requests are refused repeatedly.
        var refusals = RefusalBackoff()
    }

    enum Resolution {
        case none
        case pending(since: UInt64)
        case fresh(until: UInt64)
    }

    /// Health of the addresses, which all reactors share.
    let health: AddressHealth
    private let lossy: LossyAddresses
    /// Number of the reactor that owns the book.
    let reactor: Int
    private(set) var entries: [Entry] = []
    var resolution = Resolution.none
    /// Position from which the address of the next connection is searched, modulo their number.
    private var next: Int
    private let giveUpAfter: UInt64
    /// Time of the next connection attempt; nil if the reactor waits for none.
    private(set) var nextAttempt: UInt64?

    /// Lifetime of a lookup's result. Connections that are opened together share one lookup.
    static let freshness: UInt64 = second
    /// Maximum number of addresses to remember. It matters if each lookup of the name returns
    /// other addresses. Addresses of current connections are kept beyond the limit.
    static let entriesLimit = 256

    /// - Parameter giveUpAfter: Nanoseconds without a response after which the run stops.
    init(
        health: AddressHealth, lossy: LossyAddresses, reactor: Int, giveUpAfter: UInt64 = .max
    ) {
        self.health = health
        self.lossy = lossy
        self.reactor = reactor
        self.giveUpAfter = giveUpAfter
        // Each reactor begins with another address, so that reactors with one connection each use
        // all addresses.
        next = reactor
    }

    private func owner(_ slot: Int) -> AddressHealth.Owner { .init(reactor: reactor, slot: slot) }

    /// State of the address at an index.
    func state(_ index: Int) -> AddressHealth.Entry { health.entry(entries[index].address) }

    /// Applies the result of a lookup. Known addresses keep their state. If a lookup omits an
    /// address, the address keeps its state for a while, so that a server in trouble is not tried
    /// too early when the address returns. If the book is full, the address whose pause ends first
    /// is dropped.
    ///
    /// - Parameter isInUse: Whether a connection uses the address at an index. Such an address
    ///   keeps its index.
    mutating func update(_ addresses: [SocketAddress], now: UInt64, isInUse: (Int) -> Bool) {
        for index in entries.indices {
            entries[index].isNamed = addresses.contains(entries[index].address)
        }
        var reusable: [Int]?
        for address in addresses.prefix(Self.entriesLimit)
        where !entries.contains(where: { $0.address == address }) {
            let entry = Entry(address: address)
            if entries.count >= Self.entriesLimit {
                var indices = reusable ?? reusableIndices(isInUse)
                let index = indices.popLast()
                reusable = indices
                if let index {
                    entries[index] = entry
                    continue
                }
            }
            entries.append(entry)
        }
        resolution = .fresh(until: now + Self.freshness)
    }

    /// Indices of addresses that may be replaced; the address whose pause ends last comes first.
    /// All other addresses keep their indices, because connections refer to them.
    private func reusableIndices(_ isInUse: (Int) -> Bool) -> [Int] {
        entries.indices.filter { !entries[$0].isNamed && !isInUse($0) }
            .map { (index: $0, notBefore: state($0).notBefore) }
            .sorted { ($0.notBefore, $0.index) > ($1.notBefore, $1.index) }
            .map(\.index)
    }

    /// Returns the index of the address for a slot's next connection. If all addresses are paused,
    /// returns nil, and `nextAttempt` is the end of the first pause. If an address is on trial,
    /// other connections wait for the outcome.
    mutating func pick(for slot: Int, now: UInt64) -> Int? {
        nextAttempt = nil
        guard !entries.isEmpty else { return nil }
        var due: UInt64?
        for step in 0..<entries.count {
            let index = (next + step) % entries.count
            guard entries[index].isNamed else { continue }
            if case .none(let until) = health.requestPermission(
                entries[index].address, owner(slot), now: now)
            {
                if let until { due = min(due ?? until, until) }
                continue
            }
            assert(entries[index].isNamed)
            next = (index + 1) % entries.count
            entries[index].attempts += 1
            return index
        }
        nextAttempt = due
        return nil
    }

    /// Whether a connection without a response may send to its address.
    func permission(_ index: Int, slot: Int, now: UInt64) -> AddressHealth.Permission {
        health.permission(entries[index].address, owner(slot), now: now)
    }

    mutating func wait(until deadline: UInt64) {
        nextAttempt = deadline
    }

    /// Cancels the wait for the next connection attempt.
    mutating func stopWaiting() {
        nextAttempt = nil
    }

    /// Resets the address's backoff after the first response on a new connection.
    func succeeded(_ index: Int, slot: Int, now: UInt64) {
        health.succeeded(entries[index].address, owner(slot), now: now)
    }

    /// Releases the trial of a slot. The slot's connection can't find out more about the address,
    /// because it has no requests in flight or must not send requests now.
    func releaseTrial(_ slot: Int) {
        health.release(owner(slot))
    }

    /// Records that a connection became ready.
    func ready(_ index: Int) { health.ready(entries[index].address) }

    /// Whether the address is in `LossyAddresses`.
    func isLossy(_ index: Int) -> Bool { lossy.contains(entries[index].address) }

    /// Records a connection that ended without an orderly shutdown, see `LossyAddresses`.
    func connectionEnded(_ index: Int, lost: Int, responses: UInt64) {
        lossy.connectionEnded(entries[index].address, lost: lost, responses: responses)
    }

    /// Removes the address from `LossyAddresses`. Called when a connection to the address has had
    /// so many responses that all of its streams may be used at once.
    func proved(_ index: Int) { lossy.proved(entries[index].address) }

    /// Stores the backoff of connections to the address. Called after refused requests have changed
    /// the backoff, and after a reset of the backoff.
    mutating func record(_ refusals: RefusalBackoff, _ index: Int) {
        entries[index].refusals = refusals
    }

    /// Pauses an address after a failed connection or a report of trouble.
    ///
    /// - Parameters:
    ///   - retryAfter: Nanoseconds that the server asked for, if any.
    ///   - isOutage: Whether the server reported the trouble itself, in a response.
    ///   - isRepeated: Whether an earlier response to the same row also reported trouble.
    ///   - isUnreached: Whether no connection could be opened.
    mutating func failed(
        _ index: Int, now: UInt64, retryAfter: UInt64?, lasting: ConnectionTrouble?,
        isOutage: Bool = false, isRepeated: Bool = false, isUnreached: Bool = false,
        random: inout SplitMix64
    ) {
        health.failed(
            entries[index].address, now: now, retryAfter: retryAfter, lasting: lasting,
            isOutage: isOutage, isRepeated: isRepeated, isUnreached: isUnreached,
            reactor: reactor, giveUpAfter: giveUpAfter, draw: random.next())
    }

    /// Number of addresses that failed and have not responded since.
    var troubledCount: Int {
        guard health.hasTrouble else { return 0 }
        return entries.indices.count { entries[$0].isNamed && state($0).failures > 0 }
    }

    /// The last problem, if each address failed for a reason that a retry cannot fix.
    var lastingFailure: ConnectionTrouble? {
        guard !entries.isEmpty else { return nil }
        var last: ConnectionTrouble?
        for index in entries.indices where entries[index].isNamed {
            guard let failure = state(index).lasting else { return nil }
            last = failure
        }
        return last
    }

    /// Whether each address failed at least `tries` consecutive times.
    func areAllUnreachable(after tries: Int) -> Bool {
        !entries.isEmpty && entries.indices.allSatisfy { state($0).failures >= tries }
    }
}
