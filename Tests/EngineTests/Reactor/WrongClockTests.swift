import BroadsideHygiene
import BroadsidePolicy
import BroadsideRows
import BroadsideSupport
import Testing

@testable import BroadsideEngine

/// Servers whose clock is wrong: they call a provider token expired that is not.
@Suite(.timeLimit(.minutes(60)))
struct WrongClockTests {
    /// Where a provider token comes from.
    enum Source {
        case key
        case file
        case command
    }

    /// A run whose token comes from a source.
    private func scripted(
        _ source: Source, rows: Int, connections: Int, tokenAge: UInt64,
        configure: (inout ReactorSettings) -> Void = { _ in }
    ) throws -> ScriptedRun {
        let run = try ScriptedRun(
            rows: rows, connections: connections, tokenAge: tokenAge, configure: configure)
        if source != .key { run.coordinator.replaceSigner(nil) }
        run.coordinator.awaitTokensFromElsewhere(source == .command)
        return run
    }

    @Test(arguments: [(.key, 0), (.file, 1800), (.command, 1800)] as [(Source, UInt64)])
    func `One server that calls a valid token expired is avoided`(source: Source, age: UInt64)
        throws
    {
        let run = try scripted(source, rows: 400, connections: 2, tokenAge: age) {
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

    @Test(
        arguments: [(.key, 0), (.file, 0), (.command, 0), (.file, 1800)] as [(Source, UInt64)])
    func `Three different connections in a row that call the token expired end the run`(
        source: Source, age: UInt64
    ) throws {
        let run = try scripted(source, rows: 400, connections: 1, tokenAge: age)
        run.reply = { _ in .status(403, "ExpiredProviderToken") }
        run.run()
        #expect(run.coordinator.stopCause == .expiredToken(isSupplied: source != .key))
        #expect(run.links.count == 3 && run.requests.count == 3 && run.renewals.isEmpty)
        #expect(try run.rows().allSatisfy { $0.state == .remaining })
    }

    @Test(arguments: [1800, 3600] as [UInt64])
    func `A command replaces a token that is an hour old or that three connections call expired`(
        age: UInt64
    ) throws {
        let run = try scripted(.command, rows: 40, connections: 1, tokenAge: age)
        let fresh = "bearer fresh"
        run.reply = { request in
            request.authorization == fresh ? .status(200) : .status(403, "ExpiredProviderToken")
        }
        run.run(for: 30 * second)
        #expect(run.coordinator.stopCause == nil && run.coordinator.isTokenMissing)
        #expect(run.requests.count == (age < 3600 ? 3 : 1))
        let usedFrom = run.coordinator.offer(
            authorization: Array(fresh.utf8), issuedAt: run.now.wallMilliseconds / 1000,
            keyID: "AKEY000001", run.now)
        #expect(usedFrom == nil)
        run.run()
        #expect(try run.rows().allSatisfy { $0.state == .accepted && $0.attempts == 1 })
    }

    @Test func `A run that gives up while it waits for another token names the expired one`()
        throws
    {
        let run = try scripted(.command, rows: 40, connections: 1, tokenAge: 3600) {
            $0.giveUpAfter = 8 * second
        }
        run.reply = { _ in .status(403, "ExpiredProviderToken") }
        run.run()
        guard case .noResponse(seconds: 8, last: let last?)? = run.coordinator.stopCause else {
            Issue.record("\(String(describing: run.coordinator.stopCause))")
            return
        }
        #expect(last.message.contains("the provider token as expired"), "\(last)")
        #expect(try run.rows().allSatisfy { $0.state == .remaining })
    }

    @Test func `A file's token that is an hour old ends the run at the first response`() throws {
        let run = try scripted(.file, rows: 40, connections: 1, tokenAge: 3600)
        run.reply = { _ in .status(403, "ExpiredProviderToken") }
        run.run()
        #expect(run.coordinator.stopCause == .expiredToken(isSupplied: true))
        #expect(run.requests.count == 1)
    }

    @Test func `Reports about an earlier token do not count for a new one`() throws {
        let run = try scripted(.file, rows: 40, connections: 1, tokenAge: 1800)
        run.reply = { request in
            if run.links.count == 2 {
                _ = run.coordinator.offer(
                    authorization: Array("bearer fresh".utf8),
                    issuedAt: run.now.wallMilliseconds / 1000, keyID: "AKEY000001", run.now)
            }
            return run.links.count > 4 ? .status(200) : .status(403, "ExpiredProviderToken")
        }
        run.run()
        #expect(run.coordinator.stopCause == nil)
        #expect(try run.rows().allSatisfy { $0.state == .accepted })
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
