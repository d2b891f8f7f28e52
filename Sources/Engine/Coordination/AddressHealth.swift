internal import BroadsidePolicy
import BroadsideRing
import BroadsideSupport
internal import Synchronization

/// How the endpoint's addresses fare, as all reactors of a run know it together: a server in trouble is
/// left alone by all of them, and found out about by one request on one connection.
///
///     good --failed--> paused, 1 to 60 s --time--> on trial by one connection --response--> good
///                        ^                                  |
///                        '------- failed, or 5xx -----------'
final class AddressHealth: Sendable {
    /// A connection of the run.
    struct Owner: Equatable {
        var reactor: Int
        var slot: Int
    }

    /// What is known of an address that has failed since it last responded.
    struct Entry {
        /// Connections in a row that ended without a response, or responses that spoke of trouble.
        var failures = 0
        /// No attempt, and no request on a new connection, before; monotonic nanoseconds.
        var notBefore: UInt64 = 0
        /// Its server responded that it is in trouble: connections that stand already, and have no
        /// response yet, wait as well.
        var isOutage = false
        /// The one connection that finds out whether it is good again.
        var trial: Owner?
        /// What went wrong last, if trying again cannot help.
        var lasting: ConnectionTrouble?
    }

    /// Whether a connection may use an address now.
    enum Permission: Equatable {
        /// Nothing is wrong with it.
        case free
        /// The connection is the one that tries it: one request at a time.
        case trial
        /// It is left alone until then, or another connection is trying it (nil).
        case none(until: UInt64?)
    }

    private let entries = Mutex<[SocketAddress: Entry]>([:])
    /// How many entries there are: mostly none.
    private let count = Atomic<Int>(0)

    static let backoffMinimum: UInt64 = second
    static let backoffMaximum: UInt64 = 60 * second
    /// Addresses whose trouble is remembered: beyond, the one goes first whose pause is over first.
    static let entriesLimit = 1024

    /// True if some address is in trouble.
    var hasTrouble: Bool { count.load(ordering: .relaxed) > 0 }

    /// What is known of an address; what a new one has if nothing is wrong with it.
    func entry(_ address: SocketAddress) -> Entry {
        guard hasTrouble else { return Entry() }
        return entries.withLock { $0[address] ?? Entry() }
    }

    /// Addresses that a connection tries again now, and which one.
    var trials: [(address: SocketAddress, owner: Owner)] {
        guard hasTrouble else { return [] }
        return entries.withLock { entries in
            entries.compactMap { address, entry in entry.trial.map { (address, $0) } }
        }
    }

    private func change(_ body: (inout [SocketAddress: Entry]) -> Void) {
        entries.withLock { entries in
            body(&entries)
            assert(entries.count <= Self.entriesLimit, "the oldest addresses are forgotten")
            count.store(entries.count, ordering: .relaxed)
        }
    }

    /// Asks for leave to use an address; an address on trial is its owner's until it is released.
    func requestPermission(_ address: SocketAddress, _ owner: Owner, now: UInt64) -> Permission {
        guard hasTrouble else { return .free }
        var permission = Permission.free
        change { entries in
            guard let entry = entries[address], entry.failures > 0 else { return }
            if entry.notBefore > now {
                permission = .none(until: entry.notBefore)
            } else if entry.trial == nil || entry.trial == owner {
                entries[address]?.trial = owner
                permission = .trial
            } else {
                permission = .none(until: nil)
            }
        }
        return permission
    }

    /// How a connection that stands, and has no response yet, may use its address. Only an outage makes it
    /// wait: that others to the same address failed meanwhile says nothing of this one.
    func permission(_ address: SocketAddress, _ owner: Owner, now: UInt64) -> Permission {
        let entry = entry(address)
        guard entry.isOutage else { return entry.trial == owner ? .trial : .free }
        return requestPermission(address, owner, now: now)
    }

    /// A new connection got a response: the next trouble's pause is the shortest again. One that
    /// began meanwhile stays, and behind it others may try the address: this connection needs no leave any more.
    func succeeded(_ address: SocketAddress, _ owner: Owner, now: UInt64) {
        guard hasTrouble else { return }
        change { entries in
            guard let entry = entries[address] else { return }
            if entry.notBefore <= now {
                entries[address] = nil
            } else if entry.trial == owner {
                entries[address]?.trial = nil
            }
        }
    }

    /// A connection sends no more requests, or has none to send: if it tried an address, another may.
    func release(_ owner: Owner) {
        guard hasTrouble else { return }
        change { entries in
            for (address, entry) in entries where entry.trial == owner {
                entries[address]?.trial = nil
            }
        }
    }

    /// A connection stands ready.
    func ready(_ address: SocketAddress) {
        guard hasTrouble else { return }
        change { $0[address]?.lasting = nil }
    }

    /// A connection failed, or its server is in trouble: the address is left alone for a while.
    ///
    /// - Parameters:
    ///   - retryAfter: Nanoseconds that the server asked for, if it did: these count, and not what has
    ///     doubled so far.
    ///   - isOutage: The server said so itself, in a response.
    ///   - draw: A random number for the jitter.
    func failed(
        _ address: SocketAddress, now: UInt64, retryAfter: UInt64?, lasting: ConnectionTrouble?,
        isOutage: Bool, draw: UInt64
    ) {
        change { entries in
            var entry = entries[address] ?? Entry()
            entry.isOutage = entry.isOutage || isOutage
            // Several connections that fail together are one failure.
            if entry.notBefore > now {
                entry.lasting = lasting ?? entry.lasting
                if let retryAfter { entry.notBefore = max(entry.notBefore, now + retryAfter) }
                entries[address] = entry
                return
            }
            let exponent = min(entry.failures, 6)
            entry.failures += 1
            entry.lasting = lasting
            let doubled = min(Self.backoffMinimum << UInt64(exponent), Self.backoffMaximum)
            let backoff = retryAfter.map { max($0, Self.backoffMinimum) } ?? doubled
            // Jitter of up to a quarter, so that senders don't march in step: before the time is up,
            // but not where the server named it.
            let jitter = draw % (backoff / 4)
            entry.notBefore = now + (retryAfter == nil ? backoff - jitter : backoff + jitter)
            if entries[address] == nil, entries.count >= Self.entriesLimit,
                let oldest = entries.min(by: { $0.value.notBefore < $1.value.notBefore })
            {
                entries[oldest.key] = nil
            }
            assert(entry.notBefore > now, "a failed address is left alone for a while")
            entries[address] = entry
        }
    }
}
