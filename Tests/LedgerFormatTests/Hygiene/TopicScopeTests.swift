import BroadsideSupport
import BroadsideTestSupport
import Testing

@testable import BroadsideAPNs
@testable import BroadsideHygiene
@testable import BroadsideLedgerFormat
@testable import BroadsideRows

/// Dead tokens of ledgers whose rows name their topics: each topic is judged by itself.
@Suite struct TopicScopeTests {
    /// Reports about one token under topics: at a time, and whether it is alive.
    private func ledger(_ said: [(topic: String?, time: UInt64, lives: Bool)]) -> VerdictLedger {
        verdictLedger(
            said.map { said in
                said.lives
                    ? TestVerdict(token: testToken(1), settledAt: said.time, topic: said.topic)
                    : TestVerdict(
                        token: testToken(1), state: .rejected, reason: .unregistered,
                        settledAt: said.time, timestamp: said.time, topic: said.topic)
            }, topic: "{{app}}")
    }

    private func death(_ dead: borrowing DeadTokens, _ topic: String?) -> UInt64? {
        let digits = Array(testToken(1).utf8)
        return dead.diedAt(
            digits: digits.span.bytes, fingerprint: TokenText.fingerprint(digits.span.bytes),
            in: topic.map { TokenScope(topic: $0, environment: "production") })
    }

    /// Since when the token is dead under each topic.
    private func deaths(
        _ ledgers: [VerdictLedger], _ topics: [String?]
    ) throws -> [UInt64?] {
        let dead = try deadTokens(ledgers)
        var found: [UInt64?] = []
        for topic in topics { found.append(death(dead, topic)) }
        return found
    }

    @Test func `A report under one topic says nothing about the token under another`() throws {
        let time = testTime
        let one = ledger([("a", time, true), ("b", time + 1, false), ("a", time + 2, true)])
        #expect(try deaths([one], ["a", "b", "c", nil]) == [nil, time + 1, nil, time + 1])
        // The newest verdict of each topic counts, over ledgers, too.
        let (both, later) = (
            ledger([("a", time, false), ("b", time, false)]), ledger([("b", time + 5, true)])
        )
        for ledgers in [[both, later], [later, both]] {
            #expect(try deaths(ledgers, ["a", "b"]) == [time, nil])
        }
        // A campaign of one topic.
        let shop = verdictLedger(
            [TestVerdict(token: testToken(1), settledAt: time + 1)], topic: "a")
        #expect(try deaths([both, shop], ["a", "b"]) == [nil, time])
        // Rows whose topic is not recorded may have any.
        let old = ledger([(nil, time, false)])
        #expect(try deaths([old], ["a", "b"]) == [time, time])
        #expect(try deaths([old, shop], ["a", "b"]) == [nil, nil])
    }

    @Test func `Reports of other topics are left out of a set for one`() throws {
        var dead = DeadTokens()
        var reports = ledger([("a", testTime, false), ("b", testTime + 1, false)])
        try dead.insertDead(
            of: &reports, reasons: [.unregistered],
            among: TokenScope(topic: "a", environment: "production"))
        dead.seal()
        let (count, time) = (dead.count, death(dead, nil))
        #expect(count == 1 && time == testTime)
    }

    @Test func `A list's row is removed if its token is dead under the row's topic`() throws {
        let dead = try deadTokens([ledger([("a", testTime, true), ("b", testTime, false)])])
        let layout = try RowLayout(
            format: .csv, names: ["token", "app"], header: Array("token,app".utf8))
        var pruner = ListPruner(
            dead: dead, layout: layout, hasRegistration: false,
            topicOfRow: { reader in
                let topic = String(decoding: [UInt8](reader.text(reader.field(1))), as: UTF8.self)
                return topic.isEmpty ? nil : topic
            }, collectsRemoved: true, nowMilliseconds: testTime)
        let token = testToken(1)
        var list = Array(
            "token,app\n\(token),a\n\(token),b\n\(token),c\n\(token),\n\(testToken(2)),b\n".utf8)
        var removed: [UInt8] = []
        let outcome = list.withUnsafeMutableBytes {
            pruner.process($0, isLast: true, removed: &removed)
        }
        #expect(
            String(decoding: list[..<outcome.keptCount], as: UTF8.self)
                == "token,app\n\(token),a\n\(token),c\n\(token),\n\(testToken(2)),b\n")
        let counts = pruner.counts
        #expect(counts.removed == 1 && counts.withoutTopic == 1)
    }
}
