internal import BroadsideAPNs
internal import BroadsideSupport
internal import Synchronization

/// Responses that a test has chosen for device tokens. These responses replace the responses of
/// `TokenOutcome`.
///
/// Shared by all threads of an endpoint.
final class ChosenOutcomes: Sendable {
    /// Maximum number of tokens.
    static let limit = 100_000

    /// The response for a token.
    struct Outcome: Sendable {
        var response: Response
        /// Number of requests that will still get this response; nil for all requests.
        var remaining: UInt64?
    }

    private let outcomes = Mutex<[[UInt8]: Outcome]>([:])
    /// Number of tokens with an outcome, which can be read without the lock.
    private let published = Atomic<Int>(0)

    /// Sets the outcome of a token, given in lower-case digits. Returns false if too many tokens
    /// have an outcome.
    func set(_ token: [UInt8], _ outcome: Outcome) -> Bool {
        assert(outcome.remaining != 0, "an outcome is for a request")
        return outcomes.withLock { outcomes in
            guard outcomes.count < Self.limit || outcomes[token] != nil else { return false }
            outcomes[token] = outcome
            published.store(outcomes.count, ordering: .relaxed)
            return true
        }
    }

    /// Removes the outcome of a token; returns false if it has none.
    func remove(_ token: [UInt8]) -> Bool {
        outcomes.withLock { outcomes in
            let hadOne = outcomes.removeValue(forKey: token) != nil
            published.store(outcomes.count, ordering: .relaxed)
            return hadOne
        }
    }

    /// Removes all outcomes.
    func removeAll() {
        outcomes.withLock { outcomes in
            outcomes = [:]
            published.store(0, ordering: .relaxed)
        }
    }

    /// Number of tokens with an outcome.
    var count: Int { published.load(ordering: .relaxed) }

    /// Returns the response for a request to a token, and counts the request; nil if the token has
    /// no outcome.
    func take(_ digits: RawSpan) -> Response? {
        guard digits.byteCount > 0, count > 0 else { return nil }
        // Decimal digits already have this bit set.
        let token = Array(digits).map { $0 | 0x20 }
        return outcomes.withLock { outcomes in
            guard var outcome = outcomes[token] else { return nil }
            if let remaining = outcome.remaining {
                outcome.remaining = remaining - 1
                outcomes[token] = remaining > 1 ? outcome : nil
                published.store(outcomes.count, ordering: .relaxed)
            }
            return outcome.response
        }
    }
}
