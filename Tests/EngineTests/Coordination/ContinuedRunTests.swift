import BroadsideAPNs
import BroadsideLists
import BroadsidePolicy
import BroadsideSupport
import Testing

@testable import BroadsideEngine
@testable import BroadsidePayloads

/// What a pass knows of the passes before it: guards, topics and the provider token are the run's.
@Suite struct ContinuedRunTests {
    private let now = Now(nanoseconds: 5 * second, wallMilliseconds: 1_800_000_000_000)

    private func coordinator(topics: RowTopics? = nil) -> RunCoordinator {
        RunCoordinator(
            authorization: nil, issuedAt: 0, milliRate: nil, abortAfter: 10,
            maxBadTokensPercent: 50, topics: topics, sign: nil)
    }

    /// A pass gets responses.
    private func take(
        _ effects: [ReactorEffects.Signal], on run: RunCoordinator
    ) -> RunDirectives {
        var channel = RunChannel(run, reactor: 0)
        for effect in effects { channel.append(effect) }
        channel.exchange(permits: 0, inFlight: 0, now)
        return channel.directives
    }

    private func bad(_ count: Int) -> [ReactorEffects.Signal] {
        Array(
            repeating: .response(.badDeviceToken, status: 400, reason: .badDeviceToken),
            count: count)
    }

    @Test func `Bad tokens of two passes stop a run if APNs has accepted none`() {
        let (first, second) = (coordinator(), coordinator())
        _ = take(bad(6), on: first)
        second.continueRun(of: first, now)
        _ = take(bad(3), on: second)
        #expect(!second.isStopping)
        _ = take(bad(1), on: second)
        guard case .onlyBadTokens = second.stopCause else {
            Issue.record("\(String(describing: second.stopCause))")
            return
        }
        #expect(second.refusalCounts.responses == 10)
    }

    @Test func `A run that reached APNs in an earlier pass knows it in all later passes`() {
        let (first, second, third) = (coordinator(), coordinator(), coordinator())
        var channel = RunChannel(first, reactor: 0)
        channel.markReady()
        channel.exchange(permits: 0, inFlight: 0, now)
        second.continueRun(of: first, now)
        third.continueRun(of: second, now)
        let told = take([], on: third)
        #expect(told.wasReached && !told.anyReady)
        #expect(!take([], on: coordinator()).wasReached)
    }

    @Test func `Bad tokens at the start of a pass do not stop a run that reached a device`() {
        let (first, second) = (coordinator(), coordinator())
        _ = take([.accepted(1)], on: first)
        second.continueRun(of: first, now)
        let told = take(bad(40), on: second)
        #expect(told.anyAccepted && second.anyAccepted && !second.isStopping)
    }

    @Test func `A stopped topic stays stopped, and a disallowed one is tried again`() throws {
        let topics = RowTopics(pushType: .alert)
        for name in ["com.bad", "com.foreign", "com.good"] {
            _ = topics.find(Array(name.utf8))
        }
        let (first, second) = (coordinator(topics: topics), coordinator(topics: topics))
        let refused = ReactorEffects.Signal.topicResponse(
            .wrongTopicToken, status: 400, reason: .deviceTokenNotForTopic, topic: 0)
        let disallowed = ReactorEffects.Signal.topicResponse(
            .refusesCredential, status: 400, reason: .topicDisallowed, topic: 1)
        _ = take(
            Array(repeating: refused, count: 10) + [disallowed, .topicAccepted(2, topic: 2)],
            on: first)
        second.continueRun(of: first, now)
        let told = take([.topicAccepted(3, topic: 2)], on: second)
        #expect(told.stoppedTopics.contains(0) && !told.stoppedTopics.contains(1))
        let reports = try #require(second.topicReports)
        #expect(reports.map(\.accepted) == [0, 0, 5] && reports.map(\.refused) == [10, 1, 0])
        #expect(reports[0].stop != nil && reports[1].disallowed == nil)
    }

    @Test func `The counts of a canary are those of its pass, in all later passes`() throws {
        let gate = CanaryGate(rows: 3, maximumRefusedPercent: 50)
        gate.handedOut(3)
        gate.exhausted(isListOver: false)
        _ = gate.note(done: 3, answered: 3, refused: 1, lost: 0)
        let first = RunCoordinator(
            authorization: nil, issuedAt: 0, milliRate: nil, abortAfter: 10,
            maxBadTokensPercent: 50, canary: gate, sign: nil)
        let (second, third) = (coordinator(), coordinator())
        second.continueRun(of: first, now)
        third.continueRun(of: second, now)
        let counts = try #require(third.canaryCounts)
        #expect(counts == (3, 1) && coordinator().canaryCounts == nil)
    }

    @Test(arguments: [(600, "earlier"), (1_300, "fresh")])
    func `A token that may not be renewed stays in use until it may`(
        seconds: UInt64, value: String
    ) {
        let start = now.wallMilliseconds / 1000
        func pass(_ value: String, issuedAt: UInt64) -> RunCoordinator {
            RunCoordinator(
                authorization: Array(value.utf8), issuedAt: issuedAt, milliRate: nil,
                abortAfter: 10, maxBadTokensPercent: 50, sign: { _ in nil })
        }
        let first = pass("earlier", issuedAt: start - 900)
        first.take(authorization: Array("refused".utf8), issuedAt: start, now)
        _ = take(
            [
                .updatesRefused(
                    usedVersion: first.authorizationVersion, giveUpAfter: 600 * second)
            ], on: first)
        #expect(first.authorization().value == Array("earlier".utf8))
        let next = pass("fresh", issuedAt: start)
        next.continueRun(
            of: first,
            Now(
                nanoseconds: now.nanoseconds + seconds * second,
                wallMilliseconds: now.wallMilliseconds + seconds * 1_000))
        #expect(next.authorization().value == Array(value.utf8))
    }
}
