internal import Synchronization

/// Provider tokens that a test has made expire early.
///
/// Shared by all threads of an endpoint.
final class ExpiredTokens: Sendable {
    /// Maximum number of provider tokens in each of two lists: the used tokens, and the expired
    /// tokens. If a list is full, a new token replaces the oldest one.
    static let limit = 64

    private struct State {
        /// The hashes of accepted tokens.
        var used: [UInt64] = []
        /// The hashes of expired tokens.
        var expired: [UInt64] = []
    }

    private let state = Mutex(State())
    private let hasExpired = Atomic<Bool>(false)

    /// Records an accepted token.
    func note(_ fingerprint: UInt64) {
        state.withLock { Self.add(fingerprint, to: &$0.used) }
    }

    private static func add(_ fingerprint: UInt64, to list: inout [UInt64]) {
        guard !list.contains(fingerprint) else { return }
        if list.count == limit { list.removeFirst() }
        list.append(fingerprint)
        assert(list.count <= limit, "the oldest token is replaced")
    }

    /// Expires all tokens accepted so far; returns their number.
    func expireUsed() -> Int {
        state.withLock { state in
            let used = state.used.filter { !state.expired.contains($0) }
            for fingerprint in used { Self.add(fingerprint, to: &state.expired) }
            hasExpired.store(!state.expired.isEmpty, ordering: .releasing)
            return used.count
        }
    }

    /// Returns whether a test has made the token with this hash expire.
    func isExpired(_ fingerprint: UInt64) -> Bool {
        guard hasExpired.load(ordering: .acquiring) else { return false }
        return state.withLock { $0.expired.contains(fingerprint) }
    }

    /// Makes all tokens valid again.
    func removeAll() {
        state.withLock { state in
            state.expired = []
            hasExpired.store(false, ordering: .releasing)
        }
    }
}
