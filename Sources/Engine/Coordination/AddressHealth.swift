internal import BroadsidePolicy
import BroadsideRing
import BroadsideSupport
internal import Synchronization

/// Health of the endpoint's addresses, shared by all reactors of a run. All reactors avoid a server
/// in trouble. One request on one connection then tests whether the server has recovered. If the
/// test fails with a row that had a server error before, the row may be the cause, so the next test
/// has twice as many requests.
///
///     good --failed--> paused --time--> on trial by one connection --response--> good
///                        ^                      |
///                        '--- failed, or 5xx ---'
///
/// A pause takes 1 to 60 s, or as long as Retry-After says.
final class AddressHealth: Sendable {
    /// A connection that may test an address, identified by its reactor and its slot.
    struct Owner: Equatable {
        var reactor: Int
        var slot: Int
    }

    /// State of an address that has failed since its last response.
    struct Entry {
        /// Number of consecutive failures: connections that ended without a response, and responses
        /// that reported trouble.
        var failures = 0
        /// Earliest time of the next connection attempt, or of the first request on a new
        /// connection, in monotonic nanoseconds.
        var notBefore: UInt64 = 0
        /// Whether the server itself reported the trouble, in a response. If so, an open connection
        /// that has had no response yet also waits before it sends requests.
        var isOutage = false
        /// The connection that tests the address; nil if none does.
        var trial: Owner?
        /// Limit on requests of the next test.
        var trialLimit = 1
        /// The reactor whose row failed the last test although the row may be the cause; -1: none.
        /// Reactors with a higher number may run the next test first, because they have other rows.
        var testedBy = -1

        /// Earliest time at which a reactor may use the address.
        func notBefore(for reactor: Int) -> UInt64 {
            reactor <= testedBy ? notBefore + AddressHealth.precedence : notBefore
        }
        /// The last problem, if a retry cannot fix it; nil otherwise.
        var lasting: ConnectionTrouble?
    }

    /// Whether a connection may use an address now.
    enum Permission: Equatable {
        /// The address is healthy.
        case free
        /// The connection may test the address, with at most `trialLimit` requests.
        case trial
        /// The address is paused until this time; nil if another connection is testing it.
        case none(until: UInt64?)
    }

    private let entries = Mutex<[SocketAddress: Entry]>([:])
    /// Number of entries, usually 0; read without taking the lock.
    private let count = Atomic<Int>(0)

    static let backoffMinimum: UInt64 = second
    static let backoffMaximum: UInt64 = 60 * second
    /// Number of the longest pauses that fit into the time after which a run gives up.
    static let attemptsAtLeast: UInt64 = 6
    /// Number of failures from which on repeated trouble with the same row does not lengthen the
    /// pause.
    static let repeatedLimit = 4
    /// Time for which other reactors may begin a test first.
    static let precedence: UInt64 = second / 10
    /// Limit on requests of a test.
    static let trialLimitMaximum = 16
    /// Limit on entries. Beyond it, the entry whose pause ends first is dropped.
    static let entriesLimit = 1024

    /// Whether any address is in trouble.
    var hasTrouble: Bool { count.load(ordering: .relaxed) > 0 }

    /// State of an address; a default entry if it is healthy.
    func entry(_ address: SocketAddress) -> Entry {
        guard hasTrouble else { return Entry() }
        return entries.withLock { $0[address] ?? Entry() }
    }

    /// The addresses under test, each with the connection that tests it.
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

    /// Requests permission for a new connection or for a request. While one connection tests the
    /// address, no other connection gets permission.
    func requestPermission(_ address: SocketAddress, _ owner: Owner, now: UInt64) -> Permission {
        guard hasTrouble else { return .free }
        var permission = Permission.free
        change { entries in
            guard let entry = entries[address], entry.failures > 0 else { return }
            let notBefore = entry.notBefore(for: owner.reactor)
            if notBefore > now {
                permission = .none(until: notBefore)
            } else if entry.trial == nil || entry.trial == owner {
                entries[address]?.trial = owner
                permission = .trial
            } else {
                permission = .none(until: nil)
            }
        }
        return permission
    }

    /// Whether an open connection without a response may send to its address. Only an outage blocks
    /// it; failures of other connections to the address do not.
    func permission(_ address: SocketAddress, _ owner: Owner, now: UInt64) -> Permission {
        let entry = entry(address)
        guard entry.isOutage else { return entry.trial == owner ? .trial : .free }
        return requestPermission(address, owner, now: now)
    }

    /// Marks the address as healthy after the first response on a new connection. If the address
    /// was paused in the meantime, the pause continues, but the connection gives up its trial.
    /// Other connections may try the address after the pause.
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

    /// Ends the trials that a connection owns, because the connection has no requests to send now,
    /// or will send none at all.
    func release(_ owner: Owner) {
        guard hasTrouble else { return }
        change { entries in
            for (address, entry) in entries where entry.trial == owner {
                entries[address]?.trial = nil
            }
        }
    }

    /// Clears the lasting problem, because a connection to the address became ready.
    func ready(_ address: SocketAddress) {
        guard hasTrouble else { return }
        change { $0[address]?.lasting = nil }
    }

    /// Pauses an address after a failed connection or a report of trouble.
    ///
    /// - Parameters:
    ///   - retryAfter: Delay that the server asked for, nanoseconds; nil: none. It replaces the
    ///     doubled backoff.
    ///   - isOutage: Whether the server reported the trouble itself, in a response.
    ///   - isRepeated: Whether an earlier response to the same row also reported trouble. If so,
    ///     the row may be the cause: further failures do not lengthen the pause beyond 8 s, and the
    ///     next test has more requests.
    ///   - isUnreached: Whether no connection could be opened. If so, the pause is at most a sixth
    ///     of `giveUpAfter`, so that the run does not give up on a server that is back.
    ///   - reactor: The reactor that reports the failure; -1: any.
    ///   - giveUpAfter: Nanoseconds without a response after which the run stops.
    ///   - draw: Random number for the jitter.
    func failed(
        _ address: SocketAddress, now: UInt64, retryAfter: UInt64?, lasting: ConnectionTrouble?,
        isOutage: Bool, isRepeated: Bool = false, isUnreached: Bool = false, reactor: Int = -1,
        giveUpAfter: UInt64 = .max, draw: UInt64
    ) {
        change { entries in
            var entry = entries[address] ?? Entry()
            entry.isOutage = entry.isOutage || isOutage
            // Several connections that fail during one pause count as one failure.
            if entry.notBefore > now {
                entry.lasting = lasting ?? entry.lasting
                if let retryAfter { entry.notBefore = max(entry.notBefore, now + retryAfter) }
                entries[address] = entry
                return
            }
            if !isRepeated || entry.failures < Self.repeatedLimit { entry.failures += 1 }
            entry.trialLimit =
                isRepeated ? min(2 * entry.trialLimit, Self.trialLimitMaximum) : 1
            entry.testedBy = isRepeated ? reactor : -1
            let exponent = min(entry.failures - 1, 6)
            entry.lasting = lasting
            let longest =
                isUnreached
                ? min(
                    Self.backoffMaximum,
                    max(Self.backoffMinimum, giveUpAfter / Self.attemptsAtLeast))
                : Self.backoffMaximum
            let doubled = min(Self.backoffMinimum << UInt64(exponent), longest)
            let backoff = retryAfter.map { max($0, Self.backoffMinimum) } ?? doubled
            // Jitter, so that senders do not retry at the same moment. The retry comes up to a
            // quarter earlier than the backoff, but never earlier than the server asked, and not
            // after the run has given up.
            var range = backoff / 4
            if retryAfter != nil, backoff < giveUpAfter {
                range = max(1, min(range, (giveUpAfter - backoff) / 2))
            }
            let jitter = draw % range
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
