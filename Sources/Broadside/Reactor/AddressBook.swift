import Campaign
import Ring

/// The endpoint's addresses and how each fares: connections are spread over all, one that fails or
/// whose server is in trouble is left alone for a while that doubles.
///
///     good --failed--> paused, 1 to 60 s --time--> probed by one connection --answered--> good
///                        ^                                  |
///                        '----------- failed ---------------'
struct AddressBook {
    struct Entry {
        var address: SocketAddress
        /// Connections in a row that ended without an answer, or answers that spoke of trouble.
        var failures = 0
        /// No attempt before, monotonic nanoseconds.
        var notBefore: UInt64 = 0
        /// The slot of the one connection that finds out whether it is good again.
        var probe: Int?
        /// What went wrong last, where trying again cannot help.
        var lastingFailure: ConnectionTrouble?
        /// True once a connection to it was ready.
        var wasReady = false
        /// False where the name's last look-up did not have it: it is not tried.
        var isNamed = true
        var attempts = 0
    }

    enum Resolution {
        case none, asked
        case fresh(until: UInt64)
    }

    private(set) var entries: [Entry] = []
    var resolution = Resolution.none
    private var next = 0
    /// When another attempt may be made; nil where nothing waits.
    private(set) var nextAttempt: UInt64?

    /// A name's addresses stay good for so long: connections opened together share one look-up.
    static let freshness: UInt64 = second
    static let backoffMinimum: UInt64 = second
    static let backoffMaximum: UInt64 = 60 * second
    /// Addresses that are remembered, of a name whose answers change from look-up to look-up. Those
    /// that connections use come on top.
    static let entriesLimit = 256

    /// Takes a look-up's answer. What is known of an address stays known, of one that the name lacks
    /// for a while too: a server in trouble is not tried earlier for having been away. Where there
    /// is no room, the one goes first whose pause is over first.
    ///
    /// - Parameter isInUse: Whether a connection goes to the address of an index: that one stays.
    mutating func update(_ addresses: [SocketAddress], now: UInt64, isInUse: (Int) -> Bool) {
        for index in entries.indices {
            entries[index].isNamed = addresses.contains(entries[index].address)
        }
        for address in addresses.prefix(Self.entriesLimit)
        where !entries.contains(where: { $0.address == address }) {
            let entry = Entry(address: address)
            if let place = placeToReuse(isInUse) {
                entries[place] = entry
            } else {
                entries.append(entry)
            }
        }
        resolution = .fresh(until: now + Self.freshness)
    }

    /// The index of an address that may be forgotten; nil where there is room, or none to forget.
    /// Others keep their indices, which connections hold.
    private func placeToReuse(_ isInUse: (Int) -> Bool) -> Int? {
        guard entries.count >= Self.entriesLimit else { return nil }
        return entries.indices.filter { !entries[$0].isNamed && !isInUse($0) }
            .min { entries[$0].notBefore < entries[$1].notBefore }
    }

    /// The address that a slot's connection goes to now; nil where all wait, and `nextAttempt` says
    /// until when. Where one that failed is probed, its outcome is waited for.
    mutating func pick(for slot: Int, now: UInt64) -> Int? {
        nextAttempt = nil
        guard !entries.isEmpty else { return nil }
        for step in 0..<entries.count {
            let index = (next + step) % entries.count
            if entries[index].isNamed, entries[index].notBefore <= now,
                entries[index].probe == nil
            {
                if entries[index].failures > 0 { entries[index].probe = slot }
                next = (index + 1) % entries.count
                entries[index].attempts += 1
                return index
            }
        }
        nextAttempt = entries.lazy.filter { $0.isNamed && $0.probe == nil }.map(\.notBefore).min()
        return nil
    }

    mutating func wait(until deadline: UInt64) {
        nextAttempt = deadline
    }

    /// Nothing waits any more.
    mutating func stopWaiting() {
        nextAttempt = nil
    }

    /// A new connection was answered: the next trouble's delay begins anew. A pause that another
    /// answer asked for meanwhile stays.
    mutating func succeeded(_ index: Int, now: UInt64) {
        guard entries[index].notBefore <= now else { return }
        entries[index].failures = 0
        entries[index].probe = nil
    }

    /// A slot's connection carries requests no more: if it was a probe, it found out all it will.
    mutating func ended(_ slot: Int) {
        for index in entries.indices where entries[index].probe == slot {
            entries[index].probe = nil
        }
    }

    mutating func ready(_ index: Int) {
        entries[index].wasReady = true
        entries[index].lastingFailure = nil
    }

    /// A connection failed, or its server is in trouble: leave the address alone for a while.
    ///
    /// - Parameter retryAfter: Nanoseconds that the server asked for, where it did: these count, and
    ///   not what has doubled so far.
    mutating func failed(
        _ index: Int, now: UInt64, retryAfter: UInt64?, lasting: ConnectionTrouble?,
        random: inout SplitMix64
    ) {
        // Several connections that fail together are one failure.
        guard entries[index].notBefore <= now else {
            entries[index].lastingFailure = lasting ?? entries[index].lastingFailure
            if let retryAfter {
                entries[index].notBefore = max(entries[index].notBefore, now + retryAfter)
            }
            return
        }
        let exponent = min(entries[index].failures, 6)
        entries[index].failures += 1
        entries[index].lastingFailure = lasting
        let doubled = min(Self.backoffMinimum << UInt64(exponent), Self.backoffMaximum)
        let backoff = retryAfter.map { max($0, Self.backoffMinimum) } ?? doubled
        // Jitter of up to a quarter, so that senders don't march in step: before the time is up, but
        // not where the server named it.
        let jitter = random.next() % (backoff / 4)
        entries[index].notBefore = now + (retryAfter == nil ? backoff - jitter : backoff + jitter)
    }

    /// Addresses that failed and were not answered since.
    var troubledCount: Int {
        entries.count { $0.failures > 0 && $0.isNamed }
    }

    /// What to tell where no address will ever do: each was refused for a reason that stays.
    var lastingFailure: ConnectionTrouble? {
        guard !entries.isEmpty else { return nil }
        var last: ConnectionTrouble?
        for entry in entries where entry.isNamed {
            guard let failure = entry.lastingFailure else { return nil }
            last = failure
        }
        return last
    }

    /// True where no address was ever ready and each was tried so often in vain.
    func areAllUnreachable(after tries: Int) -> Bool {
        !entries.isEmpty && entries.allSatisfy { !$0.wasReady && $0.failures >= tries }
    }
}
