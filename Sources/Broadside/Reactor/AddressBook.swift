import Campaign
import Ring

/// The endpoint's addresses and how each fares: connections are spread over all, one that fails is
/// left alone for a while that doubles, one whose server is in trouble is paused.
struct AddressBook {
    struct Entry {
        var address: SocketAddress
        /// Connections in a row that ended without an answer, or answers that spoke of trouble.
        var failures = 0
        /// No attempt before, monotonic nanoseconds.
        var notBefore: UInt64 = 0
        /// What went wrong last, where trying again cannot help.
        var lastingFailure: String?
        /// True once a connection to it was ready.
        var wasReady = false
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

    /// Takes a look-up's answer. What is known of an address stays known.
    mutating func update(_ addresses: [SocketAddress], now: UInt64) {
        for address in addresses where !entries.contains(where: { $0.address == address }) {
            entries.append(Entry(address: address))
        }
        // Entries that the name no longer has stay in place, so that indices hold, but are tried
        // no more.
        for index in entries.indices where !addresses.contains(entries[index].address) {
            entries[index].notBefore = .max
        }
        for index in entries.indices where addresses.contains(entries[index].address) {
            if entries[index].notBefore == .max { entries[index].notBefore = 0 }
        }
        resolution = .fresh(until: now + Self.freshness)
    }

    /// The address to connect to now; nil where all wait, and `nextAttempt` says until when.
    mutating func pick(now: UInt64) -> Int? {
        nextAttempt = nil
        guard !entries.isEmpty else { return nil }
        for step in 0..<entries.count {
            let index = (next + step) % entries.count
            if entries[index].notBefore <= now {
                next = (index + 1) % entries.count
                entries[index].attempts += 1
                return index
            }
        }
        let soonest = entries.map(\.notBefore).min() ?? .max
        nextAttempt = soonest == .max ? nil : soonest
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
    }

    mutating func ready(_ index: Int) {
        entries[index].wasReady = true
        entries[index].lastingFailure = nil
    }

    /// A connection failed, or its server is in trouble: leave the address alone for a while.
    ///
    /// - Parameter retryAfter: Nanoseconds that the server asked for, where it did.
    mutating func failed(
        _ index: Int, now: UInt64, retryAfter: UInt64?, lasting: String?,
        random: inout SplitMix64
    ) {
        // Several connections that fail together are one failure.
        guard retryAfter != nil || entries[index].notBefore <= now else {
            entries[index].lastingFailure = lasting ?? entries[index].lastingFailure
            return
        }
        let exponent = min(entries[index].failures, 6)
        entries[index].failures += 1
        entries[index].lastingFailure = lasting
        let backoff = min(Self.backoffMinimum << UInt64(exponent), Self.backoffMaximum)
        // Jitter between three quarters and the whole, so that senders don't march in step.
        let jittered = backoff - UInt64(random.next() % (backoff / 4))
        entries[index].notBefore = now + max(jittered, retryAfter ?? 0)
    }

    /// What to tell where no address will ever do: each was refused for a reason that stays.
    var lastingFailure: String? {
        guard !entries.isEmpty else { return nil }
        var message: String?
        for entry in entries where entry.notBefore != .max {
            guard let failure = entry.lastingFailure else { return nil }
            message = failure
        }
        return message
    }

    /// True where no address was ever ready and each was tried so often in vain.
    func areAllUnreachable(after tries: Int) -> Bool {
        !entries.isEmpty && entries.allSatisfy { !$0.wasReady && $0.failures >= tries }
    }
}
