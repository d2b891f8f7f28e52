internal import BroadsideLegacyGateway
internal import Synchronization

/// The lists of the feedback service: devices that no longer have the app, one list per topic.
/// Reading a list clears it.
final class FeedbackLists: Sendable {
    /// Maximum number of tokens in all lists together. Beyond it, tokens are discarded until a list
    /// is read.
    static let limit = 1_000_000

    private let limit: Int

    private struct State {
        var lists: [[UInt8]: [[UInt8]: UInt32]] = [:]
        var count = 0
    }

    private let state = Mutex(State())

    /// - Parameter limit: Maximum number of tokens in all lists together.
    init(limit: Int = FeedbackLists.limit) { self.limit = limit }

    /// Records that a device no longer has the app. If the device is already recorded, the earlier
    /// time is kept.
    func add(token: [UInt8], topic: [UInt8], unixSeconds: UInt32) {
        state.withLock { state in
            guard state.count < limit, state.lists[topic]?[token] == nil else { return }
            state.lists[topic, default: [:]][token] = unixSeconds
            state.count += 1
        }
    }

    /// Returns and clears the lists of these topics, ordered by time.
    func take(topics: [[UInt8]]) -> [FeedbackTuple] {
        state.withLock { state in
            var tuples: [FeedbackTuple] = []
            for topic in topics {
                for (token, seconds) in state.lists.removeValue(forKey: topic) ?? [:] {
                    tuples.append(FeedbackTuple(unixSeconds: seconds, token: token))
                }
            }
            state.count -= tuples.count
            assert(
                state.count == state.lists.values.reduce(0) { $0 + $1.count },
                "each token is counted once")
            return tuples.sorted {
                ($0.unixSeconds, $0.token.map(Int.init))
                    < ($1.unixSeconds, $1.token.map(Int.init))
            }
        }
    }
}

private func < (left: (UInt32, [Int]), right: (UInt32, [Int])) -> Bool {
    left.0 != right.0 ? left.0 < right.0 : left.1.lexicographicallyPrecedes(right.1)
}
