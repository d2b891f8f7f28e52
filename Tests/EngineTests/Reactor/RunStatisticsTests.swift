import Testing

@testable import BroadsideAPNs
@testable import BroadsideEngine
@testable import BroadsideLedgerFormat
@testable import BroadsidePayloads
@testable import BroadsidePolicy
@testable import BroadsideRows

/// What reactors counted, put together for summary, report and metrics.
@Suite struct RunStatisticsTests {
    /// Counts that differ from one another in each field.
    private func statistics(_ factor: UInt64) -> RunStatistics {
        var one = RunStatistics()
        let fields: [WritableKeyPath<RunStatistics, UInt64>] = [
            \.counts[.accepted], \.counts[.rejected], \.counts[.invalid], \.counts[.skipped],
            \.counts[.failed], \.counts[.unknown], \.refusedByCredential, \.retries, \.requests,
            \.untimedResponses, \.connectionsOpened, \.reconnects, \.goAways, \.failures,
            \.pushbacks, \.refutedAcceptances, \.ownRetries,
        ]
        for (place, field) in fields.enumerated() { one[keyPath: field] = factor << UInt64(place) }
        one.shortened = factor << 20
        one.pausedAddresses = Int(factor) * 3
        one.openConnections = Int(factor) * 5
        one.inFlight = Int(factor) * 7
        for cause in one.limited.indices { one.limited[cause] = factor * UInt64(cause + 11) }
        one.fallbacks.byValue = ["it": factor]
        one.fallbacks.others = factor + 1
        for _ in 0..<factor {
            one.counts.reasons.add(code: Reason.unregistered.rawValue)
            one.pace.record(Self.finding(slow: factor))
        }
        return one
    }

    private static func finding(slow: UInt64) -> ConcurrencyLimiter.Finding {
        ConcurrencyLimiter.Finding(
            aloneNanoseconds: 0, loadedNanoseconds: slow, inFlight: 9, limit: 8)
    }

    private func named(_ reasons: ReasonCounts) -> [String: UInt64] {
        reasons.named { Reason(rawValue: $0)!.text }
    }

    /// The numbers of a value, by the names of its fields.
    private func numbers(_ value: Any) -> [String: Int] {
        var found: [String: Int] = [:]
        for child in Mirror(reflecting: value).children {
            switch child.value {
            case let number as UInt64: found[child.label!] = Int(number)
            case let number as Int: found[child.label!] = number
            case let list as [UInt64]:
                for (place, number) in list.enumerated() {
                    found["\(child.label!) \(place)"] = Int(number)
                }
            case let counts as RowCounts:
                for state in RowState.settledStates { found[state.name] = Int(counts[state]) }
            default: break
            }
        }
        return found
    }

    @Test func `Every count of two reactors is in their sum`() {
        var sum = statistics(3)
        sum.add(statistics(2))
        let (found, first, second) = (
            numbers(sum), numbers(statistics(3)), numbers(statistics(2))
        )
        #expect(found.count >= 27)
        for (name, number) in found {
            #expect(first[name]! > 0, "\(name) is new: give it a value here")
            #expect(number == first[name]! + second[name]!, "\(name)")
        }
        #expect(sum.fallbacks.byValue == ["it": 5] && sum.fallbacks.others == 7)
        #expect(named(sum.counts.reasons) == ["Unregistered": 5])
        #expect(sum.counts.settled == 5 * 63)
        #expect(sum.pace.worst == Self.finding(slow: 3))
        sum.add(RunStatistics())
        #expect(sum.pace.worst == Self.finding(slow: 3) && sum.counts.settled == 5 * 63)
        #expect(sum.shortened == 5 << 20, "another reactor has no rows yet")
        sum.add(statistics(4))
        #expect(sum.pace.worst == Self.finding(slow: 4))
        sum = RunStatistics()
        sum.add(RunStatistics())
        #expect(sum.shortened == nil, "no payload shortens a value")
    }

    @Test func `Nothing is counted before anything happened`() {
        #expect(numbers(RunStatistics()).values.allSatisfy { $0 == 0 })
        #expect(numbers(ConnectionTally()).values.allSatisfy { $0 == 0 })
        #expect(RunStatistics().limited.count == Bottleneck.allCases.count)
    }

    @Test func `What a slot's connections carried adds up`() {
        var first = ConnectionTally()
        first.opened = 2
        first.goAways = 3
        first.failures = 4
        first.lastGoAway = "NO_ERROR"
        first.lastFailure = "lost"
        first.recordResponse(latencyNanoseconds: 70)
        first.recordResponse(latencyNanoseconds: 30)
        first.recordResponse()
        #expect(first.responses == 3 && first.latencySumNanoseconds == 100)
        #expect(first.latencyMaximumNanoseconds == 70)
        var second = first
        second.lastGoAway = nil
        second.lastFailure = "silent"
        second.recordResponse(latencyNanoseconds: 71)
        var sum = first
        sum.add(second)
        #expect(sum.lastGoAway == "NO_ERROR" && sum.lastFailure == "silent")
        #expect(sum.latencyMaximumNanoseconds == 71)
        for (name, number) in numbers(sum) where name != "latencyMaximumNanoseconds" {
            #expect(
                number == numbers(first)[name]! + numbers(second)[name]! && number > 0, "\(name)")
        }
    }

    @Test func `A thread's share of CPU is the worked part of its time`() {
        var early = ThreadUse()
        early.cpuNanoseconds = 100
        early.atNanoseconds = 1_000
        var late = early
        #expect(late.share(since: early) == nil)
        late.atNanoseconds = 2_000
        #expect(late.share(since: early) == 0)
        late.cpuNanoseconds = 350
        #expect(late.share(since: early) == 0.25)
        #expect(early.share(since: late) == nil)
        late.cpuNanoseconds = 50
        #expect(late.share(since: early) == 0)
    }
}
