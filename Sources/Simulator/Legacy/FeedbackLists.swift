internal import BroadsideLegacyGateway
internal import Synchronization

/// What the gateway learned of devices without the app, a list a topic, cleared by reading it.
final class FeedbackLists: Sendable {
    /// Tokens in all lists together; beyond, new ones are not kept until a list is read.
    static let limit = 1_000_000

    private let limit: Int

    private struct State {
        var lists: [[UInt8]: [[UInt8]: UInt32]] = [:]
        var count = 0
    }

    private let state = Mutex(State())

    /// - Parameter limit: The most tokens in all lists together.
    init(limit: Int = FeedbackLists.limit) { self.limit = limit }

    /// The app is gone from the device since then: the first time that it was seen stays.
    func add(token: [UInt8], topic: [UInt8], unixSeconds: UInt32) {
        state.withLock { state in
            guard state.count < limit, state.lists[topic]?[token] == nil else { return }
            state.lists[topic, default: [:]][token] = unixSeconds
            state.count += 1
        }
    }

    /// The lists of these topics, by time; they are empty afterwards.
    func take(topics: [[UInt8]]) -> [FeedbackTuple] {
        state.withLock { state in
            var tuples: [FeedbackTuple] = []
            for topic in topics {
                for (token, seconds) in state.lists.removeValue(forKey: topic) ?? [:] {
                    tuples.append(FeedbackTuple(unixSeconds: seconds, token: token))
                }
            }
            state.count -= tuples.count
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
