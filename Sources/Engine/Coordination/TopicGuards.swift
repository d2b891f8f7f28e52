internal import BroadsideAPNs
import BroadsidePayloads
package import BroadsidePolicy

/// The results of a run for one topic.
package struct TopicReport: Sendable, Equatable {
    /// The topic.
    package var name: String
    /// Number of acceptances in this process, and number of all other responses.
    package var accepted: UInt64
    package var refused: UInt64
    /// Reason why no further requests are sent for the topic; nil if the topic is not stopped.
    package var stop: Stop?
    /// Rows that are still remaining because APNs refused their topic; nil if there are none.
    package var disallowed: Disallowed?

    /// Number of rows with TopicDisallowed, and the last of these responses.
    package struct Disallowed: Sendable, Equatable {
        package var rows: UInt64
        package var refusal: StopCause.Refusal

        package init(rows: UInt64, refusal: StopCause.Refusal) {
            self.rows = rows
            self.refusal = refusal
        }
    }

    /// The guard that stopped the topic, and the response that caused the stop.
    package struct Stop: Sendable, Equatable {
        package var cause: RefusalGuard.Cause
        package var refusal: StopCause.Refusal
    }

    package init(
        name: String, accepted: UInt64, refused: UInt64, stop: Stop? = nil,
        disallowed: Disallowed? = nil
    ) {
        assert(disallowed.map { $0.rows <= refused } ?? true, "a row is left by a refusal")
        self.name = name
        self.accepted = accepted
        self.refused = refused
        self.stop = stop
        self.disallowed = disallowed
    }
}

/// The guards of a run whose rows name their topics: each topic has a separate guard, which stops
/// only that topic.
///
///     topic continues --its guard strikes--> stopped: its rows remain, the run's exit code is 4
struct TopicGuards: Sendable {
    /// The counts and guard of one topic.
    // SAFETY: reached only through the coordinator's state, behind its lock.
    private final class Topic: @unchecked Sendable {
        var refusals: RefusalGuard
        var accepted: UInt64 = 0
        var refused: UInt64 = 0
        var stop: TopicReport.Stop?
        var disallowed: TopicReport.Disallowed?

        init(_ refusals: consuming RefusalGuard) { self.refusals = refusals }
    }

    private let names: RowTopics
    private let makeGuard: @Sendable () -> RefusalGuard
    /// Topics, indexed by number; at most `RowTopics.limit`.
    private var topics: [Topic] = []
    /// Topics that were stopped: no further requests are sent for them.
    private(set) var stopped = TopicSet()

    init(_ names: RowTopics, makeGuard: @escaping @Sendable () -> RefusalGuard) {
        self.names = names
        self.makeGuard = makeGuard
    }

    private mutating func topic(_ number: UInt8) -> Topic {
        while topics.count <= Int(number) { topics.append(Topic(makeGuard())) }
        assert(topics.count <= RowTopics.limit, "topics are numbered below the limit")
        return topics[Int(number)]
    }

    /// Counts accepted rows of a topic.
    mutating func note(accepted count: Int, of number: UInt8) {
        let topic = topic(number)
        topic.accepted += UInt64(count)
        var cause: RefusalGuard.Cause?
        for _ in 0..<count { cause = topic.refusals.note(.accepted) }
        // An accepted row may be the one that completes the guard's window.
        guard let cause else { return }
        stop(
            number, topic, cause, StopCause.Refusal(status: 200, reason: nil, isCredential: false))
    }

    /// Counts a response other than 200 for a topic.
    mutating func note(
        _ signal: ResponseClass.CampaignSignal, _ refusal: StopCause.Refusal, of number: UInt8
    ) {
        let topic = topic(number)
        topic.refused += 1
        if signal == .refusesCredential, refusal.reason == .topicDisallowed {
            let rows = topic.disallowed?.rows ?? 0
            topic.disallowed = TopicReport.Disallowed(rows: rows + 1, refusal: refusal)
        }
        if let cause = topic.refusals.note(signal) { stop(number, topic, cause, refusal) }
    }

    private mutating func stop(
        _ number: UInt8, _ topic: Topic, _ cause: RefusalGuard.Cause, _ refusal: StopCause.Refusal
    ) {
        guard topic.stop == nil else { return }
        topic.stop = TopicReport.Stop(cause: cause, refusal: refusal)
        stopped.insert(number)
    }

    /// Begins another pass, which sends rows that remain because of their topic again.
    mutating func beginPass() {
        for topic in topics { topic.disallowed = nil }
    }

    /// The results per topic, sorted by name.
    var reports: [TopicReport] {
        let known = names.names
        assert(topics.count <= known.count, "each topic has its name")
        return zip(known, topics).map { name, topic in
            TopicReport(
                name: name, accepted: topic.accepted, refused: topic.refused, stop: topic.stop,
                disallowed: topic.disallowed)
        }.sorted { $0.name < $1.name }
    }

    /// The counts of all topics together.
    var counts: RefusalCounts { .sum(topics.map { $0.refusals.counts }) }
}
