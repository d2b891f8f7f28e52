import BroadsideHygiene
import BroadsidePolicy
import BroadsideRows
import Testing

@testable import BroadsideEngine

/// Servers whose clock is wrong: they call the provider token of this window expired.
@Suite(.timeLimit(.minutes(60)))
struct WrongClockTests {
    @Test func `One server that calls a token of this window expired is avoided`() throws {
        let run = try ScriptedRun(rows: 400, connections: 2, tokenAge: 0) {
            $0.milliRatePerConnection = 2000
        }
        run.addressCount = 2
        run.reply = { request in
            run.links[request.connection].address == 0
                ? .status(403, "ExpiredProviderToken") : run.acceptTen(request)
        }
        run.run()
        #expect(run.coordinator.stopCause == nil && run.renewals.isEmpty)
        #expect(try run.rows().allSatisfy { $0.state == .accepted && $0.attempts == 1 })
        let refused = run.requests.filter { run.links[$0.connection].address == 0 }
        #expect((4...12).contains(refused.count), "each pause costs one request: \(refused.count)")
    }

    @Test(arguments: [true, false])
    func `Three different connections in a row that call the token expired end the run`(
        isSupplied: Bool
    ) throws {
        let run = try ScriptedRun(rows: 400, connections: 1, tokenAge: 0)
        if isSupplied { run.coordinator.replaceSigner(nil) }
        run.reply = { _ in .status(403, "ExpiredProviderToken") }
        run.run()
        #expect(run.coordinator.stopCause == .expiredToken(isSupplied: isSupplied))
        #expect(run.links.count == 3 && run.requests.count == 3 && run.renewals.isEmpty)
        #expect(try run.rows().allSatisfy { $0.state == .remaining })
    }
}

extension ScriptedRun {
    /// Accepts ten rows on each connection, so that addresses are chosen again and again.
    func acceptTen(_ request: ScriptedServer.Request) -> Reply {
        if request.stream == 19 {
            say(ScriptedServer.goAway(lastStream: 19, code: 0, reason: nil), on: request.connection)
        }
        return .status(200)
    }
}
