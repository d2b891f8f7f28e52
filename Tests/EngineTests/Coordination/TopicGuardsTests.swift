import BroadsideAPNs
import BroadsidePolicy
import Testing

@testable import BroadsideEngine
@testable import BroadsidePayloads

/// Each topic of a run has guards of its own, which stop it once and for the first cause.
@Suite struct TopicGuardsTests {
    private static let disallowed = StopCause.Refusal(
        status: 400, reason: .topicDisallowed, isCredential: false)
    private static let bad = StopCause.Refusal(
        status: 400, reason: .badDeviceToken, isCredential: false)

    /// Guards for topics with these names.
    private func guards(
        _ names: [String], abortAfter: Int, maxBadTokens: Double = 100
    ) -> TopicGuards {
        let topics = RowTopics(pushType: .alert)
        for name in names { _ = topics.find(Array(name.utf8)) }
        return TopicGuards(topics) {
            RefusalGuard(abortAfter: abortAfter, maximumBadTokensPercent: maxBadTokens)
        }
    }

    @Test func `A stopped topic keeps its first cause, and the others continue`() {
        var guards = guards(["com.b", "com.a"], abortAfter: 2)
        guards.note(accepted: 3, of: 0)
        guards.note(.refusesRequest, Self.disallowed, of: 1)
        #expect(guards.stopped.isEmpty)
        guards.note(.refusesRequest, Self.disallowed, of: 1)
        #expect(guards.stopped.contains(1) && !guards.stopped.contains(0))
        // Responses to requests that were in flight when it stopped.
        guards.note(.badDeviceToken, Self.bad, of: 1)
        guards.note(accepted: 1, of: 1)
        let reports = guards.reports
        #expect(reports.map(\.name) == ["com.a", "com.b"])
        #expect(reports[0].stop == .init(cause: .refusedInARow, refusal: Self.disallowed))
        #expect(reports[0].accepted == 1 && reports[0].refused == 3)
        #expect(reports[1].stop == nil && reports[1].accepted == 3 && reports[1].refused == 0)
    }

    @Test func `Each row with TopicDisallowed counts for its topic, also if no guard stops it`() {
        let refusal = StopCause.Refusal(status: 400, reason: .topicDisallowed, isCredential: true)
        let invalid = StopCause.Refusal(
            status: 403, reason: .invalidProviderToken, isCredential: true)
        var guards = guards(["com.a", "com.b", "com.c"], abortAfter: 4)
        for _ in 0..<3 { guards.note(.refusesCredential, refusal, of: 0) }
        for _ in 0..<4 { guards.note(.refusesCredential, refusal, of: 1) }
        // Shows nothing about the topic.
        guards.note(.refusesCredential, invalid, of: 2)
        let reports = guards.reports
        #expect(reports[0].disallowed == .init(rows: 3, refusal: refusal))
        #expect(reports[0].stop == nil)
        #expect(reports[1].disallowed == .init(rows: 4, refusal: refusal))
        #expect(reports[1].stop != nil)
        #expect(reports[2].disallowed == nil && reports[2].refused == 1)
    }

    @Test func `Refusals of one topic do not add up with those of another`() {
        var guards = guards(["com.a", "com.b"], abortAfter: 3)
        for _ in 0..<2 {
            for topic in UInt8(0)...1 { guards.note(.refusesRequest, Self.disallowed, of: topic) }
        }
        #expect(guards.stopped.isEmpty)
        #expect(guards.counts.responses == 4 && guards.counts.consecutiveRefusals == 2)
    }

    @Test func `An accepted row that completes the window of bad tokens stops its topic`() {
        var guards = guards(["com.a"], abortAfter: 0, maxBadTokens: 1)
        for _ in 0..<101 { guards.note(.badDeviceToken, Self.bad, of: 0) }
        guards.note(accepted: 9_898, of: 0)
        #expect(guards.stopped.isEmpty)
        guards.note(accepted: 1, of: 0)
        #expect(guards.stopped.contains(0))
        #expect(guards.reports[0].stop?.cause == .tooManyBadTokens)
    }
}
