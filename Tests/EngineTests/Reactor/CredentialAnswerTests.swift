import BroadsideHygiene
import BroadsidePolicy
import BroadsideRows
import BroadsideSupport
import Testing

@testable import BroadsideEngine

/// What the answers that speak of the credential do to a run: renewed once, frozen, retried once.
@Suite(.timeLimit(.minutes(60)))
struct CredentialAnswerTests {
    private static let start = ScriptedRun.start.wallMilliseconds / 1000

    @Test func `An expired token is renewed once for all connections, and no attempt counts`()
        throws
    {
        let run = try ScriptedRun(rows: 60, reactors: 3, connections: 2, tokenAge: 1800)
        run.reply = { request in
            request.authorization == "bearer \(Self.start - 1800)"
                ? .status(403, "ExpiredProviderToken") : .status(200)
        }
        run.run()
        #expect(run.renewals.count == 1)
        let rows = try run.rows()
        #expect(rows.count == 60)
        #expect(rows.allSatisfy { $0.state == .accepted && $0.attempts == 1 })
        // A connection that said so carries no other request.
        let expired = Set(
            run.requests.filter { $0.authorization?.hasSuffix("\(Self.start - 1800)") == true }
                .map(\.connection))
        #expect(expired.count >= 2)
        #expect(
            run.requests.allSatisfy {
                !expired.contains($0.connection)
                    || $0.authorization?.hasSuffix("\(Self.start - 1800)") == true
            })
    }

    @Test(arguments: [(0 as UInt64, 0), (1800, 1)])
    func `A token of this window that is called expired is not renewed`(
        age: UInt64, renewals: Int
    ) throws {
        let run = try ScriptedRun(rows: 5, tokenAge: age)
        run.reply = { request in
            request.authorization == "bearer \(Self.start - age)"
                ? .status(403, "ExpiredProviderToken") : .status(200)
        }
        run.run()
        #expect(run.renewals.count == renewals)
        if renewals == 0 {
            #expect(
                run.coordinator.stopCause
                    == .expiredToken(isSupplied: false))
            #expect(try run.rows().allSatisfy { $0.state == .remaining })
        } else {
            #expect(try run.rows().allSatisfy { $0.state == .accepted })
        }
    }

    @Test func `A token is renewed five minutes into the next window, while requests continue`()
        throws
    {
        let run = try ScriptedRun(rows: 340, tokenAge: 1800) {
            $0.milliRatePerConnection = 1000
        }
        run.run()
        try #require(run.renewals.count == 1)
        #expect(run.renewals[0] >= 300 * second && run.renewals[0] <= 300 * second + second / 10)
        let tokens = run.requests.map { $0.authorization ?? "" }
        let change = try #require(
            tokens.firstIndex { $0 != tokens[0] }, "no request has the new token")
        #expect(tokens[change...].allSatisfy { $0 == "bearer \(Self.start)" })
        #expect(run.links.count == 1)
    }

    @Test func `After TooManyProviderTokenUpdates a reactor uses the token before for 20 minutes`()
        throws
    {
        // Another one is due after 5 minutes; the server refuses it for 20 minutes.
        let run = try ScriptedRun(rows: 40, tokenAge: 1800) {
            $0.milliRatePerConnection = 100
            $0.giveUpAfter = 7200 * second
        }
        let old = "bearer \(Self.start - 1800)"
        run.reply = { request in
            if request.authorization != old, request.time < 1500 * second {
                return .status(429, "TooManyProviderTokenUpdates")
            }
            // Half an hour later a row asks once more.
            return run.requests(row: 9).count == 1 && ScriptedRun.row(request) == 9
                ? .status(429, "TooManyRequests", retryAfter: "1800") : .status(200)
        }
        run.run()
        let rows = try run.rows()
        #expect(rows.allSatisfy { $0.state == .accepted })
        // Sent twice, and counted once.
        let refused = run.requests.filter { $0.authorization != old && $0.time < 1500 * second }
        #expect(!refused.isEmpty)
        for request in refused {
            let row = ScriptedRun.row(request)
            #expect(run.requests(row: row).count >= 2)
            #expect(row == 9 || rows[row].attempts == 1)
        }
        #expect(run.renewals.filter { $0 < 1500 * second }.count == 1)
        #expect(run.renewals.count >= 2, "\(run.renewals)")
        // The row that was left goes out with a token that is good by then.
        let last = try #require(run.requests.last)
        #expect(ScriptedRun.row(last) == 9 && last.authorization != old)
        #expect(last.time >= 1800 * second)
    }

    @Test func `A token that is too old while none may be made stops sending until then`() throws {
        let run = try ScriptedRun(rows: 300, tokenAge: 1800) {
            $0.milliRatePerConnection = 100
            $0.giveUpAfter = 60 * second
        }
        let old = "bearer \(Self.start - 1800)"
        // 20 minutes without another one begin when the one before has 500 s left.
        let refused = (1000 * second)..<(1200 * second)
        run.reply = { request in
            request.authorization != old && refused.contains(request.time)
                ? .status(429, "TooManyProviderTokenUpdates") : .status(200)
        }
        run.run(for: 1490 * second)
        #expect(run.coordinator.tokenBlockedUntil(run.now) == nil)
        run.run(for: 100 * second)
        let held = try #require(run.coordinator.tokenBlockedUntil(run.now)) - Self.start
        #expect((2200...2220).contains(held), "\(held)")
        run.run(for: 7200 * second)
        #expect(run.coordinator.stopCause == nil && run.isFinished)
        #expect(run.coordinator.tokenBlockedUntil(run.now) == nil)
        #expect(try run.rows().allSatisfy { $0.state == .accepted })
        let pause = (1501 * second)..<(2200 * second)
        #expect(run.requests.allSatisfy { !pause.contains($0.time) })
        #expect(run.requests.contains { $0.time >= pause.upperBound })
    }

    @Test(arguments: [0, 200, 410, 429])
    func `TooManyProviderTokenUpdates for every request ends the run`(
        other: Int
    ) throws {
        let run = try ScriptedRun(rows: 10, tokenAge: 0) { $0.giveUpAfter = 90 * second }
        // An answer of another kind in between begins the time anew.
        var otherAt: UInt64 = 0
        run.reply = { request in
            guard other > 0, otherAt == 0, request.time >= 900 * second else {
                return .status(429, "TooManyProviderTokenUpdates")
            }
            otherAt = request.time
            return .status(other)
        }
        run.run(for: 7200 * second)
        guard let cause = run.coordinator.stopCause, cause.isGivingUp else {
            Issue.record("\(String(describing: run.coordinator.stopCause))")
            return
        }
        let message = run.lastLine(cause)
        #expect(message.contains("every response for 21 minutes was TooManyProviderTokenUpdates"))
        #expect(run.isFinished && (otherAt > 0) == (other > 0))
        let waited = run.time - otherAt
        #expect(waited > 1290 * second && waited < 1295 * second, "\(waited / second)")
        let rows = try run.rows()
        let settled = other == 200 || other == 410 ? 1 : 0
        #expect(rows.count == 10 && rows.count { $0.state == .remaining } == 10 - settled)
    }

    @Test func `An invalid token is retried once for a row`() throws {
        let run = try ScriptedRun(rows: 3, tokenAge: 0)
        run.reply = { request in
            switch (ScriptedRun.row(request), run.requests(row: ScriptedRun.row(request)).count) {
            case (0, 1), (1, _): .status(403, "InvalidProviderToken")
            default: .status(200)
            }
        }
        run.run()
        let rows = try run.rows()
        #expect(rows.map(\.state) == [.accepted, .remaining, .accepted])
        #expect(run.requests(row: 0).count == 2 && run.requests(row: 1).count == 2)
        #expect(run.heldBack == 1 && run.coordinator.stopCause == nil && run.renewals.isEmpty)
    }

    @Test func `A GOAWAY that refuses the certificate ends the run at once`() throws {
        let run = try ScriptedRun(rows: 3)
        run.reply = { request in
            run.say(
                ScriptedServer.goAway(lastStream: 0, code: 0, reason: "BadCertificateEnvironment"),
                on: request.connection)
            return .silence
        }
        run.run()
        guard let cause = run.coordinator.stopCause, cause.isAbort else {
            Issue.record("\(String(describing: run.coordinator.stopCause))")
            return
        }
        let message = run.lastLine(cause)
        #expect(message.contains("BadCertificateEnvironment"))
        #expect(run.links.count == 1)
        #expect(try run.rows().allSatisfy { $0.state == .remaining })
    }

    @Test(arguments: ["InvalidProviderToken", "MissingProviderToken", "TopicDisallowed"])
    func `A GOAWAY with another reason about the credential ends only its connection`(
        reason: String
    ) throws {
        let run = try ScriptedRun(rows: 3, tokenAge: 0)
        run.reply = { request in
            guard request.connection == 0 else { return .status(200) }
            run.say(ScriptedServer.goAway(lastStream: 0, code: 0, reason: reason), on: 0)
            return .silence
        }
        run.run()
        #expect(run.coordinator.stopCause == nil)
        try #require(run.links.count == 2)
        #expect(run.links[1].begun >= second / 2)
        #expect(try run.rows().allSatisfy { $0.state == .accepted && $0.attempts == 1 })
    }

    @Test(arguments: ["InvalidProviderToken", "KeyRevoked"])
    func `A run gives up if every connection ends by a GOAWAY about the credential`(
        reason: String
    ) throws {
        let run = try ScriptedRun(rows: 3, tokenAge: 0)
        run.reply = { request in
            run.say(
                ScriptedServer.goAway(lastStream: 0, code: 0, reason: reason),
                on: request.connection)
            return .silence
        }
        run.run()
        guard let cause = run.coordinator.stopCause, cause.isGivingUp else {
            Issue.record("\(String(describing: run.coordinator.stopCause))")
            return
        }
        #expect(run.lastLine(cause).contains(reason))
        #expect(run.time < 180 * second && (3...20).contains(run.links.count))
        #expect(try run.rows().allSatisfy { $0.state == .remaining })
    }

    @Test func `A token of another key is sent only on connections that carried no other token`()
        throws
    {
        let run = try ScriptedRun(rows: 5_000, connections: 3, tokenAge: 0)
        run.coordinator.milliRate = 500_000
        run.run(for: 2 * second)
        let usedFrom = run.coordinator.offer(
            authorization: Array("bearer other".utf8), issuedAt: Self.start, keyID: "OTHERKEY01",
            run.now)
        run.run()
        func connections(_ isUsed: (String?) -> Bool) -> Set<Int> {
            Set(run.requests.filter { isUsed($0.authorization) }.map(\.connection))
        }
        let other = connections { $0 == "bearer other" }
        #expect(usedFrom == nil && connections { $0 != "bearer other" } == [0, 1, 2])
        #expect(other == [3, 4, 5])
        #expect(try run.rows().allSatisfy { $0.state == .accepted && $0.attempts == 1 })
    }

    @Test func `A new token of another process waits for the end of the freeze`() throws {
        let run = try ScriptedRun(rows: 180, tokenAge: 1200) { $0.milliRatePerConnection = 100 }
        run.coordinator.replaceSigner(nil)
        let tokens = (0...2).map { "bearer \($0)" }
        func offer(_ number: Int) -> UInt64? {
            run.coordinator.offer(
                authorization: Array(tokens[number].utf8), issuedAt: Self.start,
                keyID: "AKEY000001", run.now)
        }
        run.reply = { request in
            request.authorization != tokens[0] || request.time > 600 * second
                ? .status(200) : .status(429, "TooManyProviderTokenUpdates")
        }
        run.run(for: 10 * second)
        #expect(offer(0) == nil)
        run.run(for: 30 * second)
        let usedFrom = try #require(offer(1))
        #expect((1210...1240).contains(usedFrom - Self.start))
        #expect(offer(2) == usedFrom)
        run.run(for: 1100 * second) {
            _ = run.coordinator.renewToken(run.now)
            return false
        }
        let old = "bearer \(Self.start - 1200)"
        let used = run.requests.map { $0.authorization }
        #expect(Set(used) == [old, tokens[0]] && used.last == old)
        run.run(for: 900 * second) {
            _ = run.coordinator.renewToken(run.now)
            return false
        }
        let last = try #require(run.requests.first { $0.authorization == tokens[2] })
        #expect(last.time >= (usedFrom - Self.start) * second)
        #expect(!run.requests.contains { $0.authorization == tokens[1] })
        #expect(try run.rows().allSatisfy { $0.state == .accepted })
    }
}
