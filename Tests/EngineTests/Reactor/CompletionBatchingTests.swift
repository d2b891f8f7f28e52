import Testing

@testable import BroadsideEngine

/// How long a turn waits for company.
@Suite(.timeLimit(.minutes(60)))
struct CompletionBatchingTests {
    private func patience(answersTake nanoseconds: UInt64, connections: Int) -> CompletionBatching {
        var patience = CompletionBatching()
        patience.readyConnections = connections
        for _ in 0..<100 {
            patience.recordResponse(nanoseconds: nanoseconds)
            patience.recordIteration()
        }
        return patience
    }

    @Test func `Many responses in flight are awaited together`() throws {
        let wait = try #require(
            patience(answersTake: 50_000_000, connections: 9).wait(inFlight: 9000))
        #expect(wait == CompletionBatching.Wait(completions: 8, nanoseconds: 1_000_000))
    }

    @Test func `Fast responses are awaited for half of their latency`() throws {
        let wait = try #require(
            patience(answersTake: 1_200_000, connections: 4).wait(inFlight: 400))
        #expect(wait.completions == 3)
        #expect((599_000...601_000).contains(wait.nanoseconds))
    }

    @Test func `With one or two connections, or few responses to expect, a turn does not wait`() {
        #expect(patience(answersTake: 1_200_000, connections: 1).wait(inFlight: 400) == nil)
        #expect(patience(answersTake: 1_200_000, connections: 2).wait(inFlight: 400) == nil)
        // Ten in flight that take 50 ms: a fifth of an answer in a millisecond.
        #expect(patience(answersTake: 50_000_000, connections: 9).wait(inFlight: 10) == nil)
        #expect(patience(answersTake: 50_000_000, connections: 9).wait(inFlight: 399) == nil)
        #expect(patience(answersTake: 50_000_000, connections: 9).wait(inFlight: 410) != nil)
        var fresh = CompletionBatching()
        fresh.readyConnections = 9
        #expect(fresh.wait(inFlight: 9000) == nil)
    }

    @Test func `A turn ends at 128 completions`() throws {
        let wait = try #require(
            patience(answersTake: 50_000_000, connections: 1000).wait(inFlight: 100_000))
        #expect(wait.completions == 128)
    }

    @Test func `The wait follows a path that becomes slower`() throws {
        var patience = patience(answersTake: 400_000, connections: 4)
        let before = try #require(patience.wait(inFlight: 400))
        for _ in 0..<100 {
            patience.recordResponse(nanoseconds: 40_000_000)
            patience.recordIteration()
            // A turn without an answer says nothing.
            patience.recordIteration()
        }
        let after = try #require(patience.wait(inFlight: 4000))
        #expect(before.nanoseconds < 201_000)
        #expect(after.nanoseconds == 1_000_000)
    }
}
