import BroadsidePolicy
import BroadsideRing
import BroadsideSupport

/// The endpoint's addresses as a reactor's connections use them: spread over all, except those that
/// `AddressHealth` says are to be left alone.
struct AddressBook {
    struct Entry {
        var address: SocketAddress
        /// False where the name's last look-up did not have it: it is not tried.
        var isNamed = true
        var attempts = 0
        /// How connections to it fare whose requests are refused one after the other.
        var refusals = RefusalBackoff()
    }

    enum Resolution {
        case none
        case pending(since: UInt64)
        case fresh(until: UInt64)
    }

    /// What all reactors know of the addresses.
    let health: AddressHealth
    private let lossy: LossyAddresses
    /// Whose book this is.
    let reactor: Int
    private(set) var entries: [Entry] = []
    var resolution = Resolution.none
    private var next = 0
    /// When another attempt may be made; nil where nothing waits.
    private(set) var nextAttempt: UInt64?

    /// A name's addresses stay good for so long: connections opened together share one look-up.
    static let freshness: UInt64 = second
    /// Addresses that are remembered, of a name whose answers change from look-up to look-up. Those
    /// that connections use come on top.
    static let entriesLimit = 256

    init(health: AddressHealth, lossy: LossyAddresses, reactor: Int) {
        self.health = health
        self.lossy = lossy
        self.reactor = reactor
    }

    private func owner(_ slot: Int) -> AddressHealth.Owner { .init(reactor: reactor, slot: slot) }

    /// What is known of the address at an index.
    func state(_ index: Int) -> AddressHealth.Entry { health.entry(entries[index].address) }

    /// Takes a look-up's answer. What is known of an address stays known, of one that the name lacks
    /// for a while too: a server in trouble is not tried earlier for having been away. Where there
    /// is no room, the one goes first whose pause is over first.
    ///
    /// - Parameter isInUse: Whether a connection goes to the address of an index: that one stays.
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

    /// The indices of addresses that may be forgotten, the one last whose pause is over first. Others keep
    /// their indices, which connections hold.
    private func reusableIndices(_ isInUse: (Int) -> Bool) -> [Int] {
        entries.indices.filter { !entries[$0].isNamed && !isInUse($0) }
            .map { (index: $0, notBefore: state($0).notBefore) }
            .sorted { ($0.notBefore, $0.index) > ($1.notBefore, $1.index) }
            .map(\.index)
    }

    /// The address that a slot's connection goes to now; nil where all wait, and `nextAttempt` says
    /// until when. Where one that failed is tried, the outcome is waited for.
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
            next = (index + 1) % entries.count
            entries[index].attempts += 1
            return index
        }
        nextAttempt = due
        return nil
    }

    /// How a connection may use its address before it got any response.
    func permission(_ index: Int, slot: Int, now: UInt64) -> AddressHealth.Permission {
        health.permission(entries[index].address, owner(slot), now: now)
    }

    mutating func wait(until deadline: UInt64) {
        nextAttempt = deadline
    }

    /// Nothing waits any more.
    mutating func stopWaiting() {
        nextAttempt = nil
    }

    /// A new connection got a response: the next trouble's pause begins anew.
    func succeeded(_ index: Int, slot: Int, now: UInt64) {
        health.succeeded(entries[index].address, owner(slot), now: now)
    }

    /// A slot's connection carries no requests, has none, or may make none now: if it tried its address, it
    /// found out all it will.
    func releaseTrial(_ slot: Int) {
        health.release(owner(slot))
    }

    /// A connection stands ready.
    func ready(_ index: Int) { health.ready(entries[index].address) }

    /// Whether connections to an address lost rows.
    func isLossy(_ index: Int) -> Bool { lossy.contains(entries[index].address) }

    /// A connection ended without an orderly goodbye: `LossyAddresses`.
    func connectionEnded(_ index: Int, lost: Int, responses: UInt64) {
        lossy.connectionEnded(entries[index].address, lost: lost, responses: responses)
    }

    /// A connection's responses were worth all its streams.
    func proved(_ index: Int) { lossy.proved(entries[index].address) }

    /// Requests were refused on a connection to the address, or none were for a while.
    mutating func record(_ refusals: RefusalBackoff, _ index: Int) {
        entries[index].refusals = refusals
    }

    /// A connection failed, or its server is in trouble: leave the address alone for a while.
    ///
    /// - Parameters:
    ///   - retryAfter: Nanoseconds that the server asked for, where it did.
    ///   - isOutage: The server said so itself, in a response.
    mutating func failed(
        _ index: Int, now: UInt64, retryAfter: UInt64?, lasting: ConnectionTrouble?,
        isOutage: Bool = false, random: inout SplitMix64
    ) {
        health.failed(
            entries[index].address, now: now, retryAfter: retryAfter, lasting: lasting,
            isOutage: isOutage, draw: random.next())
    }

    /// Addresses that failed and did not respond since.
    var troubledCount: Int {
        guard health.hasTrouble else { return 0 }
        return entries.indices.count { entries[$0].isNamed && state($0).failures > 0 }
    }

    /// What to tell where no address will ever do: each was refused for a reason that stays.
    var lastingFailure: ConnectionTrouble? {
        guard !entries.isEmpty else { return nil }
        var last: ConnectionTrouble?
        for index in entries.indices where entries[index].isNamed {
            guard let failure = state(index).lasting else { return nil }
            last = failure
        }
        return last
    }

    /// True if each address was tried so often in vain.
    func areAllUnreachable(after tries: Int) -> Bool {
        !entries.isEmpty && entries.indices.allSatisfy { state($0).failures >= tries }
    }
}
